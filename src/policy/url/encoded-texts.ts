/** Texts that stand in a URL as base64 or as hexadecimal digits. */
import { decodeOnce } from '../../domain/canonical-url.ts';
import { plainText } from '../../domain/plain-text.ts';

const DIGIT = '[A-Za-z0-9+/_-]';
/** The first character of ASCII in base64, and three: each of the first three digits lacks the bit that a byte beyond ASCII has. */
const FIRST = '[A-Za-f][A-HQ-Xg-nw-z0-3]';
const THREE = `${FIRST}[ABEFIJMNQRUVYZcdghklopstwx014589]${DIGIT}`;
/** A printable character in hexadecimal. */
const ONE = '[2-7][0-9A-Fa-f]';

/** Seven characters in base64, wherever the word begins, or eight in hexadecimal. Without a repetition it is told sooner. */
const BEGINS = new RegExp(`${THREE}${THREE}${FIRST}|${ONE.repeat(8)}`);
const ENCODED = new RegExp(`(?:${THREE}){2,}${DIGIT}{0,3}|(?:${ONE}){8,}`, 'g');

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
  return BEGINS.test(text) ? text.match(ENCODED)! : NO_TEXTS;
}

function decoded(word: string): string {
  // Base64 of ASCII never begins with a digit. Buffer reads both of its alphabets.
  const isHexadecimal = word.charCodeAt(0) <= 0x39;
  const text = Buffer.from(word, isHexadecimal ? 'hex' : 'base64').toString('latin1');
  // Behind the text there may be rubbish, where the word was cut.
  return plainText(decodeOnce(/^[^!-~]*[\t\n\r -~]*/.exec(text)![0]));
}
