/** Splits a query into parameters, and finds the token lists of their names and values. */
import { AMPERSAND, CLOSING_BRACKET, EQUALS, QUESTION_MARK, SLASH } from '../../bytes/ascii.ts';
import { percentDecodeOnce } from '../../domain/percent-decode.ts';
import { plainText } from '../../domain/plain-text.ts';
import type { TokenIndex } from '../words/tokens.ts';
import { ALPHANUMERIC, isIn, tableOf } from './characters.ts';
import { areDigits } from './keys.ts';
import { beginsQuery, nameEnd, staticDot, withoutLooseSigns, withoutSigns } from './segments.ts';

/** A query parameter. Name and value are decoded once. They are copied only on demand, because most are never used. */
export class Parameter {
  /** Token lists of the name. */
  readonly lists: readonly number[];
  /** Whether name or value has a slash, a backslash or a colon. */
  readonly hasPlaceSign: boolean;
  readonly #text: string;
  readonly #start: number;
  readonly #nameEnd: number;
  readonly #valueStart: number;
  readonly #end: number;

  /** The decoded name and value are in `text`, at the given offsets. */
  constructor(
    text: string,
    start: number,
    nameEnd: number,
    valueStart: number,
    end: number,
    lists: readonly number[],
    hasPlaceSign: boolean,
  ) {
    this.#text = text;
    this.#start = start;
    this.#nameEnd = nameEnd;
    this.#valueStart = valueStart;
    this.#end = end;
    this.lists = lists;
    this.hasPlaceSign = hasPlaceSign;
  }

  /** Name, equals sign and value. */
  get text(): string {
    return this.#text.slice(this.#start, this.#end);
  }

  get name(): string {
    return this.#text.slice(this.#start, this.#nameEnd);
  }

  get value(): string {
    return this.#text.slice(this.#valueStart, this.#end);
  }

  /** Whether the name begins with a slash. Some programs put the path of a page there: `index.php?/user/login`. */
  get beginsWithSlash(): boolean {
    return this.#end > this.#start && this.#text.charCodeAt(this.#start) === SLASH;
  }

  get hasValue(): boolean {
    return this.#end > this.#valueStart;
  }

  /** Whether it may hold a URL or a path: it has one of the characters for that, or its name is in one of two token lists. */
  mayBePlace(names: number, moreNames: number = names): boolean {
    return (
      this.hasPlaceSign || (this.lists.length > 0 && (this.lists.includes(names) || this.lists.includes(moreNames)))
    );
  }
}

export const NO_PARAMETERS: readonly Parameter[] = Object.freeze([]);

/** Returns the parameters of a query. Some servers also separate them at `;`, so the parts between these are returned as well, after the whole. */
export function parametersOf(query: string, tokens: TokenIndex): readonly Parameter[] {
  if (query === '') return NO_PARAMETERS;
  const parameters: Parameter[] = [];
  const { length } = query;
  let start = 0;
  let equals = -1;
  let flags = 0;
  for (let at = 0; at <= length; at++) {
    const code = at < length ? query.charCodeAt(at) : AMPERSAND;
    const flag = code < 128 ? CHARACTER_FLAGS[code]! : PARAMETER_HAS.encoded;
    if (flag === 0) continue;
    if (code === EQUALS) {
      if (equals < 0) equals = at;
    } else if (code !== AMPERSAND) flags |= flag;
    else {
      if (at > start) addParameters(parameters, query, start, equals < 0 ? at : equals, at, flags, tokens);
      start = at + 1;
      equals = -1;
      flags = 0;
    }
  }
  return parameters;
}

/** Flags for the characters in a part of a query. */
const PARAMETER_HAS = { place: 1, encoded: 2, semicolon: 4, separator: 8 } as const;
/** For each ASCII code, its flag of {@link PARAMETER_HAS}. */
const CHARACTER_FLAGS = new Uint8Array(128);
for (const sign of '/:\\') CHARACTER_FLAGS[sign.charCodeAt(0)] = PARAMETER_HAS.place;
for (const sign of '%+') CHARACTER_FLAGS[sign.charCodeAt(0)] = PARAMETER_HAS.encoded;
CHARACTER_FLAGS[0x3b] = PARAMETER_HAS.semicolon;
CHARACTER_FLAGS[EQUALS] = PARAMETER_HAS.separator;
CHARACTER_FLAGS[AMPERSAND] = PARAMETER_HAS.separator;

/** Adds the parameter between `start` and `end`, whose name ends at `nameEnd`. `flags` are the {@link PARAMETER_HAS} of its characters. */
function addParameters(
  to: Parameter[],
  query: string,
  start: number,
  nameEnd: number,
  end: number,
  flags: number,
  tokens: TokenIndex,
): void {
  if ((flags & PARAMETER_HAS.encoded) !== 0) to.push(parameterOf(query.slice(start, end), tokens));
  else {
    const lists = listsOfName(query, start, nameEnd, tokens);
    const valueStart = nameEnd < end ? nameEnd + 1 : end;
    to.push(new Parameter(query, start, nameEnd, valueStart, end, lists, (flags & PARAMETER_HAS.place) !== 0));
  }
  if ((flags & PARAMETER_HAS.semicolon) === 0) return;
  for (const piece of query.slice(start, end).split(';')) to.push(parameterOf(piece, tokens));
}

