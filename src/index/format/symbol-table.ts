/**
 * Symbol tables: a text becomes one-byte codes, each of which stands for up to eight characters that often come together.
 * Code 0 takes the next byte as it is, code 1 stands for the record's domain (in URLs), the others are the table's.
 * After Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression" (2020).
 */
import { SYMBOL_CODE, SYMBOL_MAX_BYTES } from './layout.ts';

/** Symbols of one table. */
export const SYMBOLS_MAX: number = 256 - SYMBOL_CODE.first;

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

  /**
   * Each symbol is 1 to 8 bytes of printable ASCII without quote and backslash: it goes into JSON as it is.
   *
   * @throws RangeError for any other
   */
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
