/**
 * The hash of a key: XXH32 with two seeds, in plain JavaScript because a call into WebAssembly costs four times as much for a
 * name of twenty characters. Keys are ASCII, so a character is a byte.
 */
import { MAX_DOMAIN_SIZE_BYTES, SEED_A, SEED_B } from './layout.ts';

/** A record's domain has at most 253 codes of 8 bytes: so far may a comparison go on beyond the key before it ends. */
const KEY_ROOM_BYTES = 256 * 8;

const PRIME_1 = 0x9e3779b1 | 0;
const PRIME_2 = 0x85ebca77 | 0;
const PRIME_3 = 0xc2b2ae3d | 0;
const PRIME_4 = 0x27d4eb2f;
const PRIME_5 = 0x165667b1;

// Where the lanes of both hashes begin: computed once, as 32-bit integers.
const A0 = (SEED_A + PRIME_1 + PRIME_2) | 0;
const A1 = (SEED_A + PRIME_2) | 0;
const A2 = SEED_A | 0;
const A3 = (SEED_A - PRIME_1) | 0;
const B0 = (SEED_B + PRIME_1 + PRIME_2) | 0;
const B1 = (SEED_B + PRIME_2) | 0;
const B2 = SEED_B | 0;
const B3 = (SEED_B - PRIME_1) | 0;
const SHORT_A = (SEED_A + PRIME_5) | 0;
const SHORT_B = (SEED_B + PRIME_5) | 0;

/** XXH32 of a range of bytes, as an unsigned number. */
export function xxh32(bytes: Uint8Array, start: number, end: number, seed: number): number {
  let at = start;
  let hash: number;
  const size = end - start;
  if (size >= 16) {
    let a = (seed + PRIME_1 + PRIME_2) | 0;
    let b = (seed + PRIME_2) | 0;
    let c = seed | 0;
    let d = (seed - PRIME_1) | 0;
    for (; at + 16 <= end; at += 16) {
      a = round(a, word(bytes, at));
      b = round(b, word(bytes, at + 4));
      c = round(c, word(bytes, at + 8));
      d = round(d, word(bytes, at + 12));
    }
    hash = (merge(a, b, c, d) + size) | 0;
  } else {
    hash = (seed + PRIME_5 + size) | 0;
  }
  for (; at + 4 <= end; at += 4) hash = mixWord(hash, word(bytes, at));
  for (; at < end; at++) hash = mixByte(hash, bytes[at]!);
  return avalanche(hash) >>> 0;
}

function round(lane: number, input: number): number {
  const sum = (lane + Math.imul(input, PRIME_2)) | 0;
  return Math.imul((sum << 13) | (sum >>> 19), PRIME_1);
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** Both hashes of a key; one object that is filled again for each look-up, so that none is allocated. */
export class HashedKey {
  key = '';
  /** The key in bytes, once `spell` has put it there. What follows it is left over from longer keys. */
  readonly view: DataView = new DataView(new ArrayBuffer(KEY_ROOM_BYTES));
  /** Chooses the line, and the order within it. */
  hashA = 0;
  /** Its low 8 bits are the fingerprint; it breaks ties in the order. */
  hashB = 0;

  /**
   * Takes a key; false when no index can have it (empty, too long). The hashes are `xxh32` of its bytes with both seeds. A character
   * beyond ASCII gives any hash: whoever finds a record compares the key itself. Characters are read one by one, without a call out of
   * JavaScript, so that the machine goes on with the next look-up while one waits for memory: a miss takes a fifth less time.
   */
  set(key: string): boolean {
    const size = key.length;
    if (size === 0 || size > MAX_DOMAIN_SIZE_BYTES) return false;
    this.key = key;
    let hashA: number;
    let hashB: number;
    let at = 0;
    if (size >= 16) {
      let a0 = A0;
      let a1 = A1;
      let a2 = A2;
      let a3 = A3;
      let b0 = B0;
      let b1 = B1;
      let b2 = B2;
      let b3 = B3;
      for (; at + 16 <= size; at += 16) {
        const w0 = keyWord(key, at);
        a0 = round(a0, w0);
        const w1 = keyWord(key, at + 4);
        a1 = round(a1, w1);
        const w2 = keyWord(key, at + 8);
        a2 = round(a2, w2);
        const w3 = keyWord(key, at + 12);
        a3 = round(a3, w3);
        b0 = round(b0, w0);
        b1 = round(b1, w1);
        b2 = round(b2, w2);
        b3 = round(b3, w3);
      }
      hashA = (merge(a0, a1, a2, a3) + size) | 0;
      hashB = (merge(b0, b1, b2, b3) + size) | 0;
    } else {
      hashA = (SHORT_A + size) | 0;
      hashB = (SHORT_B + size) | 0;
    }
    for (; at + 4 <= size; at += 4) {
      const word = keyWord(key, at);
      hashA = mixWord(hashA, word);
      hashB = mixWord(hashB, word);
    }
    for (; at < size; at++) {
      const byte = key.charCodeAt(at);
      hashA = mixByte(hashA, byte);
      hashB = mixByte(hashB, byte);
    }
    this.hashA = avalanche(hashA) >>> 0;
    this.hashB = avalanche(hashB) >>> 0;
    return true;
  }

  /** Puts the key into `view`; false when it has a character beyond ASCII, which no record's domain has. Needed where a fingerprint fits. */
  spell(): boolean {
    const { key, view } = this;
    const size = key.length;
    let seen = 0;
    let at = 0;
    for (; at + 4 <= size; at += 4) {
      const a = key.charCodeAt(at);
      const b = key.charCodeAt(at + 1);
      const c = key.charCodeAt(at + 2);
      const d = key.charCodeAt(at + 3);
      seen |= a | b | c | d;
      view.setInt32(at, a | (b << 8) | (c << 16) | (d << 24), true);
    }
    for (; at < size; at++) {
      const character = key.charCodeAt(at);
      seen |= character;
      view.setUint8(at, character);
    }
    return seen < 0x80;
  }
}

/** Four characters as a word. */
function keyWord(key: string, at: number): number {
  return (
    key.charCodeAt(at) | (key.charCodeAt(at + 1) << 8) | (key.charCodeAt(at + 2) << 16) | (key.charCodeAt(at + 3) << 24)
  );
}

function merge(a: number, b: number, c: number, d: number): number {
  return (((a << 1) | (a >>> 31)) + ((b << 7) | (b >>> 25)) + ((c << 12) | (c >>> 20)) + ((d << 18) | (d >>> 14))) | 0;
}

function mixWord(hash: number, word: number): number {
  const sum = (hash + Math.imul(word, PRIME_3)) | 0;
  return Math.imul((sum << 17) | (sum >>> 15), PRIME_4);
}

function mixByte(hash: number, byte: number): number {
  const sum = (hash + Math.imul(byte, PRIME_5)) | 0;
  return Math.imul((sum << 11) | (sum >>> 21), PRIME_1);
}

function avalanche(hash: number): number {
  let value = Math.imul(hash ^ (hash >>> 15), PRIME_2);
  value = Math.imul(value ^ (value >>> 13), PRIME_3);
  return value ^ (value >>> 16);
}
