/** Reads a part of a drop as a stream of unpacked bytes, whatever it is packed with, and holds it to what the manifest says. */
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';
import type { DropPart } from './manifest.ts';
import { CHUNK_BYTES, isPacked, UnpackError, unpackedChunks } from './unpack.ts';

/** What one packed part may unpack to: this for each record that the manifest promises, and a floor for small ones. */
const UNPACKED_PER_RECORD_MAX_BYTES = 16_384;
const UNPACKED_FLOOR_BYTES = 65_536;
const CLOSED = -1;

/** Progress of one part: bytes of the file as delivered. */
export type OnBytes = (sizeBytes: number) => void;

/** Reads a file through one buffer, and takes its checksum on the way. A read waits for the disk: the system reads ahead. */
class PartSource {
  #descriptor: number;
  readonly #buffer: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  readonly #hash = createHash('sha256');
  readonly #onBytes: OnBytes | undefined;

  constructor(path: string, onBytes: OnBytes | undefined) {
    // A pipe that was put there since the check must not be waited for.
    this.#descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    this.#onBytes = onBytes;
    if (fstatSync(this.#descriptor).isFile()) return;
    this.close();
    throw new PagegateError('drop_file_kind', `${path} is not a regular file.`, { file: path });
  }

  /** The next bytes, valid until the call after; undefined at the end, and once it is closed. */
  next(): Buffer | undefined {
    if (this.#descriptor === CLOSED) return undefined;
    const sizeBytes = readSync(this.#descriptor, this.#buffer, 0, CHUNK_BYTES, null);
    if (sizeBytes === 0) return undefined;
    const chunk = sizeBytes === CHUNK_BYTES ? this.#buffer : this.#buffer.subarray(0, sizeBytes);
    this.#hash.update(chunk);
    this.#onBytes?.(sizeBytes);
    return chunk;
  }

  digest(): string {
    return this.#hash.digest('hex');
  }

  close(): void {
    if (this.#descriptor === CLOSED) return;
    closeSync(this.#descriptor);
    this.#descriptor = CLOSED;
  }
}

/**
 * Yields the unpacked bytes of a part in chunks; each is valid until the next one is asked for. Throws `drop_part_truncated` where it
 * cannot be unpacked to its end, `drop_too_large` where it unpacks to more than its records can need, `drop_part_size` where a
 * plain one has grown since its size was checked, and, at its end, `drop_part_checksum`.
 */
export async function* readPart(drop: string, part: DropPart, onBytes?: OnBytes): AsyncGenerator<Buffer> {
  const cap = isPacked(part.name) ? UNPACKED_FLOOR_BYTES + part.records * UNPACKED_PER_RECORD_MAX_BYTES : part.bytes;
  let source: PartSource | undefined;
  let sizeBytes = 0;
  let got = '';
  try {
    const opened = new PartSource(join(drop, part.name), onBytes);
    source = opened;
    for await (const chunk of unpackedChunks(part.name, () => opened.next())) {
      sizeBytes += chunk.length;
      if (sizeBytes > cap) throw tooLarge(part, cap);
      yield chunk;
    }
    got = source.digest();
  } catch (error) {
    if (error instanceof PagegateError) throw error;
    throw unreadable(part, error);
  } finally {
    source?.close();
  }
  checkSum(part, got);
}

function tooLarge(part: DropPart, cap: number): PagegateError {
  if (!isPacked(part.name)) {
    const what = `${part.name}: the manifest says ${part.bytes} bytes, the file has more.`;
    return new PagegateError('drop_part_size', what, { part: part.name, expected: part.bytes });
  }
  const what = `${part.name} unpacks to more than ${cap} bytes for the ${part.records} records of its manifest.`;
  return new PagegateError('drop_too_large', what, { part: part.name });
}

function unreadable(part: DropPart, error: unknown): unknown {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof UnpackError) {
    return new PagegateError('drop_part_truncated', `${part.name}: ${reason}.`, { part: part.name }, { cause: error });
  }
  return new PagegateError('drop_part_missing', `${part.name}: ${reason}.`, { part: part.name }, { cause: error });
}

function checkSum(part: DropPart, got: string): void {
  if (got === part.sha256) return;
  const what = `${part.name}: the manifest says ${part.sha256}, the file has ${got}.`;
  throw new PagegateError('drop_part_checksum', what, { part: part.name, expected: part.sha256, got });
}
