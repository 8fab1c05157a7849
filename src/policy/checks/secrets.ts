/** Finds credentials in a URL by their issuers' prefixes, by their form, or by a check digit. Linear in the length of the text. */
import type { SecretForm, SecretToken } from '../documents.ts';
import { ALPHANUMERIC, DIGITS, hasRun, isDigit, runEnd, tableOf } from '../url/characters.ts';
import { type PathSegments, SEGMENT_HAS } from '../url/path-segments.ts';

/** The alphabets that a policy can name. `jwt` is `word_dash` with dots. With `any`, nothing needs to follow the prefix. */
const ALPHABETS: Readonly<Record<string, string>> = {
  hexadecimal: `${DIGITS}abcdef`,
  upper_digit: `ABCDEFGHIJKLMNOPQRSTUVWXYZ${DIGITS}`,
  alphanumeric: ALPHANUMERIC,
  word: `${ALPHANUMERIC}_`,
  word_dash: `${ALPHANUMERIC}_-`,
  word_dash_dot: `${ALPHANUMERIC}_-.`,
  base64: `${ALPHANUMERIC}+/`,
  jwt: `${ALPHANUMERIC}_-.`,
  any: '',
};

interface Prefix {
  readonly text: string;
  readonly alphabet: number;
  readonly minLength: number;
  readonly minDots: number;
}

const IN_WORD = tableOf(ALPHANUMERIC);

/** Stands for every non-ASCII code, and for the end of a text. */
const NOT_ASCII = 128;
const PAIR_WIDTH = NOT_ASCII + 1;

/** Combines an ASCII code and the following code into one number. */
function pairOf(code: number, next: number): number {
  return code * PAIR_WIDTH + (next < NOT_ASCII ? next : NOT_ASCII);
}

/** Card numbers by the issuers' first digits and lengths: Visa, Mastercard, Discover; below, American Express. */
const CARD =
  /(?<![\p{L}\p{N}._-])(?:4[0-9]{3}|5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720|6011|65[0-9]{2})(?:([ +-]?)[0-9]{4})(?:\1[0-9]{4}){2}(?![_-]*[\p{L}\p{N}])/gu;
const AMEX = /(?<![\p{L}\p{N}._-])3[47][0-9]{2}([ +-]?)[0-9]{6}\1[0-9]{5}(?![_-]*[\p{L}\p{N}])/gu;
/** A country code, two check digits, and an account number. */
const IBAN = /(?<![\p{L}\p{N}])[A-Z]{2}[0-9]{2}(?:[ +]?[A-Z0-9]{4}){2,7}(?:[ +]?[A-Z0-9]{1,3})?(?![\p{L}\p{N}])/giu;
const TELEGRAM = /(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])/;
const DISCORD = /(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-])/;
/** The shortest such token: 24, 6 and 27 characters, and two dots. */
const DISCORD_MIN_LENGTH = 59;

/** A text without a run of this many of these characters contains no card number. */
const IN_CARD = tableOf(`${DIGITS} +-`);
const CARD_MIN_LENGTH = 15;

/** A credential without a prefix. */
interface Form {
  /** A text with fewer digits cannot contain one. */
  readonly minDigits: number;
  isIn(text: string): boolean;
}

const FORMS: Readonly<Record<SecretForm, Form>> = {
  telegram: { minDigits: 8, isIn: (text) => text.includes(':AA') && TELEGRAM.test(text) },
  // The digits of the user's id are in base64, so a token may have only a few.
  discord: { minDigits: 0, isIn: (text) => text.length >= DISCORD_MIN_LENGTH && DISCORD.test(text) },
  card: {
    minDigits: CARD_MIN_LENGTH,
    isIn: (text) =>
      hasRun(text, IN_CARD, CARD_MIN_LENGTH) && [CARD, AMEX].some((form) => text.match(form)?.some(passesLuhn)),
  },
  iban: { minDigits: 8, isIn: (text) => text.match(IBAN)?.some(passesIban) === true },
};

function digitsIn(text: string): number {
  let digits = 0;
  for (let at = 0; at < text.length; at++) if (isDigit(text.charCodeAt(at))) digits++;
  return digits;
}

/** Finds credentials in a text in one pass. */
export class SecretScanner {
  /** For each pair of codes (see {@link pairOf}), the index in `#prefixes` of the prefixes that start with it; 0 for none. */
  readonly #pairs = new Uint16Array(128 * PAIR_WIDTH);
  readonly #prefixes: Prefix[][] = [[]];
  readonly #alphabets: Uint8Array[] = [];
  /** For each alphabet, the end of the run of its characters that was measured last in the current text. Valid only if `#isMeasured`. */
  readonly #runEnds: Int32Array;
  #isMeasured = false;
  readonly #forms: readonly Form[];
  readonly #minLength: number;

