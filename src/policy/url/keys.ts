/** Numbers, keys and addresses in a path: what a link names by them, and for whom it is. */
import { hasDigit, isDigit } from './characters.ts';
import { nameEnd, nameStop, withoutSigns } from './segments.ts';

/** A short key has a digit before a letter: `3f9ac2`, and not `page10`. */
const SHORT_KEY = /^(?=[a-z]*[0-9]+[a-z])[0-9a-z]{4,7}$/i;
const KEY_OF_PARTS_MIN_LENGTH = 20;
const EMAIL = /^[^@\s]+@[^@\s]+\.[a-z]{2,}$/i;
/** The version of an API: `/booking/v2/12345`. */
const VERSION = /^v[0-9]{1,2}$/i;
/** Decimal digits in base64, in any case. */
const NUMBER_IN_BASE64 = /^(?=.)(?:[mno][dtjz][aeimquycgk][w-z0-5])*(?:[mno](?:[aqgw]|[dtjz][aeimquycgk]))?={0,2}$/i;

export function areDigits(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!isDigit(text.charCodeAt(at))) return false;
  return true;
}

/** Whether a text has four characters and begins with 19 or 20: if they are digits, it is a year. */
export function isYearAt(text: string, start: number, end: number): boolean {
  if (end - start !== 4) return false;
  const century = text.charCodeAt(start) * 16 + text.charCodeAt(start + 1);
  return century === 0x31 * 16 + 0x39 || century === 0x32 * 16 + 0x30;
}

/**
 * Whether a segment is a number, or a key as programs make them: letters and digits without separators between words, at least one of them
 * a digit.
 */
function isIdentifier(path: string, start: number, end: number): boolean {
  if (!hasDigit(path, start, end)) return false;
  // Many servers drop punctuation after a key.
  const name = path.slice(start, nameEnd(path, start, end)).replace(/[^\p{L}\p{N}]+$/u, '');
  if (/^[0-9]{1,20}$/.test(name)) return true;
  return /^(?:[A-Za-z0-9_=]{8,}|[0-9a-f]{4,}(?:-[0-9a-f]{4,})+)$/i.test(name) && /[0-9]/.test(name);
}

/** Whether a segment is a number, a key (see {@link isIdentifier}), a short key, a key with hyphens in it, or an e-mail address. */
export function isKey(path: string, start: number, end: number): boolean {
  if (isIdentifier(path, start, end)) return true;
  if (EMAIL.test(path.slice(start, nameStop(path, start, end)))) return true;
  const name = withoutSigns(path.slice(start, nameEnd(path, start, end)));
  return SHORT_KEY.test(name) || isKeyOfParts(name);
}

/**
 * Whether a segment is a key or a version, or names the owner of the key after it: a number except a year, a number in base64, or an e-mail
 * address.
 */
export function isKeyOrOwner(path: string, start: number, end: number): boolean {
  if (isYearAt(path, start, end) && areDigits(path, start, end)) return false;
  const name = path.slice(start, nameStop(path, start, end));
  return NUMBER_IN_BASE64.test(name) || VERSION.test(name) || isKey(path, start, end);
}

/**
 * Whether parts between hyphens form a key, as in URL-safe base64, or in a time with a hash. Every part of more than three characters has a
 * digit, and there are letters between digits.
 */
function isKeyOfParts(name: string): boolean {
  if (name.length < KEY_OF_PARTS_MIN_LENGTH || !/^[0-9a-z_-]+$/i.test(name)) return false;
  return /[0-9][a-z]+[0-9]/i.test(name) && name.split(/[-_]+/).every((part) => part.length <= 3 || /[0-9]/.test(part));
}

/** Whether a segment is a number, or a key that cannot be mistaken for a name: at least every fourth character is a digit. A year is neither. */
export function isNumberOrKey(path: string, start: number, end: number): boolean {
  // Segment parameters are not part of it.
  const name = path.slice(start, nameStop(path, start, end));
  return (
    isIdentifier(path, start, end) &&
    !/^(?:19|20)[0-9]{2}$/.test(name) &&
    name.replace(/[^0-9]/g, '').length * 4 >= name.length
  );
}
