/** Expectations for loops with very many iterations. */
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

/** Like `expect(value).toEqual(expected)`, but calls it only if the values differ: `toEqual` takes longer than most of the tested code. */
export function expectSame(value: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(value, expected)) expect(value).toEqual(expected);
}
