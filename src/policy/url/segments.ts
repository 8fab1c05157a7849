/** The names of path segments: where they end, before an extension, parameters, or a query that stands in the path. */
import { ExtensionSet, isDigit } from './characters.ts';

const EXTENSION_MAX_LENGTH = 10;

/** Files that pages are made of, and documents: `login.css` and `account.pdf` are not the pages that their names speak of. */
const STATIC_EXTENSIONS = new ExtensionSet(
  'css js mjs map png jpg jpeg gif svg webp avif ico bmp woff woff2 ttf otf eot mp3 mp4 webm ogg wav txt md pdf rtf ' +
    'doc docx odt xls xlsx ods ppt pptx csv tsv rss atom xsd wasm ts tsx jsx vue scss less rs c h cpp hpp swift kt ipynb toml ' +
    'yml yaml diff patch gz tgz zip example sample template dist',
);

/** The dot, unless what stands from there to `stop` is no extension (a number is not one), or one that makes a file of another kind. */
export function withoutExtension(path: string, dot: number, stop: number): number {
  if (stop - dot > EXTENSION_MAX_LENGTH) return stop;
  let at = dot + 1;
  while (at < stop && isDigit(path.charCodeAt(at))) at++;
  return at === stop || isStatic(path, dot, stop) ? stop : dot;
}

function isStatic(text: string, dot: number, end: number): boolean {
  return STATIC_EXTENSIONS.has(text, dot + 1, end);
}

/** Where the dot stands before an extension that makes what ends at `end` a file of another kind than a page; -1 where there is none. */
export function staticDot(text: string, start = 0, end = text.length): number {
  const first = Math.max(start, end - EXTENSION_MAX_LENGTH);
  for (let at = end - 1; at >= first; at--) if (text.charCodeAt(at) === 0x2e) return isStatic(text, at, end) ? at : -1;
  return -1;
}

/**
 * Where a segment's name ends: before its parameters (`;…`, a query that was encoded, a method's name) and its extension, unless that makes it a
 * file of another kind. At `start` where it is nothing but `;` and what follows.
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
  // Signs before what ends the name are no part of its extension.
  const bare = stop < end ? lastLetterEnd(path, start, stop) : stop;
  const last = withoutDots(path, start, bare > start ? bare : stop);
  if (last < stop) dot = path.lastIndexOf('.', last - 1);
  return dot <= start ? last : withoutExtension(path, dot, last);
}

/** Where the name of a segment ends before its extension, where all of it is the name: a sign that may begin a query ends none, but is in no extension. */
export function wholeNameEnd(path: string, start: number, end: number): number {
  const last = withoutDots(path, start, end);
  for (let at = last - 1; at > start; at--) {
    const code = path.charCodeAt(at);
    if (code === 0x2e) return withoutExtension(path, at, last);
    if (isMark(code)) break;
  }
  return last;
}

/** Whether a sign may end a name for some servers: `?`, `#`, `&`, `!`. */
function isMark(code: number): boolean {
  return code === 0x3f || code === 0x23 || code === 0x26 || code === 0x21;
}

/** Whether one of those signs ends what stands before it, for servers that decode before they look or call a method of a program. */
export function isCutAt(path: string, at: number): boolean {
  return isMark(path.charCodeAt(at)) && (beginsQuery(path, at, path.length) || isMethodMark(path, at, path.length));
}

/** Where a name ends without the dots, and blanks among them, at its end, which some servers drop; at `end` where it is nothing else. */
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

/** Whether the `!` of `login!input.action` stands at `at`: what follows is a method of the same page. */
export function isMethodMark(path: string, at: number, end: number): boolean {
  if (path.charCodeAt(at) !== 0x21 || at + 1 >= end) return false;
  const next = path.charCodeAt(at + 1) | 0x20;
  return next >= 0x61 && next <= 0x7a;
}

/**
 * Whether what stands at `at` ends the path for a server that decodes before it looks: `?`, `#`, and `&` before a parameter (`&name=`) or
 * before another one.
 */
export function beginsQuery(text: string, at: number, end: number): boolean {
  const code = text.charCodeAt(at);
  if (code === 0x3f || code === 0x23) return true;
  if (code !== 0x26) return false;
  if (text.charCodeAt(at + 1) === 0x26) return true;
  // Two words with `&` between them are no parameters.
  for (let next = at + 1; next < end; next++) {
    const sign = text.charCodeAt(next);
    if (sign === 0x3d) return next > at + 1;
    if (sign === 0x26 || sign === 0x3b || sign === 0x2f || sign === 0x3f || sign === 0x23) return false;
  }
  return false;
}

