/**
 * A hash map from byte strings to numbers. Lookups create no strings, because a build makes them for every URL of every record. Bytes are
 * read four at a time.
 */
import { QUOTE } from './ascii.ts';

/** An entry of a map. Its key is a tag (any 31-bit integer) and a text (one byte for each character); its value is 0 or greater. */
export interface ByteMapEntry {
  readonly tag: number;
  readonly text: string;
  readonly value: number;
}

/** Returned for a key that the map does not have. */
export const NOT_FOUND = -1;
/** Words of a slot: tag, size of the key in bytes (`EMPTY` if the slot is free), its place in `#keys`, value. */
const SLOT_WORDS = 4;
const EMPTY = -1;
/** Keys up to this size are hashed and compared without a loop, because the processor would often mispredict its end. */
const SHORT_WORDS = 4;
const SHORT_BYTES = 4 * SHORT_WORDS;

/** The map: an open-addressing hash table. */
export class ByteMap {
  #slots: Int32Array = new Int32Array(16 * SLOT_WORDS).fill(EMPTY);
  #mask = 15;
  #count = 0;
  /** For each key, its hash and then its bytes, padded with zeros to whole words and to at least `SHORT_WORDS`. */
  #keys: Int32Array = new Int32Array(256);
  #filled = 0;

  /** If several entries have the same key, uses the first one. */
  constructor(entries: readonly ByteMapEntry[] = []) {
    const key = new ByteKey();
    for (const { tag, text, value } of entries) {
      const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
      key.take(new DataView(bytes.buffer), 0, bytes.length);
      if (this.get(tag, key) === NOT_FOUND) this.add(tag, key, value);
    }
  }

