/** Reads the public keys that a configuration trusts. */
import { LIMITS } from '../limits.ts';
import { readSmallFile } from '../platform/small-file.ts';

/**
 * Returns PEM texts by name. A value that is not a PEM text itself is the path of a file.
 *
 * @throws PagegateError config_invalid
 */
export function readTrustedKeys(keys: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, readTrustedKey(name, key)]));
}

/** Whether a value is the PEM text of a key, and not the path of its file. */
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
