/** Key files in PEM that the command line names. */
import type { ErrorCode } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { readSmallFile } from '../../platform/small-file.ts';

/** Reads the text of the key file that an option names; `-` is standard input. @throws PagegateError `code` if it cannot be read */
export function readKeyFile(path: string, secretOption: '--key' | '--trust', code: ErrorCode): string {
  const maxBytes = LIMITS.publicKeyBytes.value;
  return readSmallFile(path, { code, secretOption, maxBytes, stdin: true }).toString('utf8');
}
