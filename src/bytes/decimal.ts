/** Writes numbers as decimal digits, directly into bytes. */

/** Writes a number given in hundredths as the shortest decimal, as JSON.stringify would: 4.2, not 4.20. Returns its end. */
export function writeHundredths(value: number, out: DataView, start: number): number {
  let at = writeDecimal(Math.floor(value / 100), out, start);
  const rest = value % 100;
  if (rest === 0) return at;
  out.setUint8(at++, 0x2e);
  out.setUint8(at++, 0x30 + Math.floor(rest / 10));
  if (rest % 10 !== 0) out.setUint8(at++, 0x30 + (rest % 10));
  return at;
}

/** Returns the number of decimal digits of a nonnegative integer. */
export function decimalSize(value: number): number {
  let digits = 1;
  for (let limit = 10; limit <= value; limit *= 10) digits++;
  return digits;
}

/** Writes a nonnegative integer at `start`. Returns its end. */
export function writeDecimal(value: number, out: DataView, start: number): number {
  const end = start + decimalSize(value);
  let rest = value;
  for (let i = end - 1; i >= start; i--) {
    out.setUint8(i, 0x30 + (rest % 10));
    rest = Math.floor(rest / 10);
  }
  return end;
}
