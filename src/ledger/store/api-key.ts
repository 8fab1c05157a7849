/** The format of an API key: `pg_`, 32 random base62 characters, a checksum of 6 characters. */
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PREFIX = 'pg_';
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
/** Length of a key, in characters. */
const API_KEY_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH;
const SHAPE = /^pg_[0-9A-Za-z]{38}$/;

/** CRC-32 of the part before it, as 6 base62 digits (62^6 exceeds 2^32). It detects typing errors; it is not a secret. */
function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    text = ALPHABET[rest % 62]! + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}

/** Creates a key from the system's random source: 190 bits, every character equally likely. */
export function createApiKey(): string {
  let body = PREFIX;
  while (body.length < PREFIX.length + RANDOM_LENGTH) {
    for (const byte of randomBytes(48)) {
      // 248 = 4 · 62: larger bytes would make the first characters of the alphabet more likely.
      if (byte < 248 && body.length < PREFIX.length + RANDOM_LENGTH) body += ALPHABET[byte % 62]!;
    }
  }
  return body + checksum(body);
}

/** Whether a text has the format and the checksum of a key. A text that fails is never looked up in the database. */
export function isApiKeyShaped(text: string): boolean {
  if (text.length !== API_KEY_LENGTH || !SHAPE.test(text)) return false;
  const body = text.slice(0, API_KEY_LENGTH - CHECKSUM_LENGTH);
  return checksum(body) === text.slice(API_KEY_LENGTH - CHECKSUM_LENGTH);
}

/** SHA-256 in hexadecimal. Keys are looked up only by this hash, so that the time of a comparison reveals nothing about the key. */
export function hashApiKey(key: string): string {
  return hash('sha256', key, 'hex');
}
