/** Learns a symbol table from a sample of texts. */
import { SYMBOL_CODE, SYMBOL_MAX_BYTES } from '../format/layout.ts';
import { isPlain, SYMBOLS_MAX, SymbolTable } from '../format/symbol-table.ts';
import { SymbolEncoder } from './symbol-encoder.ts';

const TRAINING_ROUNDS = 5;
/** What a text can be cut into: 256 codes, and 256 characters as they are. */
const PIECES = 512;
const NO_BYTES = new Uint8Array(0);

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

/** How often each piece is in the sample, and each pair of pieces: one right after the other. */
interface PieceCounts {
  readonly uses: Uint32Array;
  /** At `first * PIECES + second`. */
  readonly pairUses: Uint32Array;
}

/** Encodes the sample and counts. A piece is what a code stands for: a symbol, or, beyond the codes, a character that has none. */
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

/** One round: of the symbols used and of the pairs that followed each other, those that save most bytes. */
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
    // A lone character that has no symbol costs two bytes, so that giving it one saves a whole byte.
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

/** The symbols with the largest gains, at most `count` of them; on a tie the smaller one. Few of tens of thousands are kept, so only those are sorted. */
function largest(gains: ReadonlyMap<string, number>, count: number): string[] {
  const sorted = Float64Array.from(gains.values()).sort();
  const least = sorted[Math.max(0, sorted.length - count)] ?? 0;
  return [...gains]
    .filter(([, gain]) => gain >= least)
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, count)
    .map(([symbol]) => symbol);
}
