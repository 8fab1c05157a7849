/** Detects data in a URL: long runs of encoded characters, or many keys, in query or path. Linear in the length of the URL. */
import { PERCENT } from '../../bytes/ascii.ts';
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import { ALPHANUMERIC, findRun, hasRun, isDigit, isIn, runEnd, tableOf } from '../url/characters.ts';
import { withoutSigns } from '../url/segments.ts';

/** The largest usual lengths, in characters. */
export interface BulkLimits {
  readonly maxQueryLength: number;
  /** Length of one run of encoded characters. */
  readonly maxRun: number;
  /** Total length of several keys. */
  readonly maxSum: number;
}

/** Whether a URL carries bulk data: its query is too long, or query or path contain too much encoded data. */
export function isBulk({ query, path }: CanonicalUrl, limits: BulkLimits): boolean {
  return (
    query.length > limits.maxQueryLength ||
    holdsData(query, IN_QUERY_KEY, QUERY_SEPARATORS, limits) ||
    holdsData(path, IN_PATH_KEY, SLASH, limits)
  );
}

function holdsData(text: string, inKey: Uint8Array, separators: Uint8Array, { maxRun, maxSum }: BulkLimits): boolean {
  if (text.length <= maxRun) return false;
  return hasDataRun(text, maxRun) || sumOfKeys(withoutSigns(text), inKey, separators) > maxSum;
}

/** A run of letters, digits and signs is encoded data rather than words if at least this many are digits, capitals or `%`. */
const ENCODED_MIN_CHARACTERS = 16;

/** Characters of a run. A plus occurs in base64 and between words: it neither ends a run nor counts as encoded. */
const IN_RUN = tableOf(`${ALPHANUMERIC}%+_-`);
/** Characters of a key, and the separators of keys. */
const IN_QUERY_KEY = tableOf(`${ALPHANUMERIC}_.~+-`);
const QUERY_SEPARATORS = tableOf('&=;');
const IN_PATH_KEY = tableOf(`${ALPHANUMERIC}_=.~+-`);
const SLASH = tableOf('/');

/** The minimum length of a key. */
const KEY_MIN_LENGTH = 20;
/** The minimum number of digits and capitals in a key. */
const KEY_MIN_ENCODED = 5;

function isDigitOrCapital(code: number): boolean {
  return isDigit(code) || (code >= 0x41 && code <= 0x5a);
}

/** Returns the total length of all keys; 0 if there is only one. `text` must not have trailing signs. */
function sumOfKeys(text: string, inKey: Uint8Array, separators: Uint8Array): number {
  let keys = 0;
  let sum = 0;
  for (let start = findRun(text, inKey, KEY_MIN_LENGTH), end = 0; start >= 0; ) {
    end = runEnd(text, inKey, start + KEY_MIN_LENGTH);
    // A key fills the whole space between two separators.
    const isWhole =
      (start === 0 || isIn(separators, text.charCodeAt(start - 1))) &&
      (end === text.length || isIn(separators, text.charCodeAt(end)));
    if (isWhole && isEncoded(text, start, end)) {
      keys++;
      sum += end - start;
    }
    start = findRun(text, inKey, KEY_MIN_LENGTH, end + 1);
  }
  return keys < 2 ? 0 : sum;
}

function isEncoded(text: string, start: number, end: number): boolean {
  let encoded = 0;
  for (let at = start; at < end && encoded < KEY_MIN_ENCODED; at++)
    if (isDigitOrCapital(text.charCodeAt(at))) encoded++;
  return encoded === KEY_MIN_ENCODED;
}

/** The percent escapes of one non-ASCII character, in UTF-8. */
const ESCAPED_LETTER =
  /%(?:c[2-9a-f]|d[0-9a-f]|e[0-9a-f]%[89ab][0-9a-f]|f[0-4](?:%[89ab][0-9a-f]){2})%[89ab][0-9a-f]/gi;

/**
 * Whether a text contains a run of encoded data longer than `limit` characters. Slashes, dots and spaces end a run. A non-ASCII character
 * counts as one character, no matter how many bytes its escapes take.
 */
function hasDataRun(escaped: string, limit: number): boolean {
  // Escapes are part of a run. Decoding only makes a run shorter, so a text without a long run now needs no decoding.
  if (!hasRun(escaped, IN_RUN, limit + 1)) return false;
  const text = escaped.includes('%') ? escaped.replace(ESCAPED_LETTER, 'a').replaceAll('%20', ' ') : escaped;
  let run = 0;
  let encoded = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (!isIn(IN_RUN, code)) {
      run = 0;
      encoded = 0;
      continue;
    }
    run++;
    if (isDigitOrCapital(code) || code === PERCENT) encoded++;
    if (run > limit && encoded >= ENCODED_MIN_CHARACTERS) return true;
  }
  return false;
}
