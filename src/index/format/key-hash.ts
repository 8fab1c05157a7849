/**
 * The hashes of a key: XXH32 with two seeds. In plain JavaScript, because a call into WebAssembly takes four times as long for a
 * name of twenty characters. Keys are ASCII, so each character is one byte.
 */
import { DOMAIN_MAX_BYTES, SEED_A, SEED_B } from './layout.ts';

/** Space for 253 domain codes of 8 bytes: a comparison with a record's domain may read that far, beyond the end of the key. */
const KEY_SPACE_BYTES = 256 * 8;

const PRIME_1 = 0x9e3779b1 | 0;
const PRIME_2 = 0x85ebca77 | 0;
const PRIME_3 = 0xc2b2ae3d | 0;
const PRIME_4 = 0x27d4eb2f;
const PRIME_5 = 0x165667b1;

/** Returns the XXH32 of a range of bytes as an unsigned integer. */
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

/** Returns the first hash of a key. It determines the bucket and the order of records. */
export function hashKeyA(bytes: Uint8Array, start: number, end: number): number {
  return xxh32(bytes, start, end, SEED_A);
}

/** Returns the second hash of a key. Its low 8 bits are the fingerprint, and it breaks ties in the order of records. */
export function hashKeyB(bytes: Uint8Array, start: number, end: number): number {
  return xxh32(bytes, start, end, SEED_B);
}

function round(lane: number, input: number): number {
  const sum = (lane + Math.imul(input, PRIME_2)) | 0;
  return Math.imul((sum << 13) | (sum >>> 19), PRIME_1);
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** The key of a lookup. One object is reused for all lookups, to avoid allocation. */
export class HashedKey {
  /** Size of the key in bytes. */
  size = 0;
  /** The bytes of the key. The bytes after it are stale, from longer keys. */
  readonly view: DataView = new DataView(new ArrayBuffer(KEY_SPACE_BYTES));
  /** All characters of the key, combined by bitwise or. */
  #characterBits = 0;

  /**
   * Sets the key. Returns false if no index can have it (empty or too long). Reads characters one by one, without a call out of JavaScript,
   * so that the processor can begin the next lookup while this one waits for memory.
   */
  set(key: string): boolean {
    const size = key.length;
    if (size === 0 || size > DOMAIN_MAX_BYTES) return false;
    this.size = size;
    const { view } = this;
    let allBits = 0;
    let at = 0;
    for (; at + 4 <= size; at += 4) {
      const a = key.charCodeAt(at);
      const b = key.charCodeAt(at + 1);
      const c = key.charCodeAt(at + 2);
      const d = key.charCodeAt(at + 3);
      allBits |= a | b | c | d;
      view.setInt32(at, a | (b << 8) | (c << 16) | (d << 24), true);
    }
    for (; at < size; at++) {
      const character = key.charCodeAt(at);
      allBits |= character;
      view.setUint8(at, character);
    }
    this.#characterBits = allBits;
    return true;
  }

  /** False if the key has a non-ASCII character. Then `view` and the hashes are wrong, and no record can have this key. */
  get isAscii(): boolean {
    return this.#characterBits < 0x80;
  }

  /** Returns the same as `hashKeyA`. */
  hashA(): number {
    return hashView(this.view, this.size, SEED_A) >>> 0;
  }

  /** Returns the same as `hashKeyB`. */
  hashB(): number {
    return hashView(this.view, this.size, SEED_B) >>> 0;
  }
}

/** `xxh32` of the first `size` bytes of a view. Reads whole words: byte by byte, the lookup of a cached key takes an eighth longer. */
function hashView(view: DataView, size: number, seed: number): number {
  let at = 0;
  let hash: number;
  if (size >= 16) {
    let a = (seed + PRIME_1 + PRIME_2) | 0;
    let b = (seed + PRIME_2) | 0;
    let c = seed | 0;
    let d = (seed - PRIME_1) | 0;
    for (; at + 16 <= size; at += 16) {
      a = round(a, view.getInt32(at, true));
      b = round(b, view.getInt32(at + 4, true));
      c = round(c, view.getInt32(at + 8, true));
      d = round(d, view.getInt32(at + 12, true));
    }
    hash = (merge(a, b, c, d) + size) | 0;
  } else {
    hash = (seed + PRIME_5 + size) | 0;
  }
  for (; at + 4 <= size; at += 4) hash = mixWord(hash, view.getInt32(at, true));
  for (; at < size; at++) hash = mixByte(hash, view.getUint8(at));
  return avalanche(hash);
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
