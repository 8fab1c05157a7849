/** Trains a symbol table with a sample of texts. */
import { SYMBOL_CODE, SYMBOL_MAX_BYTES } from '../format/layout.ts';
import { isPlain, SYMBOLS_MAX, SymbolTable } from '../format/symbol-table.ts';
import { SymbolEncoder } from './symbol-encoder.ts';

const TRAINING_ROUNDS = 5;
/** Number of different pieces that a text can consist of: 256 codes, and 256 escaped characters. */
const PIECES = 512;
const NO_BYTES = new Uint8Array(0);

/**
 * Chooses the symbols that shorten the sample most. The same sample gives the same table. Each character of `alphabet` gets its own
 * symbol, so that texts that consist of these characters need no escapes.
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

/** How often each piece occurs in the sample, and each pair of adjacent pieces. */
interface PieceCounts {
  readonly uses: Uint32Array;
  /** At `first * PIECES + second`. */
  readonly pairUses: Uint32Array;
}

/** Encodes the sample and counts its pieces. A piece is a symbol (numbered by its code) or an escaped character (256 + its byte). */
function countPieces(texts: readonly Uint8Array[], table: SymbolTable): PieceCounts {
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
  return { uses, pairUses };
}

/** Runs one round: returns the symbols that save most bytes, among the symbols used and the concatenations of adjacent pieces. */
function improve(texts: readonly Uint8Array[], table: SymbolTable): Uint8Array[] {
  const { uses, pairUses } = countPieces(texts, table);
  const names = Array.from({ length: PIECES }, (_, piece) =>
    piece >= 256 ? String.fromCharCode(piece - 256) : textOf(table.symbols[piece - SYMBOL_CODE.first] ?? NO_BYTES),
  );
  const gains = new Map<string, number>();
  const add = (symbol: string, gain: number): void => {
    gains.set(symbol, (gains.get(symbol) ?? 0) + gain);
  };
  uses.forEach((count, piece) => {
    const symbol = names[piece]!;
    // A single character without a symbol takes two bytes, so a symbol for it saves one byte.
    if (count > 0) add(symbol, count * (symbol.length === 1 ? 1 : symbol.length - 1));
  });
  for (let pair = 0; pair < pairUses.length; pair++) {
    const count = pairUses[pair]!;
    if (count === 0) continue;
    const first = names[Math.floor(pair / PIECES)]!;
    const second = names[pair % PIECES]!;
    const size = first.length + second.length;
    if (size <= SYMBOL_MAX_BYTES) add(first + second, count * (size - 1));
  }
  return largest(gains, 2 * SYMBOLS_MAX).map((symbol) =>
    Uint8Array.from(symbol, (character) => character.charCodeAt(0)),
  );
}

/** Returns at most `count` symbols with the largest gains; on a tie the smaller one. Sorts only candidates, a few of tens of thousands. */
function largest(gains: ReadonlyMap<string, number>, count: number): string[] {
  const sorted = Float64Array.from(gains.values()).sort();
  const least = sorted[Math.max(0, sorted.length - count)] ?? 0;
  return [...gains]
    .filter(([, gain]) => gain >= least)
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, count)
    .map(([symbol]) => symbol);
}
