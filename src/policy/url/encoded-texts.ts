/** Texts that are in a URL as base64 or as hexadecimal digits. */
import { percentDecodeOnce } from '../../domain/percent-decode.ts';
import { plainText } from '../../domain/plain-text.ts';

const DIGIT = '[A-Za-z0-9+/_-]';
/** The base64 digits of one ASCII character, and of three. Each of the first three digits lacks the bit that is set in bytes beyond ASCII. */
const FIRST_CHARACTER = ['[A-Za-f]', '[A-HQ-Xg-nw-z0-3]'];
const THREE_CHARACTERS = [...FIRST_CHARACTER, '[ABEFIJMNQRUVYZcdghklopstwx014589]', DIGIT];
/** The digits of a printable character in hexadecimal. */
const HEXADECIMAL_CHARACTER = ['[2-7]', '[0-9A-Fa-f]'];

const ENCODED = new RegExp(
  `(?:${THREE_CHARACTERS.join('')}){2,}${DIGIT}{0,3}|(?:${HEXADECIMAL_CHARACTER.join('')}){8,}`,
  'g',
);

/** The shortest texts that are looked for, digit by digit: seven characters in base64, whatever the offset, and then eight in hexadecimal. */
const SHORTEST = [
  ...THREE_CHARACTERS,
  ...THREE_CHARACTERS,
  ...FIRST_CHARACTER,
  ...new Array(8).fill(HEXADECIMAL_CHARACTER).flat(),
];
const BASE64_SIZE = 10;
/** The bits of the first digit of either text, and of the last. */
const FIRST_DIGITS = 1 | (1 << BASE64_SIZE);
const LAST_DIGITS = (1 << (BASE64_SIZE - 1)) | (1 << (SHORTEST.length - 1));
/** For each ASCII code, the digits of {@link SHORTEST} that it can be, as bits. */
const DIGIT_BITS = new Int32Array(128);
for (const [at, digit] of SHORTEST.entries()) {
  for (let code = 0; code < 128; code++)
    if (new RegExp(digit).test(String.fromCharCode(code))) DIGIT_BITS[code]! |= 1 << at;
}

export const NO_TEXTS: readonly string[] = Object.freeze([]);

/**
 * Returns what a decoded text holds in base64 or hexadecimal, decoded and as plain text. Hardly any text holds anything.
 * @param mayHaveBreaks whether tabs and line ends, which decoders ignore, may be inside
 */
export function encodedTexts(text: string, mayHaveBreaks: boolean): readonly string[] {
  const words = wordsIn(text);
  const joined = mayHaveBreaks && /[\t\n\r]/.test(text) ? wordsIn(text.replace(/[\t\n\r]+/g, '')) : NO_TEXTS;
  return words.length + joined.length === 0 ? NO_TEXTS : [...words, ...joined].map(decoded);
}

function wordsIn(text: string): readonly string[] {
  return hasEncoded(text) ? text.match(ENCODED)! : NO_TEXTS;
}

/**
 * Takes the next character of a text in which one of {@link SHORTEST} is looked for (Shift-And). A bit means that the characters up to here
 * are the digits up to that one. Begin with 0. The text holds one of them when {@link isShortest}.
 */
export function nextDigits(matched: number, code: number): number {
  return code < 128 ? ((matched << 1) | FIRST_DIGITS) & DIGIT_BITS[code]! : 0;
}

export function isShortest(matched: number): boolean {
  return (matched & LAST_DIGITS) !== 0;
}

/** Whether a text holds one of {@link SHORTEST}. */
export function hasEncoded(text: string): boolean {
  // A regular expression for all of them takes two to three times as long.
  let matched = 0;
  for (let at = 0; at < text.length; at++) {
    matched = nextDigits(matched, text.charCodeAt(at));
    if (isShortest(matched)) return true;
  }
  return false;
}

function decoded(word: string): string {
  // ASCII in base64 never begins with a digit. `Buffer` reads both alphabets of base64.
  const isHexadecimal = word.charCodeAt(0) <= 0x39;
  const text = Buffer.from(word, isHexadecimal ? 'hex' : 'base64').toString('latin1');
  // Garbage may follow the text, because the word may be cut off.
  return plainText(percentDecodeOnce(/^[^!-~]*[\t\n\r -~]*/.exec(text)![0]));
}
