/** Reads the small files of a drop, which are not trusted, and writes them. */
import { join } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { replaceDurable } from '../platform/durable-files.ts';
import { readSmallFileIfAny } from '../platform/small-file.ts';

/** Names of the small files of a drop. */
export const MANIFEST_FILE = 'manifest.json';
export const SIGNATURE_FILE = 'manifest.json.sig';

/**
 * Returns the bytes of a file of a drop; undefined if it does not exist.
 *
 * @throws PagegateError drop_file_kind if it is a link, a device or anything else that is not a regular file
 * @throws PagegateError drop_too_large if it has more than `maxBytes`
 * @throws PagegateError manifest_missing if it exists but cannot be read
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
 * Returns the bytes of a drop's manifest.
 *
 * @throws PagegateError manifest_missing if there is none, and whatever `readDropFile` throws
 */
export function readManifestBytes(drop: string): Buffer {
  const bytes = readDropFile(drop, MANIFEST_FILE, LIMITS.manifestBytes.value);
  if (bytes === undefined) throw new PagegateError('manifest_missing', `Looked for ${join(drop, MANIFEST_FILE)}.`);
  return bytes;
}

/** Writes a file of a drop atomically (vendor side). Returns its path. @throws PagegateError drop_not_written */
export function writeDropFile(drop: string, name: string, text: string): string {
  const path = join(drop, name);
  try {
    replaceDurable(path, text, 0o644);
    return path;
  } catch (error) {
    throw fromSystem('drop_not_written', path, error);
  }
}
