/**
 * The names of path segments, and where they end: before an extension, parameters, or a query inside the path. In function names here,
 * signs are punctuation: all characters except letters and digits.
 */
import { ExtensionSet, isDigit } from './characters.ts';

const EXTENSION_MAX_LENGTH = 10;

/** Extensions of files that pages use, and of documents: `login.css` and `account.pdf` are not the pages that their names suggest. */
const STATIC_EXTENSIONS = new ExtensionSet(
  'css js mjs map png jpg jpeg gif svg webp avif ico bmp woff woff2 ttf otf eot mp3 mp4 webm ogg wav txt md pdf rtf ' +
    'doc docx odt xls xlsx ods ppt pptx csv tsv rss atom xsd wasm ts tsx jsx vue scss less rs c h cpp hpp swift kt ipynb toml ' +
    'yml yaml diff patch gz tgz zip example sample template dist',
);

/**
 * Returns `dot` if a page's extension follows it up to `stop`, otherwise `stop`. A number is not an extension, and neither is that of
 * another kind of file.
 */
export function withoutExtension(path: string, dot: number, stop: number): number {
  if (stop - dot > EXTENSION_MAX_LENGTH) return stop;
  let at = dot + 1;
  while (at < stop && isDigit(path.charCodeAt(at))) at++;
  return at === stop || isStatic(path, dot, stop) ? stop : dot;
}

function isStatic(text: string, dot: number, end: number): boolean {
  return STATIC_EXTENSIONS.has(text, dot + 1, end);
}

/** Returns the offset of the dot before an extension that makes the text up to `end` another kind of file than a page; -1 if there is none. */
export function staticDot(text: string, start = 0, end = text.length): number {
  const first = Math.max(start, end - EXTENSION_MAX_LENGTH);
  for (let at = end - 1; at >= first; at--) if (text.charCodeAt(at) === 0x2e) return isStatic(text, at, end) ? at : -1;
  return -1;
}

/**
 * Returns where a segment's name ends: before its parameters (`;…`, an encoded query, the name of a method) and its extension, unless that
 * makes it another kind of file than a page. `start` if the segment begins with `;`.
 */
export function nameEnd(path: string, start: number, end: number): number {
  let stop = end;
  let dot = -1;
  for (let at = start; at < end; at++) {
    const code = path.charCodeAt(at);
    if (code > 0x3f) continue;
    if (code === 0x3b || (at > start && (beginsQuery(path, at, end) || isMethodMark(path, at, end)))) {
      stop = at;
      break;
    }
    if (code === 0x2e) dot = at;
  }
  // Punctuation before the end of the name is not part of its extension.
  const bare = stop < end ? lastLetterEnd(path, start, stop) : stop;
  const last = withoutDots(path, start, bare > start ? bare : stop);
  if (last < stop) dot = path.lastIndexOf('.', last - 1);
  return dot <= start ? last : withoutExtension(path, dot, last);
}

/**
 * Returns where a segment's name ends before its extension, if all of the segment is the name. Characters that may begin a query do not end
 * it, but are never in an extension.
 */
export function wholeNameEnd(path: string, start: number, end: number): number {
  const last = withoutDots(path, start, end);
  for (let at = last - 1; at > start; at--) {
    const code = path.charCodeAt(at);
    if (code === 0x2e) return withoutExtension(path, at, last);
    if (mayEndName(code)) break;
  }
  return last;
}

/** Whether a character may end a name for some servers: `?`, `#`, `&`, `!`. */
function mayEndName(code: number): boolean {
  return code === 0x3f || code === 0x23 || code === 0x26 || code === 0x21;
}

/** Whether such a character ends the name before it, for servers that decode before they parse, or that call a method of a program. */
export function isCutAt(path: string, at: number): boolean {
  return mayEndName(path.charCodeAt(at)) && (beginsQuery(path, at, path.length) || isMethodMark(path, at, path.length));
}

/** Returns where a name ends without trailing dots and the blanks among them, which some servers drop; `end` if nothing else would be left. */
function withoutDots(path: string, start: number, end: number): number {
  let last = end;
  let hasDot = false;
  for (; last > start; last--) {
    const code = path.charCodeAt(last - 1);
    if (code !== 0x2e && code > 0x20) break;
    hasDot ||= code === 0x2e;
  }
  return hasDot && last > start ? last : end;
}

/** Whether a `!` as in `login!input.action` is at `at`: a method of the same page follows. */
export function isMethodMark(path: string, at: number, end: number): boolean {
  if (path.charCodeAt(at) !== 0x21 || at + 1 >= end) return false;
  const next = path.charCodeAt(at + 1) | 0x20;
  return next >= 0x61 && next <= 0x7a;
}

/**
 * Whether the path ends at `at` for a server that decodes before it parses: at `?`, at `#`, and at an `&` that comes before a parameter
 * (`&name=`) or another `&`.
 */
export function beginsQuery(text: string, at: number, end: number): boolean {
  const code = text.charCodeAt(at);
  if (code === 0x3f || code === 0x23) return true;
  if (code !== 0x26) return false;
  if (at + 1 < text.length && text.charCodeAt(at + 1) === 0x26) return true;
  // Two words with `&` between them are not parameters.
  for (let next = at + 1; next < end; next++) {
    const sign = text.charCodeAt(next);
    if (sign === 0x3d) return next > at + 1;
    if (sign === 0x26 || sign === 0x3b || sign === 0x2f || sign === 0x3f || sign === 0x23) return false;
  }
  return false;
}

