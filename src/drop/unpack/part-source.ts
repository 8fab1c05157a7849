/** Reads the bytes of a part as they are on disk, and computes their checksum. */
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import { dropCached } from '../../platform/libc.ts';
import { CHUNK_BYTES } from './unpack.ts';

const CLOSED = -1;
/** How much is read before it is dropped from the page cache. Each such call costs as much as reading a few kilobytes. */
const DROPPED_AT_ONCE_BYTES = 8 << 20;
/** System errors for opening a link and a socket. */
const UNREGULAR: ReadonlySet<string> = new Set(['ELOOP', 'ENXIO']);

const irregular = (path: string): PagegateError =>
  new PagegateError('drop_file_kind', `${path} is not a regular file.`, { file: path });

/** Options for reading a part. */
export interface PartReadOptions {
  /** Called after each read with the number of bytes read, as delivered. */
  readonly onBytes?: ((sizeBytes: number) => void) | undefined;
  /**
   * Drops the bytes read from the page cache. The drop is not read again, and a server on the same host keeps its pages in the cache. Also, if
   * the cache is full, each read has to wait until the system has evicted pages.
   */
  readonly dropsCached?: boolean;
}

/** Reads a file through one buffer and computes its checksum. Reads are synchronous: the system reads ahead, so they rarely wait. */
export class PartSource {
  /** Number of bytes read so far. */
  sizeBytes = 0;
  /** Number of bytes, from the beginning of the file, that have been dropped from the cache. */
  #droppedBytes = 0;
  #descriptor: number;
  readonly #buffer: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  readonly #hash = createHash('sha256');
  readonly #options: PartReadOptions;

  /**
   * Opens the file.
   *
   * @throws PagegateError drop_file_kind if it is not a regular file
   * @throws the system's error if it cannot be opened
   */
  constructor(path: string, options: PartReadOptions = {}) {
    this.#options = options;
    try {
      // O_NONBLOCK: do not wait if the file has been replaced by a pipe since it was checked.
      this.#descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      throw UNREGULAR.has(code) ? irregular(path) : error;
    }
    if (fstatSync(this.#descriptor).isFile()) return;
    this.close();
    throw irregular(path);
  }

  /** Returns the next bytes, valid until the next call; undefined at the end of the file, or if the source is closed. */
  next(): Buffer | undefined {
    if (this.#descriptor === CLOSED) return undefined;
    const sizeBytes = readSync(this.#descriptor, this.#buffer, 0, CHUNK_BYTES, null);
    if (sizeBytes === 0) return undefined;
    const chunk = sizeBytes === CHUNK_BYTES ? this.#buffer : this.#buffer.subarray(0, sizeBytes);
    this.sizeBytes += sizeBytes;
    this.#hash.update(chunk);
    this.#options.onBytes?.(sizeBytes);
    if (this.sizeBytes - this.#droppedBytes >= DROPPED_AT_ONCE_BYTES) this.#dropCached();
    return chunk;
  }

  /** Returns the SHA-256 of the bytes read, in lower-case hexadecimal. Call it only once, at the end. */
  digest(): string {
    return this.#hash.digest('hex');
  }

  /** Closes the file. Safe to call twice. */
  close(): void {
    if (this.#descriptor === CLOSED) return;
    this.#dropCached();
    closeSync(this.#descriptor);
    this.#descriptor = CLOSED;
  }

  #dropCached(): void {
    if (this.#options.dropsCached !== true || this.#droppedBytes === this.sizeBytes) return;
    dropCached(this.#descriptor, this.#droppedBytes, this.sizeBytes - this.#droppedBytes);
    this.#droppedBytes = this.sizeBytes;
  }
}
