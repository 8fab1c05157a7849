/** The shortcuts for the Public Suffix List never contradict the list. */
import { createRequire } from 'node:module';
import { getPublicSuffix } from 'tldts';
import { describe, expect, it } from 'vitest';
import { registrableDomain } from '../../src/domain/public-suffix.ts';
import { mayBeSuffix, SuffixBranches } from '../../src/domain/suffix-filter.ts';

interface SuffixTree {
  readonly edgeStart: Uint16Array;
  readonly edgeLength: Uint8Array;
  readonly edgeChild: Uint16Array;
  readonly labelText: string;
  readonly rulesRoot: number;
  readonly exceptionsRoot: number;
}

/** Returns every name of the list's tree, with `*` for any label. */
function namesOfTree(): string[] {
  const tree = createRequire(import.meta.url)('tldts/dist/cjs/src/data/trie.js') as SuffixTree;
  const labels: string[] = [];
  let offset = 0;
  for (const length of tree.edgeLength) {
    labels.push(tree.labelText.slice(offset, offset + length));
    offset += length;
  }
  const names: string[] = [];
  const visit = (node: number, below: string): void => {
    for (let edge = tree.edgeStart[node]!; edge < tree.edgeStart[node + 1]!; edge++) {
      const name = below === '' ? labels[edge]! : `${labels[edge]}.${below}`;
      names.push(name);
      visit(tree.edgeChild[edge]!, name);
    }
  };
  visit(tree.rulesRoot, '');
  visit(tree.exceptionsRoot, '');
  return names;
}

const suffixes = new SuffixBranches();

/** Returns the shortcut's result for a name within some bytes. */
function endsAbove(name: string): boolean {
  const bytes = Buffer.from(`"https://${name}/path"`, 'latin1');
  const two = name.split('.').slice(-2).join('.');
  const start = bytes.indexOf(`${two}/`);
  return suffixes.endAbove(
    bytes,
    new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
    start,
    start + two.length,
  );
}

const lastTwo = (name: string): string => name.split('.').slice(-2).join('.');

describe('the shortcut for the list', () => {
  // Canonical hosts are ASCII. The tree contains each name in both spellings.
  const names = namesOfTree()
    .map((name) => name.replaceAll('*', 'any'))
    .filter((name) => /^[!-~]+$/.test(name));

  it('is tested with the whole list', () => {
    expect(names.length).toBeGreaterThan(8_000);
    expect(names).toContain('co.uk');
    expect(names).toContain('www.ck');
  });

  it('never reports the last two labels as registrable if the list says otherwise', () => {
    const wrong: string[] = [];
    for (const name of names) {
      for (const host of [name, `a.${name}`, `www.a.${name}`]) {
        if (host.includes('.') && endsAbove(host) && registrableDomain(host) !== lastTwo(host)) wrong.push(host);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('reports them for names without a rule of their own', () => {
    for (const name of ['example.com', 'www.example.com', 'a.b.example.de', 'example.unlisted', 'ab.io']) {
      expect(endsAbove(name), name).toBe(true);
    }
    for (const name of ['co.uk', 'a.co.uk', 'github.io', 'a.github.io', 'amazonaws.com', 'any.ck', 'www.ck']) {
      expect(endsAbove(name), name).toBe(false);
    }
  });

  it('never excludes a public suffix', () => {
    const missed: string[] = [];
    for (const name of names) {
      for (const host of [name, `a.${name}`, `b.a.${name}`]) {
        for (const allowPrivateDomains of [true, false]) {
          const options = { extractHostname: false, mixedInputs: false, validateHostname: false, allowPrivateDomains };
          if (getPublicSuffix(host, options) === host && !mayBeSuffix(host)) missed.push(host);
        }
      }
    }
    expect(missed).toEqual([]);
  });

  it('excludes most other names', () => {
    const others = Array.from({ length: 1_000 }, (_, at) => `site-${at}.example.${at % 2 === 0 ? 'com' : 'de'}`);
    expect(others.filter(mayBeSuffix).length).toBeLessThan(300);
    expect(mayBeSuffix('unlisted')).toBe(true);
  });
});
