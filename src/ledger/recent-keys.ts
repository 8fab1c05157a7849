/**
 * The keys that were accepted last, each with what it led to: to know one again costs a fifth of its SHA-256. Where a key is kept
 * depends on a secret, and a comparison reads all of it whatever it finds, so that no answer's time tells anything about a key.
 */
import { randomBytes } from 'node:crypto';
import { API_KEY_LENGTH } from './api-key.ts';

/** Two keys that meet in one place only take turns. */
const PLACES = 1_024;
const HASH_PRIME = 0x01000193;

export class RecentKeys<T> {
  readonly #seed = randomBytes(4).readInt32LE();
  readonly #keys = new Array<string>(PLACES).fill('');
  readonly #values = new Array<T | undefined>(PLACES).fill(undefined);

  find(key: string): T | undefined {
    if (key.length !== API_KEY_LENGTH) return undefined;
    const place = this.#placeOf(key);
    return isSame(this.#keys[place]!, key) ? this.#values[place] : undefined;
  }

  /** Takes a key that was accepted; one of another length is never found again. */
  remember(key: string, value: T): void {
    if (key.length !== API_KEY_LENGTH) return;
    const place = this.#placeOf(key);
    this.#keys[place] = key;
    this.#values[place] = value;
  }

  clear(): void {
    this.#keys.fill('');
    this.#values.fill(undefined);
  }

  #placeOf(key: string): number {
    let hash = this.#seed;
    for (let at = 0; at < API_KEY_LENGTH; at++) hash = Math.imul(hash ^ key.charCodeAt(at), HASH_PRIME);
    return (hash ^ (hash >>> 15)) & (PLACES - 1);
  }
}

/** Whether two texts are one; for texts as long as a key in a time that does not depend on what they hold. */
function isSame(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let differences = 0;
  for (let at = 0; at < a.length; at++) differences |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return differences === 0;
}
