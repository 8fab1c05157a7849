/** An index file in memory, mapped read-only. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PagegateError } from '../../errors.ts';
import { ADVICE, dropCached, type MemoryMapping, mapFile, PAGE_SIZE_BYTES } from '../../platform/libc.ts';
import type { IndexFile } from './index-file.ts';
import type { IndexBytes } from './index-source.ts';

/** A multiple of the size of a huge page, and so small that whoever is served meanwhile does not notice the wait for a step. */
const WARM_STEP_BYTES = 4 * 1024 * 1024;

/**
 * A mapped file. What is read through the mapping is not checked by the system: where the file was cut since, the kernel ends the process
 * (SIGBUS). `problem` tells of a cut file, a read beyond its end does not.
 */
export class MappedFile implements IndexBytes {
  readonly path: string;
  readonly sizeBytes: number;
  readonly #file: IndexFile;
  readonly #mapping: MemoryMapping;

  /**
   * Maps an open file, and closes it when it is closed itself.
   *
   * @throws PagegateError mapping_failed
   */
  constructor(file: IndexFile) {
    this.path = file.path;
    this.sizeBytes = file.sizeBytes;
    this.#file = file;
    this.#mapping = mapFile(file.descriptor, file.sizeBytes);
  }

  readInto(target: Uint8Array, offset: number): void {
    this.#file.readInto(target, offset);
  }

  view(offset: number, sizeBytes: number): Uint8Array {
    return new Uint8Array(this.#mapping.buffer, offset, sizeBytes);
  }

  adviseRandom(): void {
    this.#mapping.advise(ADVICE.random);
  }

  problem(): PagegateError | undefined {
    return this.#file.problem();
  }

  /**
   * In huge pages where kernel and file system have them: every lookup reads two places far apart, and half of what that costs is to
   * find out where their small pages are. Cached small pages are dropped and read again for it, as long as that pays.
   */
  async warm(onStep: (doneBytes: number) => void): Promise<void> {
    let isHuge = this.#mapping.advise(ADVICE.hugePage);
    try {
      for (let offset = 0; offset < this.sizeBytes; offset += WARM_STEP_BYTES) {
        const size = Math.min(WARM_STEP_BYTES, this.sizeBytes - offset);
        if (isHuge) dropCached(this.#file.descriptor, offset, size);
        // Reads ahead in large pieces, but of small pages.
        else this.#mapping.advise(ADVICE.willNeed, offset, size);
        // Kernels before 5.14 do not know this advice.
        if (!this.#mapping.advise(ADVICE.populateRead, offset, size)) touch(this.view(offset, size));
        if (offset === 0 && isHuge) isHuge = this.#mapping.hugePagesBytes() > 0;
        onStep(offset + size);
        await nextTurn();
      }
    } finally {
      // What is evicted later comes back as it is asked for, in small pages.
      this.#mapping.advise(ADVICE.noHugePage);
    }
  }

  /** Safe to call twice. */
  close(): void {
    this.#mapping.unmap();
    this.#file.close();
  }
}

function touch(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += PAGE_SIZE_BYTES) sum += bytes[at]!;
  return sum;
}
