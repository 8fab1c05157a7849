/**
 * Tokens of ASCII letters and digits, and the lists that each is in, as flat tables. Most words that are asked for are not tokens: a table of
 * bits, small enough to stay in the processor's cache, says so. What a token is made of lies together, and not in thousands of objects.
 */
import { FOLD, HASH_PRIME, HASH_SEED } from '../url/characters.ts';

/** Bits of the filter for each token: of other words about one in ten passes. */
const FILTER_BITS_PER_TOKEN = 8;
const SLOTS_PER_TOKEN = 2;
const NO_ENTRY = -1;
const BYTES_AT_FIRST = 4_096;
/** In no list. */
export const NO_LISTS: readonly number[] = Object.freeze([]);

/** Whether one of some token lists is in a set, which has a 1 for each list in it. */
export function isAnyIn(lists: readonly number[], set: Uint8Array): boolean {
  for (let at = 0; at < lists.length; at++) if (set[lists[at]!] === 1) return true;
  return false;
}

/** A hash table behind a filter; filled once. Its entries are in the order in which their tokens came. */
export class TokenTable {
  readonly #filter: Uint32Array;
  /** For each slot its entry, and above `#entryBits` the bits of its hash: nearly every other word on the way to an entry is told by them. */
  readonly #slots: Int32Array;
  readonly #entryBits: number;
  /** All tokens, one behind the other; the token of an entry ends where that of the next begins. */
  #bytes = new Uint8Array(BYTES_AT_FIRST);
  readonly #starts: Uint32Array;
  readonly #lists: (readonly number[])[] = [];

  /** @param most no more tokens are added */
  constructor(most: number) {
    this.#filter = new Uint32Array(powerOfTwo(most * FILTER_BITS_PER_TOKEN) / 32);
    this.#entryBits = powerOfTwo(most + 1) - 1;
    this.#slots = new Int32Array(powerOfTwo(most * SLOTS_PER_TOKEN)).fill(NO_ENTRY);
    this.#starts = new Uint32Array(most + 1);
  }

  /**
   * Adds the token that two texts of lower-case letters and digits make, one behind the other; `put` tells its lists from those that it is in
   * already.
   */
  add(first: string, then: string, put: (before: readonly number[]) => readonly number[]): void {
    const entry = this.#lists.length;
    const start = this.#starts[entry]!;
    const end = start + first.length + then.length;
    if (end > this.#bytes.length) {
      const bytes = new Uint8Array(2 * end);
      bytes.set(this.#bytes);
      this.#bytes = bytes;
    }
    const mixed = mix(this.#write(then, start + first.length, this.#write(first, start, HASH_SEED)));
    let slot = mixed & (this.#slots.length - 1);
    for (; this.#slots[slot] !== NO_ENTRY; slot = (slot + 1) & (this.#slots.length - 1)) {
      const taken = this.#slots[slot]!;
      const other = taken & this.#entryBits;
      if (((taken ^ mixed) & ~this.#entryBits) !== 0 || !this.#isSame(other, start, end)) continue;
      this.#lists[other] = put(this.#lists[other]!);
      return;
    }
    this.#slots[slot] = (mixed & ~this.#entryBits) | entry;
    const bit = mixed & (this.#filter.length * 32 - 1);
    this.#filter[bit >>> 5]! |= 1 << (bit & 31);
    this.#lists.push(put(NO_LISTS));
    this.#starts[entry + 1] = end;
  }

  /** Writes a text behind the tokens that are there, and returns the hash that goes on over it. */
  #write(text: string, start: number, before: number): number {
    let hash = before;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      this.#bytes[start + at] = code;
      hash = Math.imul(hash ^ code, HASH_PRIME);
    }
    return hash;
  }

  /** Whether an entry is the token that was written between `start` and `end`. */
  #isSame(entry: number, start: number, end: number): boolean {
    const own = this.#starts[entry]!;
    if (this.#starts[entry + 1]! - own !== end - start) return false;
    for (let at = start; at < end; at++) if (this.#bytes[own + at - start] !== this.#bytes[at]) return false;
    return true;
  }

  /** Every token with its lists. */
  *entries(): IterableIterator<readonly [token: string, lists: readonly number[]]> {
    for (const [entry, lists] of this.#lists.entries()) yield [this.#tokenOf(entry), lists];
  }

  /** The tokens whose lists are such. */
  tokensWhere(are: (lists: readonly number[]) => boolean): string[] {
    return this.#lists.flatMap((lists, entry) => (are(lists) ? [this.#tokenOf(entry)] : []));
  }

  #tokenOf(entry: number): string {
    return Buffer.from(this.#bytes.subarray(this.#starts[entry], this.#starts[entry + 1])).toString('latin1');
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

  /** Lists of a token that stands for itself. */
  findToken(token: string): readonly number[] {
    let hash = HASH_SEED;
    for (let at = 0; at < token.length; at++) hash = Math.imul(hash ^ token.charCodeAt(at), HASH_PRIME);
    return this.find(hash, token, 0, token.length);
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

function mix(hash: number): number {
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** The smallest power of two that is at least `least`, and not less than 64. */
function powerOfTwo(least: number): number {
  return 2 ** Math.max(6, Math.ceil(Math.log2(least)));
}
