/** Finds the known name that a mistyped one probably means. */
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
])('%s suggests %s', (name, meant) => {
  expect(didYouMean(name, KNOWN)).toBe(` (did you mean "${meant}"?)`);
});

it.each(['', 'x', 'hosts', '__proto__', 'x'.repeat(10_000)])('%s suggests nothing', (name) => {
  expect(didYouMean(name, KNOWN)).toBe('');
});