  /** Returns the value of a key, or `NOT_FOUND`. */
  get(tag: number, key: ByteKey): number {
    const slots = this.#slots;
    const { size } = key;
    for (let slot = mixTag(tag, key.hash) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = slot * SLOT_WORDS;
      const slotSize = slots[at + 1]!;
      if (slotSize === EMPTY) return NOT_FOUND;
      if (slotSize === size && slots[at] === tag && this.#isKey(slots[at + 2]!, key)) return slots[at + 3]!;
    }
  }

  /** Adds a key that the map does not have yet. Returns its place, for `textAt`. */
  add(tag: number, key: ByteKey, value: number): number {
    if (2 * (this.#count + 1) > this.#mask + 1) this.#growSlots();
    const words = 1 + Math.max(SHORT_WORDS, (key.size + 3) >>> 2);
    if (this.#filled + words > this.#keys.length) {
      const larger = new Int32Array(2 * this.#keys.length + words);
      larger.set(this.#keys);
      this.#keys = larger;
    }
    const place = this.#filled;
    this.#keys[place] = key.hash;
    key.copyTo(this.#keys, place + 1);
    this.#filled += words;
    this.#count += 1;
    this.#putSlot(tag, key.size, place, value);
    return place;
  }

  /** Returns the text of the key at `place`, which `add` returned. `size`: its size in bytes. */
  textAt(place: number, size: number): string {
    let text = '';
    for (let i = 0; i < size; i++) {
      text += String.fromCharCode((this.#keys[place + 1 + (i >>> 2)]! >>> (8 * (i & 3))) & 0xff);
    }
    return text;
  }

  #putSlot(tag: number, size: number, place: number, value: number): void {
    const slots = this.#slots;
    let slot = mixTag(tag, this.#keys[place]!) & this.#mask;
    while (slots[slot * SLOT_WORDS + 1] !== EMPTY) slot = (slot + 1) & this.#mask;
    const at = slot * SLOT_WORDS;
    slots[at] = tag;
    slots[at + 1] = size;
    slots[at + 2] = place;
    slots[at + 3] = value;
  }

  #growSlots(): void {
    const old = this.#slots;
    this.#slots = new Int32Array(2 * old.length).fill(EMPTY);
    this.#mask = 2 * this.#mask + 1;
    for (let at = 0; at < old.length; at += SLOT_WORDS) {
      if (old[at + 1] !== EMPTY) this.#putSlot(old[at]!, old[at + 1]!, old[at + 2]!, old[at + 3]!);
    }
  }

  #isKey(place: number, key: ByteKey): boolean {
    const keys = this.#keys;
    const differences =
      (keys[place + 1]! ^ key.word0) |
      (keys[place + 2]! ^ key.word1) |
      (keys[place + 3]! ^ key.word2) |
      (keys[place + 4]! ^ key.word3);
    if (differences !== 0) return false;
    return key.size <= SHORT_BYTES || key.hasRest(keys, place + 1);
  }
}

/** A range of bytes to look up in maps. One object is reused for many lookups. */
export class ByteKey {
  size = 0;
  hash = 0;
  /** The first words of the range, with zeros after its end. */
  word0 = 0;
  word1 = 0;
  word2 = 0;
  word3 = 0;
  #source: DataView = new DataView(new ArrayBuffer(0));
  #sourceSize = 0;
  #start = 0;

  /** Sets the range to `source[start, end)`. */
  take(source: DataView, start: number, end: number): void {
    const size = end - start;
    this.#setRange(source, start, size);
    if (start + SHORT_BYTES <= this.#sourceSize) {
      const masks = SHORT_WORDS * (size < SHORT_BYTES ? size : SHORT_BYTES);
      this.#takeFirst(
        source.getInt32(start, true) & MASKS[masks]!,
        source.getInt32(start + 4, true) & MASKS[masks + 1]!,
        source.getInt32(start + 8, true) & MASKS[masks + 2]!,
        source.getInt32(start + 12, true) & MASKS[masks + 3]!,
      );
      if (size > SHORT_BYTES) this.#hashRest();
    } else {
      this.#takeFirst(
        wordUpTo(source, start, end),
        wordUpTo(source, start + 4, end),
        wordUpTo(source, start + 8, end),
        wordUpTo(source, start + 12, end),
      );
    }
  }

  /**
   * Sets the range to the string from `start` to the first quote before `end`. Returns the offset of that quote, or -1. Does not validate the
   * characters of the string: if a map has the string, its characters are those of the map's key.
   */
  takeQuoted(source: DataView, start: number, end: number): number {
    if (start + SHORT_BYTES > end) return this.#takeQuotedSlowly(source, start, start, end);
    const word0 = source.getInt32(start, true);
    const word1 = source.getInt32(start + 4, true);
    const word2 = source.getInt32(start + 8, true);
    const word3 = source.getInt32(start + 12, true);
    const quotes0 = quotesIn(word0);
    const quotes1 = quotesIn(word1);
    const quotes2 = quotesIn(word2);
    const quotes3 = quotesIn(word3);
    if ((quotes0 | quotes1 | quotes2 | quotes3) === 0) {
      return this.#takeQuotedSlowly(source, start, start + SHORT_BYTES, end);
    }
    // No branches from here on. Masks select the bytes of each word before its first quote, or none if an earlier word has a quote.
    const mask0 = bytesBefore(quotes0);
    const mask1 = bytesBefore(quotes1) & allIfZero(quotes0);
    const mask2 = bytesBefore(quotes2) & allIfZero(quotes0 | quotes1);
    const mask3 = bytesBefore(quotes3) & allIfZero(quotes0 | quotes1 | quotes2);
    const size = bytesOf(mask0) + bytesOf(mask1) + bytesOf(mask2) + bytesOf(mask3);
    this.#setRange(source, start, size);
    this.#takeFirst(word0 & mask0, word1 & mask1, word2 & mask2, word3 & mask3);
    return start + size;
  }

  /** Like `takeQuoted`, but searches from `from` on. For long strings and for those near the end. */
  #takeQuotedSlowly(source: DataView, start: number, from: number, end: number): number {
    let at = from;
    let quotes = 0;
    while (at + 4 <= end) {
      quotes = quotesIn(source.getInt32(at, true));
      if (quotes !== 0) break;
      at += 4;
    }
    if (quotes !== 0) at += bytesOf(bytesBefore(quotes));
    else while (at < end && source.getUint8(at) !== QUOTE) at += 1;
    if (at >= end) return -1;
    this.take(source, start, at);
    return at;
  }

  #setRange(source: DataView, start: number, size: number): void {
    this.size = size;
    this.#start = start;
    // Comparing a reference is cheaper than writing it (write barrier).
    if (this.#source === source) return;
    this.#source = source;
    this.#sourceSize = source.byteLength;
  }

  #takeFirst(word0: number, word1: number, word2: number, word3: number): void {
    this.word0 = word0;
    this.word1 = word1;
    this.word2 = word2;
    this.word3 = word3;
    this.hash =
      Math.imul(word0, 0x9e3779b1) ^
      Math.imul(rotate(word1), 0x85ebca77) ^
      Math.imul(word2, 0xc2b2ae3d) ^
      Math.imul(rotate(word3), 0x27d4eb2f);
  }

  #hashRest(): void {
    const source = this.#source;
    const end = this.#start + this.size;
    let { hash } = this;
    // The last word may overlap the one before.
    for (let at = this.#start + SHORT_BYTES; at < end; at += 4) {
      const value = Math.imul(hash ^ source.getInt32(Math.min(at, end - 4), true), 0x9e3779b1);
      hash = value ^ (value >>> 15);
    }
    this.hash = hash;
  }

  /** Copies the range as words, padded with zeros to whole words and to at least `SHORT_WORDS`. */
  copyTo(words: Int32Array, start: number): void {
    words[start] = this.word0;
    words[start + 1] = this.word1;
    words[start + 2] = this.word2;
    words[start + 3] = this.word3;
    const end = this.#start + this.size;
    let word = start + SHORT_WORDS;
    for (let at = this.#start + SHORT_BYTES; at < end; at += 4, word++) words[word] = wordUpTo(this.#source, at, end);
  }

  /** True if the bytes after the first words equal those of the key at word `start` of `keys`. */
  hasRest(keys: Int32Array, start: number): boolean {
    const source = this.#source;
    const end = this.#start + this.size;
    let word = start + SHORT_WORDS;
    let at = this.#start + SHORT_BYTES;
    for (; at + 4 <= end; at += 4, word++) if (source.getInt32(at, true) !== keys[word]) return false;
    return at === end || source.getInt32(end - 4, true) >>> (8 * (at + 4 - end)) === keys[word];
  }
}

/** For each size up to `SHORT_BYTES`, masks of the bytes of the first words that belong to a key. A lookup avoids mispredicted branches. */
const MASKS = new Int32Array(SHORT_WORDS * (SHORT_BYTES + 1));
for (let size = 0; size <= SHORT_BYTES; size++) {
  for (let word = 0; word < SHORT_WORDS; word++) {
    const bytes = Math.min(4, Math.max(0, size - 4 * word));
    MASKS[SHORT_WORDS * size + word] = bytes === 4 ? -1 : (1 << (8 * bytes)) - 1;
  }
}

/** Marks quotes: the lowest bit set is the highest bit of the first byte that is a quote. Returns 0 if there is none. */
function quotesIn(word: number): number {
  const differences = word ^ 0x22222222;
  return (differences - 0x01010101) & ~differences & 0x80808080;
}

/** Returns a mask of the bytes before the first marked byte. */
function bytesBefore(marks: number): number {
  return ((marks & -marks) >>> 7) - 1;
}

function allIfZero(marks: number): number {
  return ~((marks | -marks) >> 31);
}

/** Returns the number of bytes in a mask. */
function bytesOf(mask: number): number {
  return (32 - Math.clz32(mask)) >>> 3;
}

function rotate(word: number): number {
  return (word << 15) | (word >>> 17);
}

/** Reads the word at `at`, with zeros from `end` on. */
function wordUpTo(source: DataView, at: number, end: number): number {
  if (at + 4 <= end) return source.getInt32(at, true);
  let word = 0;
  for (let i = at; i < end; i++) word |= source.getUint8(i) << (8 * (i - at));
  return word;
}

function mixTag(tag: number, hash: number): number {
  const value = Math.imul(hash ^ Math.imul(tag + 1, 0x9e3779b1) ^ (hash >>> 15), 0x85ebca77);
  return value ^ (value >>> 15);
}
