/** The structural checks that a pattern rule can name. */
import type { RuleEntry } from '../documents.ts';
import { hasOpenRedirect } from '../guard-checks/targets.ts';
import type { Subject } from '../subject.ts';
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
    const isBulk = (text: string, separators: RegExp): boolean =>
      text.length > maxRun && (hasRun(text, maxRun) || sumOfKeys(text.split(separators)) > maxSum);
    return ({ url }) => url.query.length > maxLength || isBulk(url.query, /[&=;]/) || isBulk(url.path, /\//);
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

/** A segment of this length without a blank between words, and with this many digits or capitals, is a key. */
const KEY = /^(?=(?:[^0-9A-Z]*[0-9A-Z]){5})[A-Za-z0-9_=.~+-]{20,}$/;

/** How many characters stand in keys, when there are several. */
function sumOfKeys(pieces: readonly string[]): number {
  const keys = pieces.filter((piece) => KEY.test(piece));
  return keys.length < 2 ? 0 : keys.reduce((sum, key) => sum + key.length, 0);
}

/** The escapes of one letter beyond ASCII, in UTF-8. */
const ESCAPED_LETTER =
  /%(?:c[2-9a-f]|d[0-9a-f]|e[0-9a-f]%[89ab][0-9a-f]|f[0-4](?:%[89ab][0-9a-f]){2})%[89ab][0-9a-f]/gi;

/**
 * Whether a text holds more than `limit` characters in a row as an encoder writes them. Slashes, dots and blanks end a run; a letter of any
 * script is one character of it, however many bytes its escapes take.
 */
function hasRun(escaped: string, limit: number): boolean {
  if (escaped.length <= limit) return false;
  const text = escaped.includes('%') ? escaped.replace(ESCAPED_LETTER, 'a').replaceAll('%20', ' ') : escaped;
  let run = 0;
  let encoded = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const isLower = code >= 0x61 && code <= 0x7a;
    const isEncoded = (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || code === 0x25;
    // A plus stands in base64, and between words: it neither ends a run nor makes it one of data.
    const isRun = isLower || isEncoded || code === 0x2b || code === 0x2d || code === 0x5f;
    run = isRun ? run + 1 : 0;
    encoded = isRun ? encoded + (isEncoded ? 1 : 0) : 0;
    if (run > limit && encoded >= ENCODED_MIN_CHARACTERS) return true;
  }
  return false;
}
