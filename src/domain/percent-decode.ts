/** Decodes percent escapes once: UTF-8 as in the URL standard, and two other forms that some servers still understand. */
import { PERCENT, SLASH } from '../bytes/ascii.ts';

const utf8 = new TextDecoder('utf-8');

/** A percent escape: `%41` or `%u0041`. */
const ESCAPE = /%(?:u[0-9a-f]{2})?[0-9a-f]{2}/i;

/**
 * Percent-decodes a text once, as UTF-8. Other text stays; bytes that are not UTF-8 become U+FFFD. Also decodes `%u0041`, which JavaScript's
 * `escape` writes and IIS reads, and overlong UTF-8 (`%c1%81`, see {@link hasOverlongSequences}), as some servers do. Linear in the length.
 */
export function percentDecodeOnce(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return decodeLoosely(text);
  }
}

/** Whether a text still contains a percent escape after one decoding. */
export function isEncodedTwice(text: string, decoded: string = percentDecodeOnce(text)): boolean {
  return text.includes('%') && ESCAPE.test(decoded);
}

function decodeLoosely(text: string): string {
  const bytes = Buffer.from(text, 'utf8');
  let size = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] === PERCENT ? hexByte(bytes, at + 1) : -1;
    if (byte >= 0) {
      bytes[size++] = byte;
      at += 2;
      continue;
    }
    const unit = bytes[at] === PERCENT ? hexUnit(bytes, at + 1) : -1;
    if (unit < 0) {
      bytes[size++] = bytes[at]!;
      continue;
    }
    // A surrogate pair is two escapes.
    const low = isHighSurrogate(unit) && bytes[at + 6] === PERCENT ? hexUnit(bytes, at + 7) : -1;
    const isPair = low >= 0xdc00 && low <= 0xdfff;
    const character = isPair ? String.fromCharCode(unit, low) : String.fromCharCode(unit);
    // Never longer than the escape: at most three bytes for six, four for twelve.
    size += bytes.write(character, size, 'utf8');
    at += isPair ? 11 : 5;
  }
  return utf8.decode(bytes.subarray(0, shortenOverlong(bytes, size)));
}

/**
 * Replaces overlong UTF-8 sequences with the shortest ones, in place, and returns the new size. Changes only runs of non-ASCII bytes that are
 * UTF-8 throughout: in GBK, Big5 or EUC-JP, `C1 BF` is an ordinary letter.
 */
function shortenOverlong(bytes: Uint8Array, size: number): number {
  let end = 0;
  for (let at = 0; at < size; ) {
    if (bytes[at]! < 0x80) {
      bytes[end++] = bytes[at++]!;
      continue;
    }
    let next = at + 1;
    while (next < size && bytes[next]! >= 0x80) next++;
    if (hasOverlongSequences(bytes, at, next, size)) {
      end = writeShortest(bytes, at, next, end);
    } else {
      bytes.copyWithin(end, at, next);
      end += next - at;
    }
    at = next;
  }
  return end;
}

/** Whether `bytes[start, stop)`, a run of non-ASCII bytes, can only be UTF-8 with overlong sequences. */
function hasOverlongSequences(bytes: Uint8Array, start: number, stop: number, size: number): boolean {
  let overlong = 0;
  let dots = 0;
  let slashes = 0;
  let sequences = 0;
  for (let at = start; at < stop; ) {
    const length = lengthOf(bytes[at]!);
    const code = length > 1 ? codeOf(bytes, at, length, stop) : -1;
    if (code < 0 || code > 0x10_ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
    if (code < SMALLEST[length]!) {
      if (code < 0x80 && !HIDDEN.test(String.fromCharCode(code))) return false;
      overlong++;
      if (length === 2 && code === 0x2e) dots++;
      if (length === 2 && code === 0x2f) slashes++;
    } else if (length > 4) {
      return false;
    }
    sequences++;
    at += length;
  }
  // A segment of one dot has no effect, and `C0 AE` is a word in EUC-JP.
  const isSegment = (start === 0 || bytes[start - 1] === SLASH) && (stop === size || bytes[stop] === SLASH);
  return overlong > 0 && !(isSegment && dots === 1 && dots + slashes === sequences);
}

/** The ASCII characters that an attacker may hide in overlong sequences: characters of words, separators and `%`. */
const HIDDEN = /[\w./\\%-]/;

/** Copies `bytes[start, stop)` to offset `to` with every UTF-8 sequence in its shortest form. Returns the end of the copy. */
function writeShortest(bytes: Uint8Array, start: number, stop: number, to: number): number {
  let end = to;
  for (let at = start; at < stop; ) {
    const length = lengthOf(bytes[at]!);
    const code = codeOf(bytes, at, length, stop);
    if (code >= SMALLEST[length]!) {
      for (let rest = at; rest < at + length; rest++) bytes[end++] = bytes[rest]!;
    } else if (code < 0x80) {
      bytes[end++] = code;
    } else if (code < 0x800) {
      bytes[end++] = 0xc0 | (code >> 6);
      bytes[end++] = 0x80 | (code & 0x3f);
    } else {
      // An overlong sequence whose shortest form has three bytes has at least four, so it fits.
      bytes[end++] = 0xe0 | ((code >> 12) & 0x0f);
      bytes[end++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[end++] = 0x80 | (code & 0x3f);
    }
    at += length;
  }
  return end;
}

/** The smallest code point that needs a UTF-8 sequence of a length, indexed by the length. */
const SMALLEST = [0, 0, 0x80, 0x800, 0x1_0000, 0x1_0000, 0x1_0000];

/** Returns the length of the UTF-8 sequence that a first byte starts: up to six bytes, as in old versions of UTF-8. */
function lengthOf(lead: number): number {
  if (lead < 0xc0) return 1;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  if (lead < 0xf8) return 4;
  if (lead < 0xfc) return 5;
  return lead < 0xfe ? 6 : 1;
}

/** Returns the code point of the UTF-8 sequence of `length` bytes at `at`; -1 if a continuation byte is missing. */
function codeOf(bytes: Uint8Array, at: number, length: number, size: number): number {
  if (at + length > size) return -1;
  let code = bytes[at]! & (0x7f >> length);
  for (let next = at + 1; next < at + length; next++) {
    if ((bytes[next]! & 0xc0) !== 0x80) return -1;
    code = code * 64 + (bytes[next]! & 0x3f);
  }
  return code;
}

/** Returns the byte value of the two hexadecimal digits at `at`, or -1. */
function hexByte(bytes: Uint8Array, at: number): number {
  const high = hexDigit(bytes[at]);
  const low = hexDigit(bytes[at + 1]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/** Returns the UTF-16 code unit of a `u` and four hexadecimal digits at `at`, or -1. */
function hexUnit(bytes: Uint8Array, at: number): number {
  if ((bytes[at]! | 0x20) !== 0x75) return -1;
  const high = hexByte(bytes, at + 1);
  const low = hexByte(bytes, at + 3);
  return high < 0 || low < 0 ? -1 : high * 256 + low;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1;
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
