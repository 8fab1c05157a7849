/** The public keys that a configuration trusts, read from where it names them. */
import { readFileSync, statSync } from 'node:fs';
import { PagegateError } from '../errors.ts';

/** A PEM file of one public key is a few hundred bytes. */
const KEY_FILE_MAX_BYTES = 16 * 1024;

/** PEM texts by name; a value that is no PEM text itself is the path of a file. Throws `config_invalid`. */
export function readTrustedKeys(keys: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, readTrustedKey(name, key)]));
}

/** Whether a value is the key itself, and not the path of its file. */
export function isPem(value: string): boolean {
  return value.trimStart().startsWith('-----BEGIN');
}

function readTrustedKey(name: string, key: string): string {
  if (isPem(key)) return key;
  try {
    if (statSync(key).size > KEY_FILE_MAX_BYTES) throw new Error('it is too large for a public key');
    return readFileSync(key, 'utf8');
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new PagegateError(
      'config_invalid',
      `The trusted key "${name}" cannot be read from ${key}: ${why}.`,
      { name, path: key },
      { cause },
    );
  }
}
