/** The API key: `pg_`, 32 random base62 characters, 6 characters of checksum. */
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PREFIX = 'pg_';
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
/** Characters of a whole key. */
const API_KEY_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH;
const SHAPE = /^pg_[0-9A-Za-z]{38}$/;

/** CRC-32 of the part before it, as 6 base62 digits (62^6 exceeds 2^32). It catches typing, it is no secret. */
function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    text = ALPHABET[rest % 62]! + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}

/** Makes a key from the system's random source: 190 bits, every character equally likely. */
export function createApiKey(): string {
  let body = PREFIX;
  while (body.length < PREFIX.length + RANDOM_LENGTH) {
    for (const byte of randomBytes(48)) {
      // 248 = 4 · 62: what lies above would make the first characters likelier.
      if (byte < 248 && body.length < PREFIX.length + RANDOM_LENGTH) body += ALPHABET[byte % 62]!;
    }
  }
  return body + checksum(body);
}

/** Whether a text has the shape and the checksum of a key; what fails never reaches the database. */
export function isApiKeyShaped(text: string): boolean {
  if (text.length !== API_KEY_LENGTH || !SHAPE.test(text)) return false;
  const body = text.slice(0, API_KEY_LENGTH - CHECKSUM_LENGTH);
  return checksum(body) === text.slice(API_KEY_LENGTH - CHECKSUM_LENGTH);
}

/** SHA-256 in hexadecimal: the only form in which a key is looked up, so that no comparison depends on the key itself. */
export function hashApiKey(key: string): string {
  return hash('sha256', key, 'hex');
}
