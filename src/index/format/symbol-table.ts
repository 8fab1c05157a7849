/**
 * Symbol tables encode a text as one-byte codes. Each code represents a frequent sequence of up to eight characters.
 * Code 0 means that the next byte is a character itself. Code 1 is the record's domain (in URLs). The others are the symbols of the table.
 * After Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression" (2020).
 */
import { SYMBOL_CODE, SYMBOL_MAX_BYTES } from './layout.ts';

/** Maximum number of symbols in a table. */
export const SYMBOLS_MAX: number = 256 - SYMBOL_CODE.first;

/** Symbols in a form for decoding: the bytes of code `c` begin at `8 c`. A length of 0 means that the code has no symbol. */
export class SymbolTable {
  readonly bytes: Uint8Array = new Uint8Array(256 * SYMBOL_MAX_BYTES);
  readonly lengths: Uint8Array = new Uint8Array(256);
  /** A view of `bytes`, to read whole words. */
  readonly view: DataView = new DataView(this.bytes.buffer);
  /** The symbols as 64-bit words, and for each a mask of the bytes that it uses. */
  readonly words: BigInt64Array = new BigInt64Array(this.bytes.buffer);
  readonly masks: BigInt64Array = new BigInt64Array(256);
  /** The symbols as they are stored in the dictionary. */
  readonly symbols: readonly Uint8Array[];

  /**
   * Each symbol has 1 to 8 bytes of printable ASCII without space, quote and backslash, so that JSON contains it unchanged.
   *
   * @throws RangeError if a symbol does not, or if there are too many
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

/** True for a printable ASCII character, except space, that JSON does not escape. */
export function isPlain(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c;
}
