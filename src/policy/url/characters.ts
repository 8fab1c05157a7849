/** ASCII letters and digits in a text, examined without a copy, and sets of file extensions, which consist of them. */

export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Whether there is a digit between `start` and `end`. */
export function hasDigit(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (isDigit(text.charCodeAt(at))) return true;
  return false;
}

/** Index of all characters beyond ASCII in a table. */
const BEYOND = 128;

/** Returns a table with a 1 for each of the given ASCII characters. It never has those beyond ASCII. */
export function tableOf(characters: string): Uint8Array {
  const table = new Uint8Array(BEYOND + 1);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
}

export const LOWER = 'abcdefghijklmnopqrstuvwxyz';
export const DIGITS = '0123456789';
export const ALPHANUMERIC = LOWER + LOWER.toUpperCase() + DIGITS;

/**
 * Returns the offset, at or after `from`, of the first run of at least `size` characters that are all in a table; -1 if there is none.
 * `from` is an offset where a run may begin. Examines one character in `size`, and those before it until one is not in the table.
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

/** Returns the end of the run that continues at `at`. */
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

/** This many letters and digits fit into a small integer. */
const PACKED_MAX_LENGTH = 5;
const BASE = 37;

/** Packs at most {@link PACKED_MAX_LENGTH} letters and digits, ignoring case, into one number. Returns -1 if there are more, or other characters. */
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

/** A set of file extensions, which are ASCII letters and digits. */
export class ExtensionSet {
  readonly #packed = new Set<number>();
  readonly #long = new Set<string>();

  /** @param extensions in lower case, separated by blanks */
  constructor(extensions: string) {
    for (const extension of extensions.split(' ')) {
      if (extension.length > PACKED_MAX_LENGTH) this.#long.add(extension);
      else this.#packed.add(packText(extension, 0, extension.length));
    }
  }

  /** Whether the text between `start` and `end` is in the set. */
  has(text: string, start: number, end: number): boolean {
    if (end <= start) return false;
    const number = packText(text, start, end);
    return number >= 0 ? this.#packed.has(number) : this.#hasText(text.slice(start, end).toLowerCase());
  }

  #hasText(lower: string): boolean {
    return this.#long.has(lower) || this.#packed.has(packText(lower, 0, lower.length));
  }
}

/** For each ASCII code, the lower-case letter or the digit that it counts as, or 0 for a separator. */
export const FOLD = new Uint8Array(128);
for (let code = 0x30; code <= 0x39; code++) FOLD[code] = code;
for (let code = 0x61; code <= 0x7a; code++) {
  FOLD[code] = code;
  FOLD[code - 0x20] = code;
}
