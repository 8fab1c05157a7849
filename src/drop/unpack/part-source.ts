/** The bytes of a part as they lie on the disk, and their checksum. */
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import { CHUNK_BYTES } from './unpack.ts';

const CLOSED = -1;
/** How the system refuses to open a link, and a socket. */
const UNREGULAR: ReadonlySet<string> = new Set(['ELOOP', 'ENXIO']);

const irregular = (path: string): PagegateError =>
  new PagegateError('drop_file_kind', `${path} is not a regular file.`, { file: path });

/** Told how many bytes of the file as delivered were read. */
export type OnBytes = (sizeBytes: number) => void;

/** Reads a file through one buffer, and takes its checksum on the way. A read waits for the disk: the system reads ahead. */
export class PartSource {
  /** Bytes read so far. */
  sizeBytes = 0;
  #descriptor: number;
  readonly #buffer: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  readonly #hash = createHash('sha256');
  readonly #onBytes: OnBytes | undefined;

  /**
   * Opens the file.
   *
   * @throws PagegateError drop_file_kind for anything but a regular file
   * @throws the system's error where that is not possible
   */
  constructor(path: string, onBytes?: OnBytes) {
    this.#onBytes = onBytes;
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
    this.#onBytes?.(sizeBytes);
    return chunk;
  }

  /** SHA-256 of what was read, lower-case hexadecimal; to be asked once, at the end. */
  digest(): string {
    return this.#hash.digest('hex');
  }

  /** Closes the file. Safe to call twice. */
  close(): void {
    if (this.#descriptor === CLOSED) return;
    closeSync(this.#descriptor);
    this.#descriptor = CLOSED;
  }
}
