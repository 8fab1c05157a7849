/** The public keys that a configuration trusts, read from where it names them. */
import { LIMITS } from '../limits.ts';
import { readSmallFile } from '../platform/small-file.ts';

/**
 * PEM texts by name; a value that is no PEM text itself is the path of a file.
 *
 * @throws PagegateError config_invalid
 */
export function readTrustedKeys(keys: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, readTrustedKey(name, key)]));
}

/** Whether a value is the key itself, and not the path of its file. */
export function isPem(value: string): boolean {
  return value.trimStart().startsWith('-----BEGIN');
}

function readTrustedKey(name: string, key: string): string {
  if (isPem(key)) return key;
  const file = {
    code: 'config_invalid',
    name: `The trusted key "${name}", ${key}`,
    maxBytes: LIMITS.publicKeyBytes.value,
  } as const;
  return readSmallFile(key, file).toString('utf8');
}
