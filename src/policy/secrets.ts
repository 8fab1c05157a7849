/** Credentials in a URL, by the prefixes that their issuers gave them. Linear in the text's length. */
import type { SecretToken } from './documents.ts';

const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const UPPER = LOWER.toUpperCase();
const DIGITS = '0123456789';

/** The alphabets a policy can name. `jwt` is `word_dash` with dots; `any` asks for nothing after the prefix. */
const ALPHABETS: Readonly<Record<string, string>> = {
  upper_digit: UPPER + DIGITS,
  alphanumeric: LOWER + UPPER + DIGITS,
  word: `${LOWER + UPPER + DIGITS}_`,
  word_dash: `${LOWER + UPPER + DIGITS}_-`,
  word_dash_dot: `${LOWER + UPPER + DIGITS}_-.`,
  jwt: `${LOWER + UPPER + DIGITS}_-.`,
  any: '',
};

interface Prefix {
  readonly text: string;
  readonly alphabet: number;
  readonly minLength: number;
  readonly minDots: number;
  readonly name: string;
}

const IS_ALNUM = tableOf(LOWER + UPPER + DIGITS);

function tableOf(characters: string): Uint8Array {
  const table = new Uint8Array(128);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
}

export class SecretScanner {
  /** For each ASCII code: 2 = a prefix starts with it and it is a letter or digit, 1 = letter or digit, 3 = a prefix starts with it, 0 = neither. */
  private readonly kinds = new Uint8Array(128);
  private readonly byFirst: (readonly Prefix[] | undefined)[] = new Array(128).fill(undefined);
  private readonly alphabets: Uint8Array[] = [];
  private readonly minLength: number;

  constructor(tokens: readonly SecretToken[]) {
    let shortest = Number.POSITIVE_INFINITY;
    const ordinals = new Map<string, number>();
    for (const token of tokens) {
      const alphabet =
        ordinals.get(token.alphabet) ?? this.alphabets.push(tableOf(ALPHABETS[token.alphabet] ?? '')) - 1;
      ordinals.set(token.alphabet, alphabet);
      for (const text of token.prefixes) {
        const first = text.charCodeAt(0);
        const prefix = { text, alphabet, minLength: token.min_length, minDots: token.min_dots ?? 0, name: token.name };
        this.byFirst[first] = [...(this.byFirst[first] ?? []), prefix];
        shortest = Math.min(shortest, text.length + token.min_length);
      }
    }
    for (let code = 0; code < 128; code++) {
      const starts = this.byFirst[code] !== undefined;
      this.kinds[code] = IS_ALNUM[code] === 1 ? (starts ? 2 : 1) : starts ? 3 : 0;
    }
    this.minLength = shortest;
  }

  /** What kind of credential the text holds; undefined for none. */
  find(text: string): string | undefined {
    if (text.length < this.minLength) return undefined;
    // Where the run of an alphabet that was measured last ends: a run is measured once, however many prefixes start in it.
    let runEnds: Int32Array | undefined;
    let inWord = false;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      const kind = code < 128 ? this.kinds[code]! : 0;
      if (kind >= 2 && !inWord) {
        runEnds ??= new Int32Array(this.alphabets.length);
        for (const prefix of this.byFirst[code]!) if (this.matches(prefix, text, at, runEnds)) return prefix.name;
      }
      inWord = kind === 1 || kind === 2;
    }
    return undefined;
  }

  private matches(prefix: Prefix, text: string, at: number, runEnds: Int32Array): boolean {
    if (!text.startsWith(prefix.text, at)) return false;
    const start = at + prefix.text.length;
    if (prefix.minLength === 0) return true;
    const table = this.alphabets[prefix.alphabet]!;
    let end = runEnds[prefix.alphabet]!;
    if (end < start) {
      end = start;
      while (end < text.length && text.charCodeAt(end) < 128 && table[text.charCodeAt(end)] === 1) end++;
      runEnds[prefix.alphabet] = end;
    }
    if (end - start < prefix.minLength) return false;
    if (prefix.minDots === 0) return true;
    const dot = text.indexOf('.', start);
    return dot > 0 && dot < end - 4;
  }
}
