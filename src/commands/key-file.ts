/** A key in a PEM file that the command line names. */
import { KEY_FILE_MAX_BYTES } from '../config/trusted-keys.ts';
import type { ErrorCode } from '../errors.ts';
import { readSmallFile } from '../platform/small-file.ts';

/** The file's text, also of one that was handed over open; `-` is standard input. Throws the given code where it cannot be read. */
export function readKeyFile(path: string, code: ErrorCode): string {
  const file = path === '-' ? '/dev/stdin' : path;
  return readSmallFile(file, { code, maxBytes: KEY_FILE_MAX_BYTES, handedOver: true }).toString('utf8');
}
