/** Pieces of JSON as bytes, written straight into an answer. */

/** A text as bytes. */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Copies a piece to `out` at `at`; returns where it ends. */
export function copy(from: Uint8Array, out: Uint8Array, at: number): number {
  // A loop is faster than `set` for the few bytes that these pieces have.
  const size = from.length;
  for (let i = 0; i < size; i++) out[at + i] = from[i]!;
  return at + size;
}

/** The shortest decimal, as JSON.stringify writes it: 4.2, not 4.20. */
export function writeHundredths(value: number, out: Uint8Array, start: number): number {
  let at = writeDecimal(Math.floor(value / 100), out, start);
  const rest = value % 100;
  if (rest === 0) return at;
  out[at++] = 0x2e;
  out[at++] = 0x30 + Math.floor(rest / 10);
  if (rest % 10 !== 0) out[at++] = 0x30 + (rest % 10);
  return at;
}

/** A whole number from 0. */
export function writeDecimal(value: number, out: Uint8Array, start: number): number {
  let digits = 1;
  for (let limit = 10; limit <= value; limit *= 10) digits++;
  let rest = value;
  for (let i = start + digits - 1; i >= start; i--) {
    out[i] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  return start + digits;
}
