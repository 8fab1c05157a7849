/** The structural checks that a pattern rule can name. */
import type { RuleEntry } from '../documents.ts';
import { hasOpenRedirect } from '../guards/nested.ts';
import type { Subject } from '../url/subject.ts';

export type PatternCheck = (subject: Subject) => boolean;

export const PATTERN_CHECKS: Readonly<Record<string, (rule: RuleEntry) => PatternCheck>> = {
  open_redirect: () => hasOpenRedirect,
  bulk_query: (rule) => {
    const maxLength = rule.max_query_length ?? 1024;
    const maxRun = rule.max_run ?? 160;
    return ({ url }) =>
      url.query.length > maxLength ||
      hasRun(url.query, maxRun) ||
      (url.path.length > maxRun && hasRun(url.path, maxRun));
  },
};

/** A run of letters, digits and signs is encoded data rather than words when this many are digits or capitals. */
const ENCODED_MIN_CHARACTERS = 16;

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
