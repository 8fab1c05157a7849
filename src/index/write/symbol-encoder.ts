/** Cuts texts into symbols: the counterpart of what readers do with a symbol table. */
import { SYMBOL_CODE } from '../format/layout.ts';
import type { SymbolTable } from '../format/symbol-table.ts';

/** Encodes with a symbol table: at each place the longest symbol that fits. */
export class SymbolEncoder {
  /** Characters that no symbol was found for, since somebody set it to 0. Whatever JSON has to escape is among them. */
  escapes = 0;
  /**
   * The trie of the symbols: of each node a row with a place for each class; in it the child's row × 256 + the child's code, or 0. A leaf has
   * no row: the fewer there are, the nearer they lie.
   */
  readonly #rows: Int32Array;
  /** Characters that symbols have, numbered from 1. */
  readonly #classes: Uint8Array = new Uint8Array(256);

  /** Encodes with that table. */
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
