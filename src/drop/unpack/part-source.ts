/** The bytes of a part as they lie on the disk, and their checksum. */
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import { dropCached } from '../../platform/libc.ts';
import { CHUNK_BYTES } from './unpack.ts';

const CLOSED = -1;
/** How much is read before it is dropped from the system's cache; each call costs as much as reading a few kilobytes. */
const DROPPED_AT_ONCE_BYTES = 8 << 20;
/** How the system refuses to open a link, and a socket. */
const UNREGULAR: ReadonlySet<string> = new Set(['ELOOP', 'ENXIO']);

const irregular = (path: string): PagegateError =>
  new PagegateError('drop_file_kind', `${path} is not a regular file.`, { file: path });

/** How a part is read. */
export interface PartReadOptions {
  /** Told how many bytes of the file as delivered were read. */
  readonly onBytes?: ((sizeBytes: number) => void) | undefined;
  /**
   * Drops what was read from the system's cache. Nobody reads the drop again, and what a server on the same host has there stays. In a full
   * cache, each read would also wait until the system has found what to give up.
   */
  readonly dropsCached?: boolean;
}

/** Reads a file through one buffer, and takes its checksum on the way. A read waits for the disk: the system reads ahead. */
export class PartSource {
  /** Bytes read so far. */
  sizeBytes = 0;
  /** Of what was read, so much from the beginning is dropped from the cache. */
  #droppedBytes = 0;
  #descriptor: number;
  readonly #buffer: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  readonly #hash = createHash('sha256');
  readonly #options: PartReadOptions;

  /**
   * Opens the file.
   *
   * @throws PagegateError drop_file_kind for anything but a regular file
   * @throws the system's error where that is not possible
   */
  constructor(path: string, options: PartReadOptions = {}) {
    this.#options = options;
    try {
      // A pipe that was put there since the check must not be waited for.
      this.#descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      throw UNREGULAR.has(code) ? irregular(path) : error;
    }
    if (fstatSync(this.#descriptor).isFile()) return;
    this.close();
    throw irregular(path);
  }

  /** The next bytes, valid until the call after; undefined at the end, and once it is closed. */
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

  /** SHA-256 of what was read, lower-case hexadecimal; to be asked once, at the end. */
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
