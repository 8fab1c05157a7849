/** Texts that stand in a URL as base64 or as hexadecimal digits. */
import { percentDecodeOnce } from '../../domain/percent-decode.ts';
import { plainText } from '../../domain/plain-text.ts';

const DIGIT = '[A-Za-z0-9+/_-]';
/** The first character of ASCII in base64, and three: each of the first three digits lacks the bit that a byte beyond ASCII has. */
const FIRST = ['[A-Za-f]', '[A-HQ-Xg-nw-z0-3]'];
const THREE = [...FIRST, '[ABEFIJMNQRUVYZcdghklopstwx014589]', DIGIT];
/** A printable character in hexadecimal. */
const ONE = ['[2-7]', '[0-9A-Fa-f]'];

const ENCODED = new RegExp(`(?:${THREE.join('')}){2,}${DIGIT}{0,3}|(?:${ONE.join('')}){8,}`, 'g');

/** The least that is looked for, digit by digit: seven characters in base64, wherever the word begins, and eight in hexadecimal. */
const LEAST = [...THREE, ...THREE, ...FIRST, ...new Array(8).fill(ONE).flat()];
const BASE64_SIZE = 10;
/** A bit for the first digit of either, and for the last one. */
const FIRST_DIGITS = 1 | (1 << BASE64_SIZE);
const LAST_DIGITS = (1 << (BASE64_SIZE - 1)) | (1 << (LEAST.length - 1));
/** For each ASCII code the digits of {@link LEAST} that it can be, as bits. */
const PLACES = new Int32Array(128);
for (const [at, digit] of LEAST.entries()) {
  for (let code = 0; code < 128; code++)
    if (new RegExp(digit).test(String.fromCharCode(code))) PLACES[code]! |= 1 << at;
}

const NO_TEXTS: readonly string[] = Object.freeze([]);

/**
 * What a decoded text holds in base64 or hexadecimal, in plain letters. Hardly any text holds anything. `mayBeParted`: line ends, which
 * decoders drop, may stand in it.
 */
export function encodedTexts(text: string, mayBeParted: boolean): readonly string[] {
  const words = wordsIn(text);
  const joined = mayBeParted && /[\t\n\r]/.test(text) ? wordsIn(text.replace(/[\t\n\r]+/g, '')) : NO_TEXTS;
  return words.length + joined.length === 0 ? NO_TEXTS : [...words, ...joined].map(decoded);
}

function wordsIn(text: string): readonly string[] {
  return hasEncoded(text) ? text.match(ENCODED)! : NO_TEXTS;
}

/** Whether {@link LEAST} is in a text: each bit says that the characters up to here are its digits up to that one (Shift-And). */
function hasEncoded(text: string): boolean {
  // An expression of all of them takes two to three times as long.
  let begun = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    begun = code < 128 ? ((begun << 1) | FIRST_DIGITS) & PLACES[code]! : 0;
    if ((begun & LAST_DIGITS) !== 0) return true;
  }
  return false;
}

function decoded(word: string): string {
  // Base64 of ASCII never begins with a digit. Buffer reads both of its alphabets.
  const isHexadecimal = word.charCodeAt(0) <= 0x39;
  const text = Buffer.from(word, isHexadecimal ? 'hex' : 'base64').toString('latin1');
  // Behind the text there may be rubbish, where the word was cut.
  return plainText(percentDecodeOnce(/^[^!-~]*[\t\n\r -~]*/.exec(text)![0]));
}
