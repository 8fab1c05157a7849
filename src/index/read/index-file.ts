/** Opens an index file, checks that it may be trusted, and watches it for changes. */
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  type StatsBase,
  statSync,
} from 'node:fs';
import { PagegateError } from '../../errors.ts';
import { HEADER_SIZE_BYTES, MAGIC } from '../format/layout.ts';
import { type IndexSource, indexChanged, readBytes, sourceOfDescriptor } from './index-source.ts';

const WRITABLE_BY_OTHERS = 0o022n;

/** An open index file, read with system calls. mapped-file.ts maps it into memory. */
export class IndexFile implements IndexSource {
  readonly path: string;
  readonly descriptor: number;
  readonly sizeBytes: number;
  readonly #source: IndexSource;
  readonly #opened: BigIntStats;
  /** The header as it was when the file was opened; shorter if the file is shorter. */
  readonly #header: Uint8Array;
  #isOpen = true;

  /**
   * Opens a file.
   *
   * @throws PagegateError index_missing, index_unreadable, index_not_a_file, index_unsafe_mode, index_corrupt if it is empty
   */
  constructor(path: string) {
    this.path = path;
    this.descriptor = openRegular(path);
    try {
      this.#opened = fstatSync(this.descriptor, { bigint: true });
      assertTrusted(path, this.#opened);
      this.sizeBytes = Number(this.#opened.size);
      this.#source = sourceOfDescriptor(this.descriptor, path, this.sizeBytes);
      this.#header = readBytes(this, 0, Math.min(HEADER_SIZE_BYTES, this.sizeBytes));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  readInto(target: Uint8Array, offset: number): void {
    this.#source.readInto(target, offset);
  }

  /**
   * Checks whether size, modification time or header of the file have changed since it was opened. An index is replaced by renaming another
   * file over its name, which does not affect this one. Writing into the file mixes two indexes. Takes two system calls.
   */
  problem(): PagegateError | undefined {
    try {
      const now = fstatSync(this.descriptor, { bigint: true });
      if (now.size !== this.#opened.size) {
        return indexChanged(this.path, `its size was ${this.#opened.size} bytes and is ${now.size}`, 'size');
      }
      const header = readBytes(this, 0, this.#header.length);
      if (Buffer.compare(header, this.#header) !== 0)
        return indexChanged(this.path, 'its header is another one', 'header');
      if (now.mtimeNs !== this.#opened.mtimeNs) {
        return indexChanged(this.path, `it was written to at ${now.mtime.toISOString()}`, 'times');
      }
      return undefined;
    } catch (error) {
      if (error instanceof PagegateError) return error;
      return indexChanged(this.path, `it cannot be looked at (${(error as NodeJS.ErrnoException).code})`, 'status');
    }
  }

  /** Safe to call twice. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.descriptor);
  }
}

/** True if a file begins like an index, of any version and possibly damaged. False if it cannot be opened. */
export function isIndexFile(path: string): boolean {
  let descriptor = -1;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const bytes = new Uint8Array(MAGIC.length);
    return readSync(descriptor, bytes) === bytes.length && bytes.every((byte, i) => byte === MAGIC[i]);
  } catch {
    return false;
  } finally {
    if (descriptor !== -1) closeSync(descriptor);
  }
}

function openRegular(path: string): number {
  try {
    assertRegular(path, statSync(path));
    // O_NONBLOCK: if a pipe has replaced the file since, the call would otherwise wait for a writer.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new PagegateError('index_missing', path, { path });
    if (error instanceof PagegateError || code === undefined) throw error;
    throw new PagegateError('index_unreadable', `${path}: ${code}.`, { path, reason: code }, { cause: error });
  }
}

function assertTrusted(path: string, stats: BigIntStats): void {
  assertRegular(path, stats);
  if ((stats.mode & WRITABLE_BY_OTHERS) !== 0n) {
    const mode = (stats.mode & 0o777n).toString(8).padStart(4, '0');
    throw new PagegateError('index_unsafe_mode', `${path}: its mode is ${mode}, expected 0444.`, { path, mode });
  }
  if (stats.size === 0n) throw new PagegateError('index_corrupt', `${path}: it is empty.`, { path, where: 'file' });
}

function assertRegular(path: string, stats: StatsBase<number> | StatsBase<bigint>): void {
  if (stats.isFile()) return;
  const kind = stats.isDirectory() ? 'directory' : stats.isSocket() ? 'socket' : stats.isFIFO() ? 'pipe' : 'device';
  throw new PagegateError('index_not_a_file', `${path} is a ${kind}.`, { path, kind });
}
