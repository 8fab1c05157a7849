import { describe, expect, it } from 'vitest';
import { decimalSize, writeDecimal, writeHundredths } from '../../src/bytes/decimal.ts';

const PLACE = 3;

/** Returns what a function writes between other bytes, and checks that those bytes are unchanged. */
function written(write: (out: DataView, start: number) => number): string {
  const bytes = Buffer.alloc(32, '#');
  const end = write(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), PLACE);
  expect(bytes.toString('latin1').replaceAll('#', '')).toHaveLength(end - PLACE);
  return bytes.toString('latin1', PLACE, end);
}

const POWERS = Array.from({ length: 16 }, (_, digits) => 10 ** digits);
const WHOLE = [
  0,
  ...POWERS.flatMap((power) => [power - 1, power, power + 1]),
  2 ** 31,
  2 ** 32,
  Number.MAX_SAFE_INTEGER,
];

describe('a number as digits', () => {
  it('is written like in JSON, and its length is known before', () => {
    for (const value of WHOLE) {
      expect(written((out, start) => writeDecimal(value, out, start))).toBe(JSON.stringify(value));
      expect(decimalSize(value)).toBe(JSON.stringify(value).length);
    }
  });

  it('of hundredths is written as the shortest decimal', () => {
    for (let value = 0; value <= 1_100; value += 1)
      expect(written((out, start) => writeHundredths(value, out, start))).toBe(JSON.stringify(value / 100));
  });
});
