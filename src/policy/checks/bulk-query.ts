/** Data that leaves in an address: long runs of encoded characters, or many keys, in a query or a path. Linear in the text's length. */
import { PERCENT } from '../../bytes/ascii.ts';
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import { ALPHANUMERIC, findRun, hasRun, isDigit, isIn, runEnd, tableOf } from '../url/characters.ts';
import { withoutSigns } from '../url/segments.ts';

/** What is still usual, in characters. */
export interface BulkLimits {
  readonly maxQueryLength: number;
  /** Of one run of encoded characters. */
  readonly maxRun: number;
  /** Of several keys together. */
  readonly maxSum: number;
}

/** Whether a URL carries more than a question: its query is too long, or query or path hold too much that is encoded. */
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

/** A run of letters, digits and signs is encoded data rather than words when this many are digits or capitals. */
const ENCODED_MIN_CHARACTERS = 16;

/** Characters of a run. A plus stands in base64, and between words: it neither ends a run nor makes it one of data. */
const IN_RUN = tableOf(`${ALPHANUMERIC}%+_-`);
/** Characters of a key between separators, and what separates. */
const IN_QUERY_KEY = tableOf(`${ALPHANUMERIC}_.~+-`);
const QUERY_SEPARATORS = tableOf('&=;');
const IN_PATH_KEY = tableOf(`${ALPHANUMERIC}_=.~+-`);
const SLASH = tableOf('/');

/** A piece of this length without a blank between words, and with this many digits or capitals, is a key. */
const KEY_MIN_LENGTH = 20;
const KEY_MIN_ENCODED = 5;

function isDigitOrCapital(code: number): boolean {
  return isDigit(code) || (code >= 0x41 && code <= 0x5a);
}

/** How many characters stand in keys between separators, when there are several. No sign stands behind the last one. */
function sumOfKeys(text: string, inKey: Uint8Array, separators: Uint8Array): number {
  let keys = 0;
  let sum = 0;
  for (let start = findRun(text, inKey, KEY_MIN_LENGTH), end = 0; start >= 0; ) {
    end = runEnd(text, inKey, start + KEY_MIN_LENGTH);
    // A key is all that stands between two of them.
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

/** The escapes of one letter beyond ASCII, in UTF-8. */
const ESCAPED_LETTER =
  /%(?:c[2-9a-f]|d[0-9a-f]|e[0-9a-f]%[89ab][0-9a-f]|f[0-4](?:%[89ab][0-9a-f]){2})%[89ab][0-9a-f]/gi;

/**
 * Whether a text holds more than `limit` characters in a row as an encoder writes them. Slashes, dots and blanks end a run; a letter of any
 * script is one character of it, however many bytes its escapes take.
 */
function hasDataRun(escaped: string, limit: number): boolean {
  // Escapes stand in a run; what they stand for may be shorter, and never is more.
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
