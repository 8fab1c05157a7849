/** Reads a part of a drop as a stream of unpacked bytes, whatever it is packed with, and holds it to what the manifest says. */
import { createHash, type Hash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { join } from 'node:path';
import { Transform, type TransformCallback } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { PagegateError } from '../errors.ts';
import type { DropPart } from './manifest.ts';

/** What one part may unpack to: this for each record that the manifest promises, and a floor for small ones. */
const UNPACKED_PER_RECORD_MAX_BYTES = 16_384;
const UNPACKED_FLOOR_BYTES = 65_536;
const CHUNK_BYTES = 1 << 18;

/** Lets bytes through and takes their checksum. */
class HashingPassage extends Transform {
  readonly hash: Hash = createHash('sha256');
  sizeBytes = 0;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.hash.update(chunk);
    this.sizeBytes += chunk.length;
    done(null, chunk);
  }
}

/** Progress of one part: bytes of the file as delivered. */
export type OnBytes = (sizeBytes: number) => void;

/**
 * Yields the unpacked bytes of a part in chunks. Throws `drop_part_truncated` where it cannot be unpacked to its end,
 * `drop_too_large` where it unpacks to more than its records can need, and, at its end, `drop_part_checksum`.
 */
export async function* readPart(drop: string, part: DropPart, onBytes?: OnBytes): AsyncGenerator<Buffer> {
  const cap = UNPACKED_FLOOR_BYTES + part.records * UNPACKED_PER_RECORD_MAX_BYTES;
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW;
  const source = createReadStream(join(drop, part.name), {
    flags: flags as unknown as string,
    highWaterMark: CHUNK_BYTES,
  });
  const passage = new HashingPassage({ highWaterMark: CHUNK_BYTES });
  const unpack = createUnpacker(part.name);
  source.on('error', (error) => passage.destroy(error));
  source.pipe(passage);
  if (unpack !== undefined) {
    passage.on('error', (error) => unpack.destroy(error));
    passage.pipe(unpack);
  }
  let sizeBytes = 0;
  let reported = 0;
  try {
    for await (const chunk of unpack ?? passage) {
      sizeBytes += chunk.length;
      if (sizeBytes > cap) {
        const what = `${part.name} unpacks to more than ${cap} bytes for the ${part.records} records of its manifest.`;
        throw new PagegateError('drop_too_large', what, { part: part.name });
      }
      yield chunk;
      onBytes?.(passage.sizeBytes - reported);
      reported = passage.sizeBytes;
    }
  } catch (error) {
    if (error instanceof PagegateError) throw error;
    throw unreadable(part, error);
  } finally {
    source.destroy();
    passage.destroy();
    unpack?.destroy();
  }
  onBytes?.(passage.sizeBytes - reported);
  checkSum(part, passage);
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

function checkSum(part: DropPart, passage: HashingPassage): void {
  const got = passage.hash.digest('hex');
  if (got === part.sha256) return;
  const what = `${part.name}: the manifest says ${part.sha256}, the file has ${got}.`;
  throw new PagegateError('drop_part_checksum', what, { part: part.name, expected: part.sha256, got });
}
