/** Pieces of JSON as bytes, written straight into an answer. */

/** Bytes that copying may read or write past an end: it goes by words of eight. */
export const COPY_SLACK_BYTES = 7;

/** A text as bytes, with room behind it for a whole word. */
export interface Piece {
  readonly view: DataView;
  readonly size: number;
}

export function pieceOf(text: string): Piece {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(bytes.length + COPY_SLACK_BYTES);
  padded.set(bytes);
  return { view: new DataView(padded.buffer), size: bytes.length };
}

/** Copies a piece to `out` at `at`; returns where it ends. */
export function copyPiece(from: Piece, out: DataView, at: number): number {
  return copyRange(from.view, 0, from.size, out, at);
}

/**
 * Copies `from[start, end)` to `out` at `at`; returns where it ends. It goes by words, which the engine keeps in registers: pieces are short, and
 * what costs is to guess where each ends. Up to seven bytes behind the end are overwritten as well. Throws RangeError where `out` has no
 * room for them.
 */
export function copyRange(from: DataView, start: number, end: number, out: DataView, at: number): number {
  const size = end - start;
  for (let i = 0; i < size; i += 8) out.setBigInt64(at + i, from.getBigInt64(start + i, true), true);
  return at + size;
}

/** The shortest decimal, as JSON.stringify writes it: 4.2, not 4.20. */
export function writeHundredths(value: number, out: DataView, start: number): number {
  let at = writeDecimal(Math.floor(value / 100), out, start);
  const rest = value % 100;
  if (rest === 0) return at;
  out.setUint8(at++, 0x2e);
  out.setUint8(at++, 0x30 + Math.floor(rest / 10));
  if (rest % 10 !== 0) out.setUint8(at++, 0x30 + (rest % 10));
  return at;
}

/** A whole number from 0. */
export function writeDecimal(value: number, out: DataView, start: number): number {
  let digits = 1;
  for (let limit = 10; limit <= value; limit *= 10) digits++;
  let rest = value;
  for (let i = start + digits - 1; i >= start; i--) {
    out.setUint8(i, 0x30 + (rest % 10));
    rest = Math.floor(rest / 10);
  }
  return start + digits;
}
