/**
 * The hash of a key: XXH32 with two seeds, in plain JavaScript because a call into WebAssembly costs four times as much for a
 * name of twenty characters. Keys are ASCII, so a character is a byte.
 */
import { MAX_DOMAIN_SIZE_BYTES, SEED_A, SEED_B } from './layout.ts';

const PRIME_1 = 0x9e3779b1 | 0;
const PRIME_2 = 0x85ebca77 | 0;
const PRIME_3 = 0xc2b2ae3d | 0;
const PRIME_4 = 0x27d4eb2f;
const PRIME_5 = 0x165667b1;

/** XXH32 of a range of bytes, as an unsigned number. */
export function xxh32(bytes: Uint8Array, start: number, end: number, seed: number): number {
  let at = start;
  let hash: number;
  if (end - start >= 16) {
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
    hash =
      (((a << 1) | (a >>> 31)) +
        ((b << 7) | (b >>> 25)) +
        ((c << 12) | (c >>> 20)) +
        ((d << 18) | (d >>> 14)) +
        (end - start)) |
      0;
  } else {
    hash = (seed + PRIME_5 + (end - start)) | 0;
  }
  for (; at + 4 <= end; at += 4) {
    hash = (hash + Math.imul(word(bytes, at), PRIME_3)) | 0;
    hash = Math.imul((hash << 17) | (hash >>> 15), PRIME_4);
  }
  for (; at < end; at++) {
    hash = (hash + Math.imul(bytes[at]!, PRIME_5)) | 0;
    hash = Math.imul((hash << 11) | (hash >>> 21), PRIME_1);
  }
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function round(lane: number, input: number): number {
  const sum = (lane + Math.imul(input, PRIME_2)) | 0;
  return Math.imul((sum << 13) | (sum >>> 19), PRIME_1);
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** A key's bytes and both hashes; one object that is filled again for each look-up, so that none is allocated. */
export class HashedKey {
  /** The key's bytes, from 0. */
  readonly bytes: Uint8Array = new Uint8Array(256);
  size = 0;
  /** Chooses the line, and the order within it. */
  hashA = 0;
  /** Its low 8 bits are the fingerprint; it breaks ties in the order. */
  hashB = 0;

  /** Takes a key; false when no index can have it (empty, too long, not printable ASCII). */
  set(key: string): boolean {
    const size = key.length;
    if (size === 0 || size > MAX_DOMAIN_SIZE_BYTES) return false;
    const bytes = this.bytes;
    for (let i = 0; i < size; i++) {
      const code = key.charCodeAt(i);
      if (code > 0x7e) return false;
      bytes[i] = code;
    }
    this.size = size;
    this.hashA = xxh32(bytes, 0, size, SEED_A);
    this.hashB = xxh32(bytes, 0, size, SEED_B);
    return true;
  }
}