/** Returns where a query or segment parameters (`;…`) begin, from `start` on; `end` if there are none. */
export function nameStop(path: string, start: number, end: number): number {
  let at = start;
  while (at < end && !endsName(path, at, end)) at++;
  return at;
}

function endsName(path: string, at: number, end: number): boolean {
  return path.charCodeAt(at) === 0x3b || beginsQuery(path, at, end);
}

/** Minimum number of words in a sentence, as opposed to the name of a page. Fewer are enough if the first one opens a question. */
const SENTENCE_MIN_WORDS = 5;
const QUESTION_MIN_WORDS = 3;

/** Whether a character separates words: hyphen, underscore, blank. */
function isWordSeparator(code: number): boolean {
  return code === 0x2d || code === 0x5f || code === 0x20;
}

/**
 * Whether a segment is a sentence, like the titles of articles (`five-ways-to-change-your-password`, `what-is-passkey`). `asks` returns
 * whether the word between two offsets of the path opens a question.
 */
export function isSentence(
  path: string,
  start: number,
  end: number,
  asks: (start: number, end: number) => boolean,
): boolean {
  if (end - start < 2 * QUESTION_MIN_WORDS) return false;
  let separators = 0;
  let firstSeparator = -1;
  for (let at = start; at < end; at++) {
    if (!isWordSeparator(path.charCodeAt(at))) continue;
    if (separators++ === 0) firstSeparator = at;
  }
  if (separators < QUESTION_MIN_WORDS - 1) return false;
  // Too few words for a sentence, and the first word, if no separator precedes it, opens no question.
  if (separators < SENTENCE_MIN_WORDS - 1 && firstSeparator > start && !asks(start, firstSeparator)) return false;
  let words = 0;
  // Words of at least two letters, and nothing but letters.
  let plainWords = 0;
  let firstStart = -1;
  let firstEnd = -1;
  for (let at = start; at < end; ) {
    if (isWordSeparator(path.charCodeAt(at))) {
      at++;
      continue;
    }
    const wordStart = at;
    let isPlain = true;
    for (; at < end && !isWordSeparator(path.charCodeAt(at)); at++) isPlain &&= isLetter(path.charCodeAt(at));
    words++;
    if (isPlain && at - wordStart >= 2) plainWords++;
    if (words === 1) {
      firstStart = wordStart;
      firstEnd = at;
    }
  }
  if (words >= SENTENCE_MIN_WORDS && plainWords >= SENTENCE_MIN_WORDS - 1) return true;
  return words >= QUESTION_MIN_WORDS && plainWords >= QUESTION_MIN_WORDS - 1 && asks(firstStart, firstEnd);
}

/** Returns where the word that begins at `start` ends; -1 if it is empty, or has anything but letters. */
export function wordEnd(path: string, start: number, end: number): number {
  let at = start;
  for (; at < end && !isWordSeparator(path.charCodeAt(at)); at++) if (!isLetter(path.charCodeAt(at))) return -1;
  return at > start ? at : -1;
}

const LETTER = /[\p{L}\p{Cs}]/u;

function isLetter(code: number): boolean {
  if (code > 0x7f) return LETTER.test(String.fromCharCode(code));
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** Returns where the punctuation at the end of a text begins: after its last letter or digit; `start` if it has neither. */
export function lastLetterEnd(text: string, start: number, end: number): number {
  let last = end;
  while (last > start && !isLetterOrDigit(text.charCodeAt(last - 1))) last--;
  return last;
}

/** Returns a text without punctuation at its end: up to its last letter or digit. */
export function withoutSigns(text: string): string {
  const end = lastLetterEnd(text, 0, text.length);
  return end === text.length ? text : text.slice(0, end);
}

/** A segment without a name: blanks, dots, invisible characters. */
const NO_NAME = /^[\s\p{Cc}\p{Default_Ignorable_Code_Point}.]*$/u;

/** Returns a path without segment parameters (`;x=1`) and segments that have no name, which servers ignore. */
export function withoutNameless(path: string): string {
  const [first = '', ...others] = path.split('/').map((segment) => segment.split(';', 1)[0]!);
  return [first, ...others.filter((segment) => !NO_NAME.test(segment))].join('/');
}

/** Returns the last segment of a path that has a name, with its parameters. */
export function lastNamed(path: string): string {
  return path.split('/').findLast((segment) => withoutSigns(segment.split(';', 1)[0]!) !== '') ?? '';
}

/** Like {@link withoutSigns}, but keeps the equals sign of a parameter without a value, because it alone marks a parameter: `/login&x=`. */
export function withoutLooseSigns(text: string): string {
  const end = lastLetterEnd(text, 0, text.length);
  if (end === text.length) return text;
  const isParameter = text[end] === '=' && text.lastIndexOf('&', end) > text.lastIndexOf('/', end);
  return text.slice(0, isParameter ? end + 1 : end);
}

const LETTER_OR_DIGIT = /[\p{L}\p{N}\p{M}\p{Cs}]/u;

function isLetterOrDigit(code: number): boolean {
  const lower = code | 0x20;
  if (code <= 0x7f) return (code >= 0x30 && code <= 0x39) || (lower >= 0x61 && lower <= 0x7a);
  return LETTER_OR_DIGIT.test(String.fromCharCode(code));
}
