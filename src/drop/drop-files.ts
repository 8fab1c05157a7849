/** The small files of a drop, read without trust: whole, or not at all. */
import { join } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { replaceDurable } from '../platform/durable-files.ts';
import { readSmallFileIfAny } from '../platform/small-file.ts';

/** Names of the small files of a drop. */
export const MANIFEST_FILE = 'manifest.json';
export const SIGNATURE_FILE = 'manifest.json.sig';

/**
 * The bytes of a file of a drop; undefined where it has none of that name.
 *
 * @throws PagegateError drop_file_kind for a link, a device and whatever else is not a regular file
 * @throws PagegateError drop_too_large
 * @throws PagegateError manifest_missing where it is there and cannot be read
 */
export function readDropFile(drop: string, name: string, maxBytes: number): Buffer | undefined {
  return readSmallFileIfAny(join(drop, name), {
    maxBytes,
    code: 'manifest_missing',
    kindCode: 'drop_file_kind',
    sizeCode: 'drop_too_large',
    noLink: true,
  });
}

/**
 * The bytes of a drop's manifest.
 *
 * @throws PagegateError manifest_missing where there is none, and what `readDropFile` throws
 */
export function readManifestBytes(drop: string): Buffer {
  const bytes = readDropFile(drop, MANIFEST_FILE, LIMITS.manifestBytes.value);
  if (bytes === undefined) throw new PagegateError('manifest_missing', `Looked for ${join(drop, MANIFEST_FILE)}.`);
  return bytes;
}

/** Writes a file of a drop (vendor side), whole or not at all; returns its path. @throws PagegateError drop_not_written */
export function writeDropFile(drop: string, name: string, text: string): string {
  const path = join(drop, name);
  try {
    replaceDurable(path, text, 0o644);
    return path;
  } catch (error) {
    throw fromSystem('drop_not_written', path, error);
  }
}
