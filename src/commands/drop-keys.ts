/** The public keys of the configuration that drops may be signed with. */
import type { Config } from '../config/config.ts';
import type { TrustedKey } from '../drop/signature.ts';

/** Reads them. Throws `trusted_key_invalid` for one that is none, and what reading a key file throws. */
export async function readDropKeys(config: Config): Promise<TrustedKey[]> {
  const { readTrustedKeys } = await import('../config/trusted-keys.ts');
  const { readPublicKey } = await import('../drop/signature.ts');
  return Object.entries(readTrustedKeys(config.refresh.trusted_keys)).map(([name, pem]) => readPublicKey(name, pem));
}
