/** PEM files of keys: those that the command line names, and those that the configuration trusts. */
import type { Config } from '../../config/config.ts';
import { KEY_FILE_MAX_BYTES } from '../../config/trusted-keys.ts';
import type { TrustedKey } from '../../drop/signature.ts';
import type { ErrorCode } from '../../errors.ts';
import { readSmallFile } from '../../platform/small-file.ts';

/** The text of a key file; `-` is standard input. @throws PagegateError the given code where it cannot be read */
export function readKeyFile(path: string, code: ErrorCode): string {
  return readSmallFile(path, { code, maxBytes: KEY_FILE_MAX_BYTES, stdin: true }).toString('utf8');
}

/** The public keys that may sign drops. @throws PagegateError trusted_key_invalid, and what reading a key file throws */
export async function readDropKeys(config: Config): Promise<TrustedKey[]> {
  const { readTrustedKeys } = await import('../../config/trusted-keys.ts');
  const { readPublicKey } = await import('../../drop/signature.ts');
  return Object.entries(readTrustedKeys(config.refresh.trusted_keys)).map(([name, pem]) => readPublicKey(name, pem));
}
