/** An index file in memory: checked to be one that may be trusted, then mapped read-only. */
import { closeSync, constants, fstatSync, openSync, type Stats, statSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PagegateError } from '../../errors.ts';
import { ADVICE, dropCached, type Mapping, mapFile, PAGE_SIZE_BYTES } from '../../platform/libc.ts';
import type { IndexBytes } from './index-bytes.ts';

const WRITABLE_BY_OTHERS = 0o022;
/** A multiple of the size of a huge page, and so small that whoever is served meanwhile does not notice the wait for a step. */
const WARM_STEP_BYTES = 4 * 1024 * 1024;

/** A mapped file; other threads of this process reach it by its address, see `viewMapped`. */
export interface MappedIndex extends IndexBytes {
  readonly address: bigint;
}

/**
 * Opens and maps a file. Throws index_missing, index_unreadable, index_not_a_file, index_unsafe_mode, index_corrupt or
 * mapping_failed.
 */
export function openMappedFile(path: string): MappedIndex {
  const fd = openRegular(path);
  try {
    const stats = fstatSync(fd);
    assertRegular(path, stats);
    if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) {
      const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
      throw new PagegateError('index_unsafe_mode', `${path}: its mode is ${mode}, expected 0444.`, { path, mode });
    }
    if (stats.size === 0) throw new PagegateError('index_corrupt', `${path}: it is empty.`, { path, where: 'file' });
    return new MappedFile(path, fd, mapFile(fd, stats.size));
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

class MappedFile implements MappedIndex {
  readonly path: string;
  readonly address: bigint;
  readonly sizeBytes: number;
  readonly #fd: number;
  readonly #mapping: Mapping;
  #isOpen = true;

  constructor(path: string, fd: number, mapping: Mapping) {
    this.path = path;
    this.#fd = fd;
    this.address = mapping.address;
    this.sizeBytes = mapping.sizeBytes;
    this.#mapping = mapping;
  }

  view(offset: number, sizeBytes: number): Uint8Array {
    return new Uint8Array(this.#mapping.buffer, offset, sizeBytes);
  }

  adviseRandom(): void {
    this.#mapping.advise(ADVICE.random);
  }

  /**
   * In huge pages where kernel and file system have them: every lookup reads two places far apart, and half of what that costs is to
   * find out where their small pages are. Cached small pages are dropped and read again for it, as long as that pays.
   */
  async warm(onStep: (doneBytes: number) => void, signal?: AbortSignal): Promise<void> {
    let isHuge = this.#mapping.advise(ADVICE.hugePage);
    try {
      for (let offset = 0; offset < this.sizeBytes; offset += WARM_STEP_BYTES) {
        signal?.throwIfAborted();
        const size = Math.min(WARM_STEP_BYTES, this.sizeBytes - offset);
        if (isHuge) dropCached(this.#fd, offset, size);
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

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#mapping.unmap();
    closeSync(this.#fd);
  }
}

function touch(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += PAGE_SIZE_BYTES) sum += bytes[at]!;
  return sum;
}

function openRegular(path: string): number {
  try {
    assertRegular(path, statSync(path));
    // Without O_NONBLOCK a pipe that took the file's place since would wait here for a writer.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new PagegateError('index_missing', path, { path });
    if (error instanceof PagegateError || code === undefined) throw error;
    throw new PagegateError('index_unreadable', `${path}: ${code}.`, { path, reason: code }, { cause: error });
  }
}

function assertRegular(path: string, stats: Stats): void {
  if (stats.isFile()) return;
  const kind = stats.isDirectory() ? 'directory' : stats.isSocket() ? 'socket' : stats.isFIFO() ? 'pipe' : 'device';
  throw new PagegateError('index_not_a_file', `${path} is a ${kind}.`, { path, kind });
}
