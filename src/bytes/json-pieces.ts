/** Pieces of JSON as bytes, written straight into an answer. */

/** Bytes that copying may read or write past an end: it goes by words of eight. */
export const COPY_SLACK_BYTES = 7;

/** A text as bytes, with space after it for a whole word. */
export interface Piece {
  readonly view: DataView;
  readonly size: number;
}

/** The UTF-8 bytes of a text. */
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
 * what costs is to guess where each ends. Up to seven bytes after the end are overwritten as well. `out` needs space for them.
 *
 * @throws RangeError where it has too little
 */
export function copyRange(from: DataView, start: number, end: number, out: DataView, at: number): number {
  const size = end - start;
  for (let i = 0; i < size; i += 8) out.setBigInt64(at + i, from.getBigInt64(start + i, true), true);
  return at + size;
}
