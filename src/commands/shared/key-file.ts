/** PEM files of keys that the command line names. */
import { KEY_FILE_MAX_BYTES } from '../../config/trusted-keys.ts';
import type { ErrorCode } from '../../errors.ts';
import { readSmallFile } from '../../platform/small-file.ts';

/** The text of a key file; `-` is standard input. @throws PagegateError the given code where it cannot be read */
export function readKeyFile(path: string, code: ErrorCode): string {
  return readSmallFile(path, { code, maxBytes: KEY_FILE_MAX_BYTES, stdin: true }).toString('utf8');
}
