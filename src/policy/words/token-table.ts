/**
 * Tokens of ASCII letters and digits, and the lists that each is in, as flat tables. Most words that are looked up are not tokens: a bit
 * filter that is small enough for the processor's cache rejects them. The data of all tokens is contiguous instead of being in thousands of
 * objects.
 */
import { HASH_PRIME, HASH_SEED } from '../../bytes/fnv.ts';
import { FOLD } from '../url/characters.ts';

/** Bits of the filter for each token. About one in ten other words passes it. */
const FILTER_BITS_PER_TOKEN = 8;
const SLOTS_PER_TOKEN = 2;
const NO_ENTRY = -1;
const BYTES_AT_FIRST = 4_096;
/** The lists of a word that is not a token. */
export const NO_LISTS: readonly number[] = Object.freeze([]);

/** Whether at least one of the token lists is in a set, which has a 1 for each list in it. */
export function isAnyIn(lists: readonly number[], set: Uint8Array): boolean {
  for (let at = 0; at < lists.length; at++) if (set[lists[at]!] === 1) return true;
  return false;
}

/** A hash table behind a filter; filled once. Its entries are in the order in which their tokens were added. */
export class TokenTable {
  readonly #filter: Uint32Array;
  /** For each slot, its entry in the bits of `#entryBits`, and bits of the hash above them. These reject nearly every other word while probing. */
  readonly #slots: Int32Array;
  readonly #entryBits: number;
  /** All tokens, concatenated. The token of an entry ends where the next one begins. */
  #bytes = new Uint8Array(BYTES_AT_FIRST);
  readonly #starts: Uint32Array;
  readonly #lists: (readonly number[])[] = [];

  /** @param capacity the largest number of tokens that are added */
  constructor(capacity: number) {
    this.#filter = new Uint32Array(powerOfTwo(capacity * FILTER_BITS_PER_TOKEN) / 32);
    this.#entryBits = powerOfTwo(capacity + 1) - 1;
    this.#slots = new Int32Array(powerOfTwo(capacity * SLOTS_PER_TOKEN)).fill(NO_ENTRY);
    this.#starts = new Uint32Array(capacity + 1);
  }

  /**
   * Adds the token that is the concatenation of two texts of lower-case letters and digits. `update` returns its new lists, given those
   * that it is in already.
   */
  add(first: string, second: string, update: (before: readonly number[]) => readonly number[]): void {
    const entry = this.#lists.length;
    const start = this.#starts[entry]!;
    const end = start + first.length + second.length;
    if (end > this.#bytes.length) {
      const bytes = new Uint8Array(2 * end);
      bytes.set(this.#bytes);
      this.#bytes = bytes;
    }
    const mixed = mix(this.#write(second, start + first.length, this.#write(first, start, HASH_SEED)));
    let slot = mixed & (this.#slots.length - 1);
    for (; this.#slots[slot] !== NO_ENTRY; slot = (slot + 1) & (this.#slots.length - 1)) {
      const value = this.#slots[slot]!;
      const existing = value & this.#entryBits;
      if (((value ^ mixed) & ~this.#entryBits) !== 0 || !this.#isSame(existing, start, end)) continue;
      this.#lists[existing] = update(this.#lists[existing]!);
      return;
    }
    this.#slots[slot] = (mixed & ~this.#entryBits) | entry;
    const bit = mixed & (this.#filter.length * 32 - 1);
    this.#filter[bit >>> 5]! |= 1 << (bit & 31);
    this.#lists.push(update(NO_LISTS));
    this.#starts[entry + 1] = end;
  }

  /** Writes a text at `start`, after the existing tokens. Returns the hash `before`, continued over the text. */
  #write(text: string, start: number, before: number): number {
    let hash = before;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      this.#bytes[start + at] = code;
      hash = Math.imul(hash ^ code, HASH_PRIME);
    }
    return hash;
  }

  /** Whether an entry is the token that was just written between `start` and `end`. */
  #isSame(entry: number, start: number, end: number): boolean {
    const entryStart = this.#starts[entry]!;
    if (this.#starts[entry + 1]! - entryStart !== end - start) return false;
    for (let at = start; at < end; at++) if (this.#bytes[entryStart + at - start] !== this.#bytes[at]) return false;
    return true;
  }

  /** Yields every token with its lists. */
  *entries(): IterableIterator<readonly [token: string, lists: readonly number[]]> {
    for (const [entry, lists] of this.#lists.entries()) yield [this.#tokenOf(entry), lists];
  }

  /** Returns the tokens whose lists match. */
  tokensWhere(match: (lists: readonly number[]) => boolean): string[] {
    return this.#lists.flatMap((lists, entry) => (match(lists) ? [this.#tokenOf(entry)] : []));
  }

  #tokenOf(entry: number): string {
    return Buffer.from(this.#bytes.subarray(this.#starts[entry], this.#starts[entry + 1])).toString('latin1');
  }

  /**
   * Returns the lists of the token that an ASCII text spells between `start` and `end`, ignoring separators. `hash` is the hash of its
   * letters and digits.
   */
  find(hash: number, text: string, start: number, end: number): readonly number[] {
    const mixed = mix(hash);
    const bit = mixed & (this.#filter.length * 32 - 1);
    if (((this.#filter[bit >>> 5]! >>> (bit & 31)) & 1) === 0) return NO_LISTS;
    for (let slot = mixed & (this.#slots.length - 1); ; slot = (slot + 1) & (this.#slots.length - 1)) {
      const value = this.#slots[slot]!;
      if (value === NO_ENTRY) return NO_LISTS;
      if (((value ^ mixed) & ~this.#entryBits) !== 0) continue;
      const entry = value & this.#entryBits;
      if (this.#isSpelled(entry, text, start, end)) return this.#lists[entry]!;
    }
  }

  /** Returns the lists of a token that is in its stored form. */
  findToken(token: string): readonly number[] {
    let hash = HASH_SEED;
    for (let at = 0; at < token.length; at++) hash = Math.imul(hash ^ token.charCodeAt(at), HASH_PRIME);
    return this.find(hash, token, 0, token.length);
  }

  #isSpelled(entry: number, text: string, start: number, end: number): boolean {
    const bytes = this.#bytes;
    let letter = this.#starts[entry]!;
    const entryEnd = this.#starts[entry + 1]!;
    for (let at = start; at < end; at++) {
      const folded = FOLD[text.charCodeAt(at)]!;
      if (folded === 0) continue;
      if (letter === entryEnd || bytes[letter] !== folded) return false;
      letter++;
    }
    return letter === entryEnd;
  }
}

function mix(hash: number): number {
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** Returns the smallest power of two that is at least `least`, and not less than 64. */
function powerOfTwo(least: number): number {
  return 2 ** Math.max(6, Math.ceil(Math.log2(least)));
}
