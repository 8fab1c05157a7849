/** Weighted choice among symbols with a table: one choice costs one table lookup. */

export interface Wheel {
  readonly size: number;
  /** Slot → symbol. */
  readonly table: Uint16Array;
  /** Symbol → its first slot. */
  readonly base: Uint16Array;
  /** Symbol → its number of slots; 0 for a symbol that is never chosen. */
  readonly width: Uint16Array;
}

/** Creates a wheel of `size` slots, distributed by weight. Slots left over by rounding go to the largest remainders. */
export function makeWheel(weights: readonly number[], size: number): Wheel {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const exact = weights.map((weight) => (weight / total) * size);
  const width = Uint16Array.from(exact, Math.floor);
  let left = size - width.reduce((sum, slots) => sum + slots, 0);
  const order = exact.map((_, symbol) => symbol).sort((a, b) => (exact[b]! % 1) - (exact[a]! % 1) || a - b);
  for (const symbol of order) {
    if (left === 0) break;
    width[symbol]! += 1;
    left -= 1;
  }
  return { size, width, ...layOut(width, size) };
}

function layOut(width: Uint16Array, size: number): { table: Uint16Array; base: Uint16Array } {
  const table = new Uint16Array(size);
  const base = new Uint16Array(width.length);
  let at = 0;
  for (const [symbol, slots] of width.entries()) {
    base[symbol] = at;
    table.fill(symbol, at, at + slots);
    at += slots;
  }
  return { table, base };
}

/** Byte strings stored one after the other and accessed by number. */
export class Pool {
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;

  constructor(texts: readonly string[]) {
    this.bytes = Buffer.from(texts.join(''), 'utf8');
    this.starts = new Uint32Array(texts.length + 1);
    for (const [i, text] of texts.entries()) this.starts[i + 1] = this.starts[i]! + Buffer.byteLength(text);
  }

  /** Copies text `i` to `out` at `at`. Returns the offset after it. */
  copy(i: number, out: Uint8Array, at: number): number {
    const { bytes } = this;
    const end = this.starts[i + 1]!;
    let to = at;
    for (let from = this.starts[i]!; from < end; from += 1) out[to++] = bytes[from]!;
    return to;
  }
}
