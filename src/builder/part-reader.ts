/** Reads a part of a drop as a stream of unpacked bytes, whatever it is packed with, and holds it to what the manifest says. */
import { createHash } from 'node:crypto';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Transform } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { PagegateError } from '../errors.ts';
import type { DropPart } from './manifest.ts';

/** What one part may unpack to: this for each record that the manifest promises, and a floor for small ones. */
const UNPACKED_PER_RECORD_MAX_BYTES = 16_384;
const UNPACKED_FLOOR_BYTES = 65_536;
/** Small enough to stay in the processor's cache from the checksum to the last look at a line. */
const CHUNK_BYTES = 1 << 18;
/** Plain chunks between two turns of the event loop: an interrupt waits for some hundredths of a second. */
const CHUNKS_PER_TURN = 16;
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
    this.#descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    this.#onBytes = onBytes;
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
 * cannot be unpacked to its end, `drop_too_large` where it unpacks to more than its records can need, and, at its end,
 * `drop_part_checksum`.
 */
export async function* readPart(drop: string, part: DropPart, onBytes?: OnBytes): AsyncGenerator<Buffer> {
  const cap = UNPACKED_FLOOR_BYTES + part.records * UNPACKED_PER_RECORD_MAX_BYTES;
  const unpack = createUnpacker(part.name);
  let source: PartSource | undefined;
  let sizeBytes = 0;
  let got = '';
  try {
    source = new PartSource(join(drop, part.name), onBytes);
    const chunks = unpack === undefined ? plainChunks(source) : unpackedChunks(source, unpack);
    for await (const chunk of chunks) {
      sizeBytes += chunk.length;
      if (sizeBytes > cap) {
        const what = `${part.name} unpacks to more than ${cap} bytes for the ${part.records} records of its manifest.`;
        throw new PagegateError('drop_too_large', what, { part: part.name });
      }
      yield chunk;
    }
    got = source.digest();
  } catch (error) {
    if (error instanceof PagegateError) throw error;
    throw unreadable(part, error);
  } finally {
    unpack?.destroy();
    source?.close();
  }
  checkSum(part, got);
}

async function* plainChunks(source: PartSource): AsyncGenerator<Buffer> {
  let chunks = 0;
  for (let chunk = source.next(); chunk !== undefined; chunk = source.next()) {
    yield chunk;
    chunks += 1;
    if (chunks % CHUNKS_PER_TURN === 0) await nextTurn();
  }
}

async function* unpackedChunks(source: PartSource, unpack: Transform): AsyncGenerator<Buffer> {
  const fed = feed(source, unpack);
  for await (const chunk of unpack as AsyncIterable<Buffer>) {
    yield chunk;
    // The unpacker takes new memory where this was the last of the old; given back now, it does not wait for the garbage collector.
    const { buffer, byteOffset, length } = chunk;
    if (length > 0 && byteOffset + length === buffer.byteLength) (buffer as ArrayBuffer).transfer(0);
  }
  await fed;
}

/** Gives the source's bytes to the unpacker, one chunk after the other: each is used up when its callback comes. */
async function feed(source: PartSource, unpack: Transform): Promise<void> {
  try {
    for (let chunk = source.next(); chunk !== undefined; chunk = source.next()) {
      const bytes = chunk;
      const failure = await new Promise<Error | null | undefined>((resolve) => {
        unpack.write(bytes, resolve);
      });
      if (failure) return;
    }
    unpack.end();
  } catch (error) {
    unpack.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

function createUnpacker(name: string): Transform | undefined {
  if (name.endsWith('.gz')) return createGunzip({ chunkSize: CHUNK_BYTES });
  if (name.endsWith('.zst')) return createZstdDecompress({ chunkSize: CHUNK_BYTES });
  return undefined;
}

function unreadable(part: DropPart, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reason = error instanceof Error ? error.message : String(error);
  if (/^(Z_|ZSTD_|ERR_)/.test(code)) {
    return new PagegateError('drop_part_truncated', `${part.name}: ${reason}.`, { part: part.name }, { cause: error });
  }
  return new PagegateError('drop_part_missing', `${part.name}: ${reason}.`, { part: part.name }, { cause: error });
}

function checkSum(part: DropPart, got: string): void {
  if (got === part.sha256) return;
  const what = `${part.name}: the manifest says ${part.sha256}, the file has ${got}.`;
  throw new PagegateError('drop_part_checksum', what, { part: part.name, expected: part.sha256, got });
}
