/**
 * Symbol tables: a text becomes one-byte codes, each of which stands for up to eight characters that often come together.
 * Code 0 takes the next byte as it is, code 1 stands for the record's domain (in URLs), the others are the table's.
 * After Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression" (2020).
 */
import { SYMBOL_CODE, SYMBOL_MAX_BYTES } from './layout.ts';

const SYMBOLS_MAX = 256 - SYMBOL_CODE.first;
const TRAINING_ROUNDS = 5;
/** What a text can be cut into: 256 codes, and 256 characters as they are. */
const PIECES = 512;
const NO_BYTES = new Uint8Array(0);

/** Symbols in a form that decodes: the bytes of code `c` begin at `8 c`; a length of 0 means that there is no such code. */
export class SymbolTable {
  readonly bytes: Uint8Array = new Uint8Array(256 * SYMBOL_MAX_BYTES);
  readonly lengths: Uint8Array = new Uint8Array(256);
  /** The same bytes, to be read by the word. */
  readonly view: DataView = new DataView(this.bytes.buffer);
  /** The same bytes, each symbol a word, and with each a mask of the bytes that it has. */
  readonly words: BigInt64Array = new BigInt64Array(this.bytes.buffer);
  readonly masks: BigInt64Array = new BigInt64Array(256);
  /** What the table was made of, for the dictionary. */
  readonly symbols: readonly Uint8Array[];

  /** Each symbol is 1 to 8 bytes of printable ASCII without quote and backslash: it goes into JSON as it is. */
  constructor(symbols: readonly Uint8Array[]) {
    if (symbols.length > SYMBOLS_MAX) throw new RangeError(`a symbol table has ${symbols.length} symbols`);
    this.symbols = symbols;
    symbols.forEach((symbol, i) => {
      if (symbol.length === 0 || symbol.length > SYMBOL_MAX_BYTES || !symbol.every(isPlain)) {
        throw new RangeError(`symbol ${i} is not 1 to ${SYMBOL_MAX_BYTES} plain characters`);
      }
      this.bytes.set(symbol, (i + SYMBOL_CODE.first) * SYMBOL_MAX_BYTES);
      this.lengths[i + SYMBOL_CODE.first] = symbol.length;
    });
    this.lengths.forEach((size, code) => {
      this.masks[code] = BigInt.asIntN(64, (1n << BigInt(8 * size)) - 1n);
    });
  }
}

/** True for a character that JSON needs no escape for. */
export function isPlain(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c;
}

/** Encodes with a symbol table: at each place the longest symbol that fits. */
export class SymbolEncoder {
  /** Characters that no symbol was found for, since somebody set it to 0. Whatever JSON has to escape is among them. */
  escapes = 0;
  /** The trie of the symbols: of each node a row with a place for each class; in it the child's row × 256 + the child's code, or 0. */
  readonly #rows: Int32Array;
  /** Characters that symbols have, numbered from 1. */
  readonly #classes: Uint8Array = new Uint8Array(256);

