/** Letters and digits of ASCII in a text, looked at without a copy, and sets of file extensions, which are made of them. */

export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Whether a digit stands between `start` and `end`. */
export function hasDigit(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (isDigit(text.charCodeAt(at))) return true;
  return false;
}

/** Where a table has what is beyond ASCII. */
const BEYOND = 128;

/** For each ASCII code whether it is one of some characters; what is beyond ASCII never is. */
export function tableOf(characters: string): Uint8Array {
  const table = new Uint8Array(BEYOND + 1);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
}

export const LOWER = 'abcdefghijklmnopqrstuvwxyz';
export const DIGITS = '0123456789';
export const ALPHANUMERIC = LOWER + LOWER.toUpperCase() + DIGITS;

/**
 * Where behind `from` a run begins, of at least `size` characters in a row that are all in a table; -1 where none does. `from` is where one
 * may begin. One character in `size` is looked at, and those before it until one is not in the table.
 */
export function findRun(text: string, table: Uint8Array, size: number, from = 0): number {
  for (let start = from; start + size <= text.length; ) {
    let at = start + size - 1;
    while (at >= start && isIn(table, text.charCodeAt(at))) at--;
    if (at < start) return start;
    start = at + 1;
  }
  return -1;
}

/** Where the run that goes on at `at` ends. */
export function runEnd(text: string, table: Uint8Array, at: number): number {
  let end = at;
  while (end < text.length && isIn(table, text.charCodeAt(end))) end++;
  return end;
}

/** Whether a table has a character. */
export function isIn(table: Uint8Array, code: number): boolean {
  return table[code < BEYOND ? code : BEYOND] === 1;
}

export function hasRun(text: string, table: Uint8Array, size: number): boolean {
  return findRun(text, table, size) >= 0;
}

/** As many letters and digits fit into a small integer. */
const PACKED_MAX_LENGTH = 5;
const BASE = 37;

/** At most {@link PACKED_MAX_LENGTH} letters and digits, without case, as one number; -1 where there are more, or something else is among them. */
export function packText(text: string, start: number, end: number): number {
  if (end - start > PACKED_MAX_LENGTH) return -1;
  let number = 0;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    const lower = code | 0x20;
    if (isDigit(code)) number = number * BASE + code - 0x2f;
    else if (code < 0x80 && lower >= 0x61 && lower <= 0x7a) number = number * BASE + lower - 0x56;
    else return -1;
  }
  return number;
}

/** A set of extensions, which are letters and digits of ASCII. */
export class ExtensionSet {
  readonly #packed = new Set<number>();
  readonly #long = new Set<string>();

  /** @param extensions in lower case, a blank between them */
  constructor(extensions: string) {
    for (const extension of extensions.split(' ')) {
      if (extension.length > PACKED_MAX_LENGTH) this.#long.add(extension);
      else this.#packed.add(packText(extension, 0, extension.length));
    }
  }

  /** Whether what stands between `start` and `end` is one. */
  has(text: string, start: number, end: number): boolean {
    if (end <= start) return false;
    const number = packText(text, start, end);
    return number >= 0 ? this.#packed.has(number) : this.#hasText(text.slice(start, end).toLowerCase());
  }

  #hasText(lower: string): boolean {
    return this.#long.has(lower) || this.#packed.has(packText(lower, 0, lower.length));
  }
}

// How tokens are compared: letters and digits of ASCII without case, everything between them left out, as one hash.

/** For each ASCII code what it counts as: lower-case letter, digit, or 0 for separators. */
export const FOLD = new Uint8Array(128);
for (let code = 0x30; code <= 0x39; code++) FOLD[code] = code;
for (let code = 0x61; code <= 0x7a; code++) {
  FOLD[code] = code;
  FOLD[code - 0x20] = code;
}

/** FNV-1a, a folded character at a time: `hash = Math.imul(hash ^ folded, HASH_PRIME)`. */
export const HASH_SEED = 0x811c9dc5 | 0;
export const HASH_PRIME = 0x01000193;
