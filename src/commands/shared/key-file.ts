/** Key files in PEM that the command line names. */
import type { ErrorCode } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { readSmallFile } from '../../platform/small-file.ts';

/** Reads the text of a key file; `-` is standard input. @throws PagegateError `code` if it cannot be read */
export function readKeyFile(path: string, code: ErrorCode): string {
  return readSmallFile(path, { code, maxBytes: LIMITS.publicKeyBytes.value, stdin: true }).toString('utf8');
}
