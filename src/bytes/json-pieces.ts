/** Pieces of JSON as bytes, to copy directly into an answer. */

/** Copying may read and write this many bytes past the end, because it copies words of eight bytes. */
export const COPY_SLACK_BYTES = 7;

/** A text as bytes, padded so that whole words can be read. */
export interface Piece {
  readonly view: DataView;
  readonly size: number;
}

/** Encodes a text as UTF-8. */
export function pieceOf(text: string): Piece {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(bytes.length + COPY_SLACK_BYTES);
  padded.set(bytes);
  return { view: new DataView(padded.buffer), size: bytes.length };
}

/** Copies a piece to `out` at `at`. Returns its end. */
export function copyPiece(from: Piece, out: DataView, at: number): number {
  return copyRange(from.view, 0, from.size, out, at);
}

/**
 * Copies `from[start, end)` to `out` at `at` and returns its end. It copies words of eight bytes, which the engine keeps in registers: pieces
 * are short, so most of the cost is mispredicted ends of loops. Overwrites up to seven bytes after the end, for which `out` needs space.
 *
 * @throws RangeError if `out` has too little space
 */
export function copyRange(from: DataView, start: number, end: number, out: DataView, at: number): number {
  const size = end - start;
  for (let i = 0; i < size; i += 8) out.setBigInt64(at + i, from.getBigInt64(start + i, true), true);
  return at + size;
}
