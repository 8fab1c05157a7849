/** Reads the keys that may sign drops. */
import type { Config } from '../config/config.ts';
import { readTrustedKeys } from '../config/trusted-keys.ts';
import { parseTrustedKey, type TrustedKey } from '../drop/signature.ts';

/** Returns the public keys that may sign drops. @throws PagegateError trusted_key_invalid, and what reading a key file throws */
export function readDropKeys(config: Config): TrustedKey[] {
  return Object.entries(readTrustedKeys(config.refresh.trusted_keys)).map(([name, pem]) => parseTrustedKey(name, pem));
}