function parameterOf(encoded: string, tokens: TokenIndex): Parameter {
  const equals = encoded.indexOf('=');
  const name = decodeForm(equals < 0 ? encoded : encoded.slice(0, equals));
  const text = equals < 0 ? name : `${name}=${decodeForm(encoded.slice(equals + 1))}`;
  const lists = listsOfName(name, 0, name.length, tokens);
  const valueStart = equals < 0 ? name.length : name.length + 1;
  return new Parameter(text, 0, name.length, valueStart, text.length, lists, hasPlaceSign(text));
}

/**
 * Returns the token lists of a name. Further question marks at its start are skipped, because some servers take the second for the first.
 * An `&` that was encoded ends the name. If an entry of an array (`form[action]`) is in no list as a whole, its last key is the name; a
 * number is not a key (`action[0]`).
 */
function listsOfName(text: string, start: number, end: number, tokens: TokenIndex): readonly number[] {
  let first = start;
  while (first < end && text.charCodeAt(first) === QUESTION_MARK) first++;
  let last = first;
  while (last < end && text.charCodeAt(last) !== AMPERSAND) last++;
  for (;;) {
    const lists = tokens.find(text, first, last);
    if (lists.length > 0 || last === 0 || text.charCodeAt(last - 1) !== CLOSING_BRACKET) return lists;
    const opening = text.lastIndexOf('[', last - 2);
    if (opening <= first) return lists;
    if (!areDigits(text, opening + 1, last - 1)) return tokens.find(text, opening + 1, last - 1);
    last = opening;
  }
}

function hasPlaceSign(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 128 && (CHARACTER_FLAGS[code]! & PARAMETER_HAS.place) !== 0) return true;
  }
  return false;
}

/** Decodes a form field: `+` is a space, percent escapes are UTF-8. Undoes what {@link plainText} undoes, too. */
function decodeForm(text: string): string {
  return plainText(percentDecodeOnce(text.includes('+') ? text.replaceAll('+', ' ') : text));
}

/** Whether a parameter whose name is in `list` has a value. */
export function hasValueOf(parameters: readonly Parameter[], list: number): boolean {
  for (let at = 0; at < parameters.length; at++) {
    const { hasValue, lists } = parameters[at]!;
    if (hasValue && lists.includes(list)) return true;
  }
  return false;
}

/**
 * Returns the token lists of a value, of its segments between slashes, and of their parts between colons, dots and the like. Punctuation at
 * its end makes no difference.
 * @param mayBeId whether the value may be the id of a program
 */
export function listsOfValue(text: string, tokens: TokenIndex, mayBeId: boolean): readonly number[] {
  if (isWord(text)) return tokens.find(text, 0, text.length);
  const value = withoutLooseSigns(text);
  const slash = value.indexOf('/');
  const first = listsOfSegment(value, 0, slash < 0 ? value.length : slash, tokens, mayBeId);
  if (slash < 0) return first;
  const all = new Set(first);
  for (let start = slash + 1; start < value.length; ) {
    const next = value.indexOf('/', start);
    const end = next < 0 ? value.length : next;
    if (end > start) for (const list of listsOfSegment(value, start, end, tokens, mayBeId)) all.add(list);
    start = end + 1;
  }
  return [...all];
}

/** Characters of words that no separator, extension or trailing sign interrupts. */
const IN_WORD = tableOf(`${ALPHANUMERIC}-_`);

/** Whether a value is nothing but words, and ends with a letter or digit. */
function isWord(text: string): boolean {
  if (text === '' || !isIn(LETTERS_AND_DIGITS, text.charCodeAt(text.length - 1))) return false;
  for (let at = 0; at < text.length; at++) if (!isIn(IN_WORD, text.charCodeAt(at))) return false;
  return true;
}

function listsOfSegment(
  value: string,
  from: number,
  to: number,
  tokens: TokenIndex,
  mayBeId: boolean,
): readonly number[] {
  const whole = tokens.findName(value, from, nameEnd(value, from, to));
  if (mayBeId && isProgramId(value)) return whole;
  const fileDot = staticDot(value, from, to);
  let all: Set<number> | undefined;
  for (let start = from, at = from; at <= to; at++) {
    if (at < to && (at === fileDot || !isSeparator(value, at))) continue;
    if (at > start && at - start < to - from) {
      const part = tokens.findName(value, start, at);
      if (part.length > 0) {
        all ??= new Set(whole);
        for (const list of part) all.add(list);
      }
    }
    start = at + 1;
  }
  return all === undefined ? whole : [...all];
}

/** Whether a value can only be a path of the same site: `user/login`, but not `either/or of two`, and not an address. */
export function isPath(value: string): boolean {
  return value.includes('/') && !/[\s:.]/.test(withoutSigns(value));
}

/** Whether a value is a date, in one of the common orders. */
export function isDate(value: string): boolean {
  return /^(?:[0-9]{4}([-./])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-./])[0-9]{1,2}\2[0-9]{4}|20[0-9]{6})[^\p{L}\p{N}]*$/u.test(
    value,
  );
}

/** Whether a value is the id of a program as app stores write it, a domain in reverse: `com.example.settings`. */
function isProgramId(value: string): boolean {
  return /^(?:com|org|net|io)(?:\.[a-z][a-z0-9_]*)+$/i.test(value);
}

const LETTERS_AND_DIGITS = tableOf(ALPHANUMERIC);
const SEPARATORS = tableOf('\\:;.|,?#\0');

/**
 * Whether a character separates the words in a segment of a value: backslash, colon, semicolon, dot, vertical bar, comma, what begins a
 * query, and the NUL that ends a string in C.
 */
function isSeparator(value: string, at: number): boolean {
  const code = value.charCodeAt(at);
  return isIn(SEPARATORS, code) || (code === AMPERSAND && beginsQuery(value, at, value.length));
}
