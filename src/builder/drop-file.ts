/** The small files of a drop, read without trust: whole, or not at all. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';

export const MANIFEST_FILE = 'manifest.json';

const MANIFEST_MAX_BYTES = 8 * 2 ** 20;

/**
 * The bytes of a file of a drop; undefined where it has none of that name. Throws `drop_file_kind` for a link, a device and whatever else
 * is no regular file, `drop_too_large`, and `manifest_missing` where it is there and cannot be read.
 */
export function readDropFile(drop: string, name: string, sizeMaxBytes: number): Buffer | undefined {
  const path = join(drop, name);
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code === 'ELOOP') throw new PagegateError('drop_file_kind', `${path} is a link.`, { file: name });
    throw new PagegateError('manifest_missing', `${path} cannot be read (${code}).`, { file: name }, { cause });
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new PagegateError('drop_file_kind', `${path} is not a regular file.`, { file: name });
    if (stats.size <= sizeMaxBytes) return readFileSync(descriptor);
    const what = `${path} has ${stats.size} bytes, allowed are ${sizeMaxBytes}.`;
    throw new PagegateError('drop_too_large', what, { file: name });
  } finally {
    closeSync(descriptor);
  }
}

/** The bytes of a drop's manifest. Throws as `readDropFile` does, and `manifest_missing` where there is none. */
export function readManifestBytes(drop: string): Buffer {
  const bytes = readDropFile(drop, MANIFEST_FILE, MANIFEST_MAX_BYTES);
  if (bytes === undefined) throw new PagegateError('manifest_missing', `Looked for ${join(drop, MANIFEST_FILE)}.`);
  return bytes;
}
