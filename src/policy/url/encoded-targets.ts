/** URLs that stand in a URL as base64 or as hexadecimal digits. */

/** How such text begins: `http`, `HTTP`, `//`, `file:`, `ftp:`, `javascript:`, `data:`, `gopher:`; the last ones in hexadecimal. */
const BEGINS =
  /aHR0c|SFRUUD|SFRUUF|Ly[89]|ZmlsZT|ZnRwO|amF2YXNj|ZGF0YT|Z29waG|68747470|48545450|66696c65|6674703a|676f7068|6a617661|646174613a|(?<![0-9a-f])2f2f[0-9a-f]{10}/i;

const WORD_MIN_LENGTH = 8;

/** No more characters of a word are looked at. */
const WORD_MAX_LENGTH = 2_048;

/** A word as encoders write it. A slash of base64 cuts it, which leaves the beginning of the URL. */
const WORD = new RegExp(`(?<![A-Za-z0-9])[A-Za-z0-9+_-]{${WORD_MIN_LENGTH},${WORD_MAX_LENGTH}}`, 'g');

const TARGET = /^(?:https?:|\/\/[a-z0-9[]|file:|ftp:|javascript:|data:|gopher:)/i;
const PRINTABLE = /^[\x20-\x7e]+$/;
/** Digits at the beginning of a word: signs behind them say nothing, nor does a digit too many, which Buffer leaves out. */
const HEXADECIMAL = /^[0-9a-f]{16,}/i;
/** So many characters may stand before what is encoded. */
const MARK_MAX_LENGTH = 2;

/** No more of them are looked at. */
const TARGETS_MAX = 16;

const NO_TARGETS: readonly string[] = Object.freeze([]);

/** What is told to be a URL in the words of a text, decoded once; a few of them. Hardly any text holds one. */
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
