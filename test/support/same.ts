/** Expectations that are asked for very many times. */
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

/** `expect(value).toEqual(expected)`, which alone takes longer than most of what it looks at: it is asked where the two are not plainly the same. */
export function expectSame(value: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(value, expected)) expect(value).toEqual(expected);
}
