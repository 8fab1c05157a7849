/** Reads a part of a drop as a stream of unpacked bytes, with any compression, and checks it against the manifest. */
import { join } from 'node:path';
import { messageOf, PagegateError } from '../errors.ts';
import type { DropPart } from './manifest.ts';
import { framesMax, unpackedMaxBytes } from './unpack/part-limits.ts';
import { type PartReadOptions, PartSource } from './unpack/part-source.ts';
import { isPacked, UnpackError, unpackedChunks } from './unpack/unpack.ts';

export type { PartReadOptions } from './unpack/part-source.ts';
export { isPacked } from './unpack/unpack.ts';

/** The error code for each problem of unpacking. */
const UNPACK_CODES = {
  damaged: 'drop_part_truncated',
  unsupported: 'drop_part_unsupported',
  'too many frames': 'drop_too_large',
} as const;

/**
 * Yields the unpacked bytes of a part in chunks. Each chunk is valid until the next one is requested.
 *
 * @throws PagegateError drop_part_truncated if it cannot be unpacked to its end
 * @throws PagegateError drop_part_unsupported if this program cannot unpack its form of compression
 * @throws PagegateError drop_too_large if it unpacks to more than its records can need, or has too many frames
 * @throws PagegateError drop_part_size if an uncompressed part has grown since its size was checked
 * @throws PagegateError drop_part_checksum after the last chunk
 * @throws PagegateError drop_part_missing, drop_file_kind if it cannot be read
 */
export async function* readPart(drop: string, part: DropPart, options?: PartReadOptions): AsyncGenerator<Buffer> {
  const cap = unpackedMaxBytes(part);
  let source: PartSource | undefined;
  let sizeBytes = 0;
  let sha256 = '';
  try {
    const opened = new PartSource(join(drop, part.name), options);
    source = opened;
    for await (const chunk of unpackedChunks(part.name, () => opened.next(), framesMax(part))) {
      sizeBytes += chunk.length;
      checkUnpackedSize(part, sizeBytes, cap);
      yield chunk;
    }
    sha256 = source.digest();
  } catch (error) {
    throw partFailure(part.name, error);
  } finally {
    source?.close();
  }
  verifyChecksum(part, sha256);
}

/** Converts an error while reading a part to an error with one of the codes of `readPart`. */
export function partFailure(name: string, error: unknown): unknown {
  if (error instanceof PagegateError) return error;
  const reason = messageOf(error);
  const code = error instanceof UnpackError ? UNPACK_CODES[error.problem] : 'drop_part_missing';
  return new PagegateError(code, `${name}: ${reason}.`, { part: name }, { cause: error });
}

/**
 * Checks that the bytes unpacked so far do not exceed the maximum for the part.
 *
 * @throws PagegateError drop_too_large, drop_part_size
 */
export function checkUnpackedSize(part: DropPart, sizeBytes: number, cap = unpackedMaxBytes(part)): void {
  if (sizeBytes > cap) throw tooLarge(part, cap);
}

function tooLarge(part: DropPart, cap: number): PagegateError {
  if (!isPacked(part.name)) {
    const what = `${part.name}: the manifest says ${part.bytes} bytes, the file has more.`;
    return new PagegateError('drop_part_size', what, { part: part.name, expected: part.bytes });
  }
  const what = `${part.name} unpacks to more than ${cap} bytes, for ${part.records} records in ${part.bytes} packed bytes.`;
  return new PagegateError('drop_too_large', what, { part: part.name });
}

function verifyChecksum(part: DropPart, actual: string): void {
  if (actual === part.sha256) return;
  const what = `${part.name}: the manifest says ${part.sha256}, the file has ${actual}.`;
  throw new PagegateError('drop_part_checksum', what, { part: part.name, expected: part.sha256, got: actual });
}
