/** Which known name is meant by one that was mistyped. */
import { expect, it } from 'vitest';
import { didYouMean } from '../../src/json/did-you-mean.ts';

const KNOWN = ['override', 'allow', 'address_exceptions', 'group:payment', 'login'];

it.each([
  ['ovveride', 'override'],
  ['Override', 'override'],
  ['alow', 'allow'],
  ['lgoin', 'login'],
  ['adress_exception', 'address_exceptions'],
  ['group:paymnt', 'group:payment'],
])('%s is %s', (name, meant) => {
  expect(didYouMean(name, KNOWN)).toBe(` (did you mean "${meant}"?)`);
});

it.each(['', 'x', 'hosts', '__proto__', 'x'.repeat(10_000)])('of %s nothing is said', (name) => {
  expect(didYouMean(name, KNOWN)).toBe('');
});
