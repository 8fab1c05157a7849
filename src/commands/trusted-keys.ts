/** The public keys of the configuration that drops may be signed with. */
import type { Config } from '../config/config.ts';
import type { TrustedKey } from '../refresh/signature.ts';

const isInline = (key: string): boolean => key.trimStart().startsWith('-----BEGIN');

/** Reads them; each is the path of a PEM file or the PEM text itself. Throws `trusted_key_invalid`. */
export async function readTrustedKeys(config: Config): Promise<TrustedKey[]> {
  const { readFileSync } = await import('node:fs');
  const { PagegateError } = await import('../errors.ts');
  const { readPublicKey } = await import('../refresh/signature.ts');
  return Object.entries(config.refresh.trusted_keys).map(([name, value]) => {
    let pem = value;
    try {
      if (!isInline(value)) pem = readFileSync(value, 'utf8');
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new PagegateError('trusted_key_invalid', `"${name}": ${reason}.`, { name }, { cause });
    }
    return readPublicKey(name, pem);
  });
}
