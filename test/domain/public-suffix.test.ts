import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isPublicSuffix, parentDomains, registrableDomain } from '../../src/domain/public-suffix.ts';

const lines = readFileSync(new URL('../data/psl/tests.txt', import.meta.url), 'utf8').split('\n');
const cases = lines
  .filter((line) => line !== '' && !line.startsWith('//'))
  .map((line) => line.split(' '))
  .filter(([input]) => input !== 'null') as [string, string][];

/** The list's tests use names as people write them; we use canonical ones. */
const canonical = (host: string): string => (host.startsWith('.') ? host : new URL(`https://${host}/`).hostname);

describe('the public suffix list', () => {
  it('has its tests', () => {
    expect(cases.length).toBeGreaterThan(70);
  });

  it.each(cases)('the registrable domain of %s is %s', (host, expected) => {
    expect(registrableDomain(canonical(host)) ?? 'null').toBe(expected === 'null' ? 'null' : canonical(expected));
  });

  it('no name of two labels has a registrable domain above it', () => {
    const names = lines.flatMap((line) => line.split(/[\s/]+/)).filter((name) => /^[^.]+\.[^.]+$/.test(name));
    expect(names.length).toBeGreaterThan(20);
    for (const name of names) expect([name, undefined]).toContain(registrableDomain(name));
  });

  it.each([
    ['github.io', false, true],
    ['co.uk', true, true],
    ['com', true, true],
    ['example.com', false, false],
    ['foo.ck', true, true],
    ['www.ck', false, false],
  ])('%s is a suffix: ICANN %s, any %s', (host, icann, any) => {
    expect(isPublicSuffix(host, { private: false })).toBe(icann);
    expect(isPublicSuffix(host, { private: true })).toBe(any);
  });

  it.each([
    ['example.com', []],
    ['a.b.example.com', ['b.example.com', 'example.com']],
    ['a.www.example.com', ['example.com']],
    ['x.y.github.io', ['y.github.io']],
    ['y.github.io', []],
    ['github.io', []],
    ['a.b.co.uk', ['b.co.uk']],
    ['co.uk', []],
  ])('the parents of %s are %j', (key, expected) => {
    expect(parentDomains(key)).toEqual(expected);
  });
});