  /**
   * @param tokens credentials with an issuer's prefix
   * @param forms credentials without a prefix
   */
  constructor(tokens: readonly SecretToken[], forms: readonly SecretForm[] = []) {
    let shortest = Number.POSITIVE_INFINITY;
    const ordinals = new Map<string, number>();
    for (const token of tokens) {
      const alphabet =
        ordinals.get(token.alphabet) ?? this.#alphabets.push(tableOf(ALPHABETS[token.alphabet] ?? '')) - 1;
      ordinals.set(token.alphabet, alphabet);
      for (const text of token.prefixes) {
        const minDots = token.min_dots ?? 0;
        this.#add({ text, alphabet, minLength: token.min_length, minDots });
        shortest = Math.min(shortest, text.length + token.min_length);
      }
    }
    this.#forms = forms.map((form) => FORMS[form]);
    this.#minLength = shortest;
    this.#runEnds = new Int32Array(this.#alphabets.length);
  }

  #add(prefix: Prefix): void {
    const [first, second] = [prefix.text.charCodeAt(0), prefix.text.charCodeAt(1)];
    // A prefix of one character: any second code.
    const seconds = Number.isNaN(second) ? Array.from({ length: PAIR_WIDTH }, (_, code) => code) : [second];
    for (const code of first < 128 ? seconds : []) {
      const pair = pairOf(first, code);
      if (this.#pairs[pair] === 0) this.#pairs[pair] = this.#prefixes.push([]) - 1;
      this.#prefixes[this.#pairs[pair]!]!.push(prefix);
    }
  }

  /** Whether a text contains a credential. */
  isIn(text: string): boolean {
    if (text.length < this.#minLength) return false;
    this.#isMeasured = false;
    // A prefix begins only at the start of a word.
    for (let at = 0; at < text.length; at = runEnd(text, IN_WORD, at) + 1) if (this.#isAt(text, at)) return true;
    return this.#hasForm(text, digitsIn(text));
  }

  /** Like {@link isIn} for a parsed path. */
  isInPath(path: string, segments: PathSegments): boolean {
    if (path.length < this.#minLength) return false;
    if (segments.isCut) return this.isIn(path);
    this.#isMeasured = false;
    for (let at = 0, part = 0; at < path.length && part <= segments.partsCount; at = segments.parts[part++]! + 1) {
      if (this.#isAt(path, at)) return true;
    }
    return this.#hasForm(path, (segments.signs & SEGMENT_HAS.digit) === 0 ? 0 : digitsIn(path));
  }

  /** @param digits how many digits the text has */
  #hasForm(text: string, digits: number): boolean {
    for (let at = 0; at < this.#forms.length; at++) {
      const form = this.#forms[at]!;
      if (digits >= form.minDigits && form.isIn(text)) return true;
    }
    return false;
  }

  /** Whether a credential with a prefix begins at `at`. */
  #isAt(text: string, at: number): boolean {
    const code = text.charCodeAt(at);
    const next = at + 1 < text.length ? text.charCodeAt(at + 1) : NOT_ASCII;
    const entry = code < NOT_ASCII ? this.#pairs[pairOf(code, next)]! : 0;
    if (entry === 0) return false;
    for (const prefix of this.#prefixes[entry]!)
      if (standsAt(prefix.text, text, at) && this.#matches(prefix, text, at)) return true;
    return false;
  }

  /** Whether enough characters follow the prefix at `at`. Each run is measured only once, no matter how many prefixes begin in it. */
  #matches(prefix: Prefix, text: string, at: number): boolean {
    const start = at + prefix.text.length;
    if (prefix.minLength === 0) return true;
    if (!this.#isMeasured) this.#runEnds.fill(0);
    this.#isMeasured = true;
    const table = this.#alphabets[prefix.alphabet]!;
    const runEnds = this.#runEnds;
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

/**
 * Whether a prefix, whose first character is known to match, is at an offset of the text. Most words differ in the third character, so this
 * loop is faster than `startsWith`.
 */
function standsAt(prefix: string, text: string, start: number): boolean {
  if (start + prefix.length > text.length) return false;
  for (let at = 1; at < prefix.length; at++) if (text.charCodeAt(start + at) !== prefix.charCodeAt(at)) return false;
  return true;
}

/** Checks the check digit of a payment card (Luhn). */
function passesLuhn(text: string): boolean {
  const digits = text.replace(/[^0-9]/g, '');
  let sum = 0;
  for (let at = 0; at < digits.length; at++) {
    const digit = digits.charCodeAt(digits.length - 1 - at) - 0x30;
    const doubled = at % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  // One repeated digit can pass the check, but is not a card number.
  return sum % 10 === 0 && !/^(.)\1*$/.test(digits);
}

/** Lengths of international bank account numbers by country (ISO 13616). */
const IBAN_LENGTHS = new Map(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 ' +
    'GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 ' +
    'MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 ' +
    'VA22 VG24 XK20'
  )
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

/** Checks the length and check digits of an international bank account number (ISO 7064, MOD 97-10). */
function passesIban(text: string): boolean {
  const account = text.replace(/[^A-Za-z0-9]/g, '').toUpperCase();
  if (account.length !== IBAN_LENGTHS.get(account.slice(0, 2))) return false;
  let rest = 0;
  for (const character of account.slice(4) + account.slice(0, 4)) {
    const value = Number.parseInt(character, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}