/** Where a query or parameters of a segment (`;…`) begin, from `start` on; at `end` where none do. */
export function nameStop(path: string, start: number, end: number): number {
  let at = start;
  while (at < end && !endsName(path, at, end)) at++;
  return at;
}

function endsName(path: string, at: number, end: number): boolean {
  return path.charCodeAt(at) === 0x3b || beginsQuery(path, at, end);
}

/** As many words make a sentence, rather than the name of a page; fewer do where the first one asks. */
const SENTENCE_MIN_WORDS = 5;
const QUESTION_MIN_WORDS = 3;

/** What stands between words: hyphen, underscore, blank. */
function isWordSign(code: number): boolean {
  return code === 0x2d || code === 0x5f || code === 0x20;
}

/**
 * Whether a segment is a sentence, as the titles of articles are (`five-ways-to-change-your-password`, `what-is-passkey`). `asks`: whether
 * the word between two places of the path opens a question.
 */
export function isSentence(
  path: string,
  start: number,
  end: number,
  asks: (start: number, end: number) => boolean,
): boolean {
  if (end - start < 2 * QUESTION_MIN_WORDS) return false;
  let signs = 0;
  let firstSign = -1;
  for (let at = start; at < end; at++) {
    if (!isWordSign(path.charCodeAt(at))) continue;
    if (signs++ === 0) firstSign = at;
  }
  if (signs < QUESTION_MIN_WORDS - 1) return false;
  // Fewer words than a sentence has, and the first one, where no sign leads it, asks nothing.
  if (signs < SENTENCE_MIN_WORDS - 1 && firstSign > start && !asks(start, firstSign)) return false;
  let words = 0;
  // Words of at least two letters, and nothing else.
  let plainWords = 0;
  let firstStart = -1;
  let firstEnd = -1;
  for (let at = start; at < end; ) {
    if (isWordSign(path.charCodeAt(at))) {
      at++;
      continue;
    }
    const wordStart = at;
    let isPlain = true;
    for (; at < end && !isWordSign(path.charCodeAt(at)); at++) isPlain &&= isLetter(path.charCodeAt(at));
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

/** Where the word ends that begins at `start`; -1 where more than letters stand in it, or none. */
export function wordEnd(path: string, start: number, end: number): number {
  let at = start;
  for (; at < end && !isWordSign(path.charCodeAt(at)); at++) if (!isLetter(path.charCodeAt(at))) return -1;
  return at > start ? at : -1;
}

const LETTER = /[\p{L}\p{Cs}]/u;

function isLetter(code: number): boolean {
  if (code > 0x7f) return LETTER.test(String.fromCharCode(code));
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** Where the signs begin that end what stands between two places: behind its last letter or digit; at `start` where it has none. */
export function lastLetterEnd(text: string, start: number, end: number): number {
  let last = end;
  while (last > start && !isLetterOrDigit(text.charCodeAt(last - 1))) last--;
  return last;
}

/** A text without the signs at its end: up to its last letter or digit. */
export function withoutSigns(text: string): string {
  const end = lastLetterEnd(text, 0, text.length);
  return end === text.length ? text : text.slice(0, end);
}

/** What is no name: blanks, dots, what is invisible. */
const NO_NAME = /^[\s\p{Cc}\p{Default_Ignorable_Code_Point}.]*$/u;

/** A path without parameters of segments (`;x=1`) and without segments that have no name, which servers leave out. */
export function withoutNameless(path: string): string {
  const [first = '', ...others] = path.split('/').map((segment) => segment.split(';', 1)[0]!);
  return [first, ...others.filter((segment) => !NO_NAME.test(segment))].join('/');
}

/** The last segment of a path that has a name, with its parameters. */
export function lastNamed(path: string): string {
  return path.split('/').findLast((segment) => withoutSigns(segment.split(';', 1)[0]!) !== '') ?? '';
}

/**
 * As {@link withoutSigns}; but the equals sign of a parameter without a value stays, because it alone says that a parameter stands there: `/login&x=`.
 */
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
