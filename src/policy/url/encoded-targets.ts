/** URLs that stand in a URL as base64 or as hexadecimal digits. */
import { ALPHANUMERIC, findRun, runEnd, tableOf } from './characters.ts';

/** How such text begins: `http`, `HTTP`, `//`, `file:`, `ftp:`, `javascript:`, `data:`, `gopher:`; the last ones in hexadecimal. */
const BEGINS =
  /aHR0c|SFRUUD|SFRUUF|Ly[89]|ZmlsZT|ZnRwO|amF2YXNj|ZGF0YT|Z29waG|68747470|48545450|66696c65|6674703a|676f7068|6a617661|646174613a|(?<![0-9a-f])2f2f[0-9a-f]{10}/i;

const WORD_MIN_LENGTH = 8;

/** No more characters of a word are looked at. */
const WORD_MAX_LENGTH = 2_048;

/** A word as encoders write it. A slash of base64 cuts it, which leaves the beginning of the URL. */
const WORD = new RegExp(`(?<![A-Za-z0-9])[A-Za-z0-9+_-]{${WORD_MIN_LENGTH},${WORD_MAX_LENGTH}}`, 'g');

const TARGET = /^(?:https?:|\/\/[a-z0-9[]|file:|ftp:|javascript:|data:|gopher:)/i;
/** How one begins, two characters each. */
const TARGET_STARTS = ['ht', '//', 'fi', 'ft', 'ja', 'da', 'go'];
const PRINTABLE = /^[\x20-\x7e]+$/;
/** Digits at the beginning of a word: signs behind them say nothing, nor does a digit too many, which Buffer leaves out. */
const HEXADECIMAL = /^[0-9a-f]{16,}/i;
/** So many characters may stand before what is encoded. */
const MARK_MAX_LENGTH = 2;

/** For each ASCII code what it is worth as a digit plus one, in either alphabet of base64, and in hexadecimal; 0 for what is no digit. */
const BASE64 = new Uint8Array(128);
const HEX = new Uint8Array(128);
const IN_WORD = tableOf(`${ALPHANUMERIC}+_-`);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  const [byte] = Buffer.from(`${character}A`, 'base64');
  if (/[A-Za-z0-9+_-]/.test(character)) BASE64[code] = (byte! >> 2) + 1;
  if (/[0-9A-Fa-f]/.test(character)) HEX[code] = Number.parseInt(character, 16) + 1;
}

/** For each two characters, as one number, whether a target may begin with them. */
const STARTS = new Uint8Array(1 << 16);
for (const start of TARGET_STARTS) {
  for (const first of [start[0]!, start[0]!.toUpperCase()]) {
    for (const second of [start[1]!, start[1]!.toUpperCase()])
      STARTS[first.charCodeAt(0) * 256 + second.charCodeAt(0)] = 1;
  }
}

/** Whether a word of a text may hold a target, by the first characters of each: hardly any does. */
export function mayHoldTarget(text: string): boolean {
  for (let start = findRun(text, IN_WORD, WORD_MIN_LENGTH); start >= 0; ) {
    if (beginsTarget(text, start)) return true;
    const end = runEnd(text, IN_WORD, start + WORD_MIN_LENGTH);
    if (end - start > WORD_MAX_LENGTH) return true;
    start = findRun(text, IN_WORD, WORD_MIN_LENGTH, end + 1);
  }
  return false;
}

/** Whether a word begins as a target does in hexadecimal, or in base64, perhaps behind a mark. */
function beginsTarget(word: string, start: number): boolean {
  let pair = 0;
  for (let at = start; at < start + 4; at++) pair = pair * 16 + HEX[word.charCodeAt(at)]! - 1;
  // Where one of them is no digit, this is another pair, and the closer look finds nothing.
  if (STARTS[pair & 0xffff] === 1) return true;
  for (let at = start; at <= start + MARK_MAX_LENGTH; at++) {
    const first = BASE64[word.charCodeAt(at)]! - 1;
    const second = BASE64[word.charCodeAt(at + 1)]! - 1;
    const third = BASE64[word.charCodeAt(at + 2)]! - 1;
    if (STARTS[(first << 10) | (second << 4) | (third >> 2)] === 1) return true;
  }
  return false;
}

/** No more of them are looked at. */
const TARGETS_MAX = 16;

export const NO_TARGETS: readonly string[] = Object.freeze([]);

/** What is told to be a URL in the words of a text that may hold one, decoded once; a few of them. */
export function encodedTargets(text: string): readonly string[] {
  if (!BEGINS.test(text)) return NO_TARGETS;
  const found: string[] = [];
  for (const [word] of text.matchAll(WORD)) {
    if (found.length >= TARGETS_MAX) break;
    if (!BEGINS.test(word)) continue;
    const target = decoded(word);
    if (target !== undefined) found.push(target);
  }
  return found;
}

function decoded(word: string): string | undefined {
  const digits = HEXADECIMAL.exec(word)?.[0];
  if (digits !== undefined) {
    const text = Buffer.from(digits, 'hex').toString('latin1');
    if (isTarget(text)) return text;
  }
  for (let start = 0; start <= MARK_MAX_LENGTH; start++) {
    // Buffer reads both alphabets of base64.
    const text = Buffer.from(word.slice(start), 'base64').toString('latin1');
    // Behind the text there may be rubbish, where the word was cut.
    const plain = /^[\x20-\x7e]*/.exec(text)![0];
    if (plain.length >= 6 && plain.length >= text.length - 3 && isTarget(plain)) return plain;
  }
  return undefined;
}

function isTarget(text: string): boolean {
  return TARGET.test(text) && PRINTABLE.test(text);
}
