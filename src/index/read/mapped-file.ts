/** An index file, mapped read-only into memory. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PagegateError } from '../../errors.ts';
import { ADVICE, dropCached, type MemoryMapping, mapFile, PAGE_SIZE_BYTES } from '../../platform/libc.ts';
import type { IndexFile } from './index-file.ts';
import type { IndexBytes } from './index-source.ts';

/** A multiple of the size of a huge page, and so small that requests served meanwhile do not notice the wait for a step. */
const WARM_STEP_BYTES = 4 * 1024 * 1024;

/**
 * A mapped file. If the file has been truncated since it was mapped, the kernel ends the process at a read beyond its end (SIGBUS). `problem`
 * detects a truncated file without that risk.
 */
export class MappedFile implements IndexBytes {
  readonly path: string;
  readonly sizeBytes: number;
  readonly #file: IndexFile;
  readonly #mapping: MemoryMapping;

  /**
   * Maps an open file. `close` also closes the file.
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
   * Uses huge pages if kernel and file system support them. Every lookup reads two distant places, and with small pages, half of the cost is
   * address translation. To get huge pages, cached small pages are dropped and read again, as long as that works.
   */
  async warm(onStep: (doneBytes: number) => void): Promise<void> {
    let isHuge = this.#mapping.advise(ADVICE.hugePage);
    try {
      for (let offset = 0; offset < this.sizeBytes; offset += WARM_STEP_BYTES) {
        const size = Math.min(WARM_STEP_BYTES, this.sizeBytes - offset);
        if (isHuge) dropCached(this.#file.descriptor, offset, size);
        // Reads ahead in large pieces, but into small pages.
        else this.#mapping.advise(ADVICE.willNeed, offset, size);
        // Kernels before 5.14 do not know this advice.
        if (!this.#mapping.advise(ADVICE.populateRead, offset, size)) touch(this.view(offset, size));
        if (offset === 0 && isHuge) isHuge = this.#mapping.hugePagesBytes() > 0;
        onStep(offset + size);
        await nextTurn();
      }
    } finally {
      // Pages that are evicted later are read again on demand, as small pages.
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
