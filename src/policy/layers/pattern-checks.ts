/** The structural checks that a pattern rule can name. */
import type { RuleEntry } from '../documents.ts';
import { hasOpenRedirect } from '../guard-checks/nested-urls.ts';
import type { Subject } from '../subject.ts';
import { ALPHANUMERIC, findRun, hasRun, isDigit, isIn, runEnd, tableOf } from '../url/characters.ts';
import { withoutSigns } from '../url/segments.ts';
import type { TokenIndex } from '../url/tokens.ts';

export type PatternCheck = (subject: Subject) => boolean;

type Factory = (rule: RuleEntry, tokens: TokenIndex) => PatternCheck;

export const PATTERN_CHECKS: Readonly<Record<string, Factory>> = {
  open_redirect: (rule, tokens) => {
    const lists = { tokens, names: tokens.ordinal(rule.names ?? ''), relays: tokens.ordinal(rule.relays ?? '') };
    return (subject) => hasOpenRedirect(subject, lists);
  },
  bulk_query: (rule) => {
    const maxLength = rule.max_query_length ?? 1024;
    const maxRun = rule.max_run ?? 160;
    const maxSum = rule.max_sum ?? 256;
    const isBulk = (text: string, inKey: Uint8Array, separators: Uint8Array): boolean =>
      text.length > maxRun && (hasDataRun(text, maxRun) || sumOfKeys(withoutSigns(text), inKey, separators) > maxSum);
    return ({ url }) =>
      url.query.length > maxLength ||
      isBulk(url.query, IN_QUERY_KEY, QUERY_SEPARATORS) ||
      isBulk(url.path, IN_PATH_KEY, SLASH);
  },
  graphql_mutation: () => (subject) => {
    if (subject.parameters.length === 0 || !GRAPHQL_PATH.test(subject.url.decodedPath)) return false;
    return subject.parameters.some(({ name, value }) => QUERY_NAME.test(name) && MUTATION.test(value));
  },
};

const GRAPHQL_PATH = /\/(?:graphql|gql|graphiql)[^a-z0-9]*$/i;
const QUERY_NAME = /(?:^|[^a-z0-9])query$/i;
/** Comments and fragments may stand in front of a mutation; the word itself opens it. */
const MUTATION = /(?:^|[\s}])mutation(?=[\s({@])/i;

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

const PERCENT = 0x25;

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
