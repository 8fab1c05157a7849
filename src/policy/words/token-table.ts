/**
 * Tokens of ASCII letters and digits, and the lists that each is in, as flat tables. Most words that are asked for are not tokens: a table of
 * bits, small enough to stay in the processor's cache, says so. What a token is made of lies together, and not in thousands of objects.
 */
import { FOLD, HASH_PRIME, HASH_SEED } from '../url/characters.ts';

/** Bits of the filter for each token: of other words about one in ten passes. */
const FILTER_BITS_PER_TOKEN = 8;
const SLOTS_PER_TOKEN = 2;
const NO_ENTRY = -1;
/** In no list. */
export const NO_LISTS: readonly number[] = Object.freeze([]);

/** Whether one of some token lists is in a set, which has a 1 for each list in it. */
export function isAnyIn(lists: readonly number[], set: Uint8Array): boolean {
  for (let at = 0; at < lists.length; at++) if (set[lists[at]!] === 1) return true;
  return false;
}

/** A hash table behind a filter; filled once. */
export class TokenTable {
  readonly #filter: Uint32Array;
  /** For each slot its entry, and above `#entryBits` the bits of its hash: nearly every other word on the way to an entry is told by them. */
  readonly #slots: Int32Array;
  readonly #entryBits: number;
  /** All tokens, one behind the other; the token of an entry ends where that of the next begins. */
  readonly #bytes: Buffer;
  readonly #starts: Uint32Array;
  readonly #lists: (readonly number[])[] = [];

  /** @param tokens each once, of lower-case letters and digits alone */
  constructor(tokens: readonly (readonly [token: string, lists: readonly number[]])[]) {
    this.#filter = new Uint32Array(powerOfTwo(tokens.length * FILTER_BITS_PER_TOKEN) / 32);
    this.#entryBits = powerOfTwo(tokens.length + 1) - 1;
    this.#slots = new Int32Array(powerOfTwo(tokens.length * SLOTS_PER_TOKEN)).fill(NO_ENTRY);
    this.#bytes = Buffer.from(tokens.map(([token]) => token).join(''), 'latin1');
    this.#starts = new Uint32Array(tokens.length + 1);
    let end = 0;
    for (const [entry, [token, lists]] of tokens.entries()) {
      this.#insert(hashOf(token), entry);
      this.#lists.push(lists);
      end += token.length;
      this.#starts[entry + 1] = end;
    }
  }

  #insert(hash: number, entry: number): void {
    const mixed = mix(hash);
    const bit = mixed & (this.#filter.length * 32 - 1);
    this.#filter[bit >>> 5]! |= 1 << (bit & 31);
    let slot = mixed & (this.#slots.length - 1);
    while (this.#slots[slot] !== NO_ENTRY) slot = (slot + 1) & (this.#slots.length - 1);
    this.#slots[slot] = (mixed & ~this.#entryBits) | entry;
  }

  /** Lists of the token that ASCII text between `start` and `end` spells, separators left out; `hash` is that of its letters and digits. */
  find(hash: number, text: string, start: number, end: number): readonly number[] {
    const mixed = mix(hash);
    const bit = mixed & (this.#filter.length * 32 - 1);
    if (((this.#filter[bit >>> 5]! >>> (bit & 31)) & 1) === 0) return NO_LISTS;
    for (let slot = mixed & (this.#slots.length - 1); ; slot = (slot + 1) & (this.#slots.length - 1)) {
      const taken = this.#slots[slot]!;
      if (taken === NO_ENTRY) return NO_LISTS;
      if (((taken ^ mixed) & ~this.#entryBits) !== 0) continue;
      const entry = taken & this.#entryBits;
      if (this.#isSpelled(entry, text, start, end)) return this.#lists[entry]!;
    }
  }

  #isSpelled(entry: number, text: string, start: number, end: number): boolean {
    const bytes = this.#bytes;
    let own = this.#starts[entry]!;
    const ownEnd = this.#starts[entry + 1]!;
    for (let at = start; at < end; at++) {
      const folded = FOLD[text.charCodeAt(at)]!;
      if (folded === 0) continue;
      if (own === ownEnd || bytes[own] !== folded) return false;
      own++;
    }
    return own === ownEnd;
  }
}

function hashOf(token: string): number {
  let hash = HASH_SEED;
  for (let at = 0; at < token.length; at++) hash = Math.imul(hash ^ token.charCodeAt(at), HASH_PRIME);
  return hash;
}

function mix(hash: number): number {
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** The smallest power of two that is at least `least`, and not less than 64. */
function powerOfTwo(least: number): number {
  return 2 ** Math.max(6, Math.ceil(Math.log2(least)));
}