  constructor(table: SymbolTable) {
    let width = 1;
    for (const byte of table.symbols.flatMap((symbol) => [...symbol])) {
      if (this.#classes[byte] === 0) this.#classes[byte] = width++;
    }
    const rows: number[] = new Array<number>(width).fill(0);
    table.symbols.forEach((symbol, i) => {
      let place = 0;
      let row = 0;
      for (const byte of symbol) {
        place = row + this.#classes[byte]!;
        if (rows[place] === 0) {
          rows[place] = rows.length * 256;
          for (let j = 0; j < width; j++) rows.push(0);
        }
        row = rows[place]! >>> 8;
      }
      rows[place] = row * 256 + i + SYMBOL_CODE.first;
    });
    this.#rows = Int32Array.from(rows);
  }

  /** Writes the codes of `source[start, end)` to `out` from `at` on; returns where they end. At most 2 bytes for each byte. */
  encode(source: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
    const rows = this.#rows;
    const classes = this.#classes;
    let write = at;
    let read = start;
    while (read < end) {
      let row = 0;
      let best = 0;
      let after = read;
      for (let i = read; i < end; i++) {
        const child = rows[row + classes[source[i]!]!]!;
        if (child === 0) break;
        row = child >>> 8;
        if ((child & 0xff) !== 0) {
          best = child & 0xff;
          after = i + 1;
        }
      }
      if (best === 0) {
        this.escapes += 1;
        out[write++] = SYMBOL_CODE.escape;
        out[write++] = source[read++]!;
      } else {
        out[write++] = best;
        read = after;
      }
    }
    return write;
  }
}

/**
 * Chooses the symbols that shorten the sample most. The same sample gives the same table. Each character of `alphabet` has a symbol
 * of its own, so that no text over it needs an escape.
 */
export function trainSymbols(texts: readonly Uint8Array[], alphabet = ''): SymbolTable {
  const singles = Array.from(alphabet, (character) => Uint8Array.of(character.charCodeAt(0)));
  let table = new SymbolTable(singles);
  for (let i = 0; i < TRAINING_ROUNDS; i++) {
    const better = improve(texts, table).filter((symbol) => symbol.length > 1 || !alphabet.includes(textOf(symbol)));
    table = new SymbolTable([...singles, ...better.slice(0, SYMBOLS_MAX - singles.length)]);
  }
  return table;
}

function textOf(symbol: Uint8Array): string {
  return String.fromCharCode(...symbol);
}

/** One round: encodes the sample, and of the symbols used and of the pairs that followed each other keeps the most useful ones. */
function improve(texts: readonly Uint8Array[], table: SymbolTable): Uint8Array[] {
  // Numbers of what a text is cut into: a code, or, beyond the codes, a character that has none.
  const names = Array.from({ length: PIECES }, (_, piece) =>
    piece >= 256 ? String.fromCharCode(piece - 256) : textOf(table.symbols[piece - SYMBOL_CODE.first] ?? NO_BYTES),
  );
  const uses = new Uint32Array(PIECES);
  const pairUses = new Uint32Array(PIECES * PIECES);
  const encoder = new SymbolEncoder(table);
  const codes = new Uint8Array(2 * Math.max(1, ...texts.map((text) => text.length)));
  for (const text of texts) {
    const end = encoder.encode(text, 0, text.length, codes, 0);
    let previous = -1;
    for (let i = 0; i < end; i++) {
      const escaped = codes[i] === SYMBOL_CODE.escape;
      const piece = escaped ? 256 + codes[++i]! : codes[i]!;
      if (escaped && !isPlain(piece - 256)) {
        previous = -1;
        continue;
      }
      uses[piece] = uses[piece]! + 1;
      if (previous >= 0) pairUses[previous * PIECES + piece] = pairUses[previous * PIECES + piece]! + 1;
      previous = piece;
    }
  }
  const gains = new Map<string, number>();
  const add = (symbol: string, gain: number): void => {
    gains.set(symbol, (gains.get(symbol) ?? 0) + gain);
  };
  uses.forEach((count, piece) => {
    const symbol = names[piece]!;
    // A lone character that has no symbol costs two bytes, so that giving it one saves a whole byte.
    if (count > 0) add(symbol, count * (symbol.length === 1 ? 1 : symbol.length - 1));
  });
  pairUses.forEach((count, pair) => {
    if (count === 0) return;
    const symbol = names[Math.floor(pair / PIECES)]! + names[pair % PIECES]!;
    if (symbol.length <= SYMBOL_MAX_BYTES) add(symbol, count * (symbol.length - 1));
  });
  const ranked = [...gains].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return ranked
    .slice(0, 2 * SYMBOLS_MAX)
    .map(([symbol]) => Uint8Array.from(symbol, (character) => character.charCodeAt(0)));
}
