/** Encodes texts with a symbol table. Readers decode them with the table alone. */
import { SYMBOL_CODE } from '../format/layout.ts';
import type { SymbolTable } from '../format/symbol-table.ts';

/** Encodes with a symbol table. At each position it uses the longest symbol that matches. */
export class SymbolEncoder {
  /** Number of escaped characters since the caller set it to 0. They include all characters that JSON must escape. */
  escapes = 0;
  /**
   * A trie of the symbols. Each inner node has a row with an element for each character class: the child's row × 256 + the child's code, or
   * 0. A leaf has no row, which keeps the table small for the processor's cache.
   */
  readonly #rows: Int32Array;
  /** Class of each character: a number from 1 for the characters that symbols contain, 0 for all others. */
  readonly #classes: Uint8Array = new Uint8Array(256);

  constructor(table: SymbolTable) {
    let width = 1;
    for (const byte of table.symbols.flatMap((symbol) => [...symbol])) {
      if (this.#classes[byte] === 0) this.#classes[byte] = width++;
    }
    const rows: number[] = new Array<number>(width).fill(0);
    table.symbols.forEach((symbol, i) => {
      let row = 0;
      for (let at = 0; at < symbol.length - 1; at++) {
        const place = row + this.#classes[symbol[at]!]!;
        if (rows[place]! < 256) {
          rows[place] = rows[place]! + rows.length * 256;
          for (let j = 0; j < width; j++) rows.push(0);
        }
        row = rows[place]! >>> 8;
      }
      const place = row + this.#classes[symbol[symbol.length - 1]!]!;
      rows[place] = (rows[place]! & ~0xff) + i + SYMBOL_CODE.first;
    });
    this.#rows = Int32Array.from(rows);
  }

  /** Writes the codes of `source[start, end)` to `out` from `at` on and returns their end. Each byte gives at most 2 bytes. */
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
        if ((child & 0xff) !== 0) {
          best = child & 0xff;
          after = i + 1;
        }
        row = child >>> 8;
        if (row === 0) break;
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
