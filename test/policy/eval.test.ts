/** Real pages: the rules alone on labelled URLs, and the rules with the database on verified ones, however they are spelled. */
import { describe, expect, it } from 'vitest';
import { parseTarget } from '../../src/domain/target.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { readRows, SETS, type SetName } from '../../tools/eval/rows.ts';
import { COUNT_MIN, judge as judgeRows, LEAST_DENIED, unmetGoals } from '../../tools/eval/score.ts';
import { evidence, judge, shipped } from './support.ts';

const labelled = readRows('labelled');

describe('labelled real pages', () => {
  it('are enough to tell', () => {
    expect(labelled.rows.length).toBeGreaterThan(10_000);
    for (const type of Object.keys(LEAST_DENIED.labelled ?? {}))
      expect(labelled.rows.filter((row) => row.category === type).length).toBeGreaterThanOrEqual(COUNT_MIN);
  });

  it('keep a site in one half', () => {
    const halves = new Map<string, string>();
    for (const { target, half } of labelled.rows) {
      expect(halves.get(target.key) ?? half).toBe(half);
      halves.set(target.key, half);
    }
    expect(new Set(halves.values())).toEqual(new Set(['develop', 'report']));
  });
});

describe('our own pages', () => {
  it('are at least 1,500, each with a category and a language, about half of them put away', () => {
    const { rows, unparsable, duplicates } = readRows('own');
    expect(rows.length).toBeGreaterThanOrEqual(1500);
    expect({ unparsable, duplicates }).toEqual({ unparsable: 0, duplicates: 0 });
    expect(rows.filter(({ category, language }) => category === '' || !/^[a-z]{2}$/.test(language))).toEqual([]);
    const share = rows.filter(({ half }) => half === 'report').length / rows.length;
    expect(share).toBeGreaterThan(0.4);
    expect(share).toBeLessThan(0.6);
    expect(new Set(rows.map(({ language }) => language)).size).toBeGreaterThanOrEqual(12);
  });

  it('hold at least 200 that agents read who write code, and what the same hosts must not be asked for', () => {
    const { rows } = readRows('code');
    expect(rows.filter(({ expect: wanted }) => wanted === 'allow').length).toBeGreaterThanOrEqual(200);
    expect(rows.filter(({ expect: wanted }) => wanted === 'deny').length).toBeGreaterThanOrEqual(50);
  });
});

describe.each(Object.keys(SETS) as SetName[])('the set %s', (set) => {
  it('is judged as its goals ask for', () => {
    expect(unmetGoals(set, judgeRows(shipped, readRows(set).rows))).toEqual([]);
  });
});

/** Which page type the vocabulary has for a label. */
const TYPES: Readonly<Record<string, string>> = {
  login: 'login',
  oauth_authorize: 'login',
  change_password: 'password_reset',
  account_delete: 'account',
};

/** Spellings of a page that must make no difference to a deny. */
const SPELLINGS: Readonly<Record<string, (url: URL) => string>> = {
  'as it is': (url) => url.href,
  'with a query': (url) =>
    `${url.origin}${url.pathname}${url.search === '' ? '?' : `${url.search}&`}utm_source=x&next=%2F`,
  'with a fragment': (url) => `${url.origin}${url.pathname}${url.search}#part`,
  'in an upper-case host': (url) => `${url.protocol}//${url.host.toUpperCase()}${url.pathname}${url.search}`,
  'with a trailing slash': (url) => `${url.origin}${url.pathname.replace(/\/*$/, '/')}${url.search}`,
  'as http': (url) => url.href.replace(/^https:/, 'http:'),
  'with the default port': (url) =>
    `${url.protocol}//${url.hostname}:${url.protocol === 'https:' ? 443 : 80}${url.pathname}${url.search}`,
  'with an encoded path': (url) =>
    `${url.origin}${url.pathname.replace(/%..|[a-z]/gi, (c) => (c.length === 3 ? c : `%${c.charCodeAt(0).toString(16)}`))}${url.search}`,
  'with a UTF-16 escape': (url) =>
    `${url.origin}${url.pathname.replace(/(?<!%|%.)[a-z]/i, (c) => `%u00${c.charCodeAt(0).toString(16)}`)}${url.search}`,
  'with a letter of too many bytes': (url) =>
    `${url.origin}${url.pathname.replace(/(?<!%|%.)[a-z]/i, (c) => `%c1%${(c.charCodeAt(0) + 0x40).toString(16)}`)}${url.search}`,
  // A path that holds an encoded question mark of its own is told by it.
  'with an encoded query': (url) =>
    `${url.origin}${url.pathname}${url.pathname.includes('%3F') ? '' : '%3Flang=en'}${url.search}`,
  'with www.': (url) => (url.hostname.startsWith('www.') ? url.href : url.href.replace('://', '://www.')),
  'with a dot segment': (url) => `${url.origin}/x/..${url.pathname}${url.search}`,
};

describe('verified pages of types to deny', () => {
  const pages = labelled.rows.filter((row) => {
    const { url } = row.target;
    // What a build would take: http or https on the default port, no fragment that tells the page.
    return (
      TYPES[row.category] !== undefined &&
      /^https?$/.test(url.scheme) &&
      [80, 443].includes(url.port) &&
      url.fragment === ''
    );
  });

  it('are enough to tell', () => {
    expect(pages.length).toBeGreaterThan(1000);
  });

  it.each(Object.entries(SPELLINGS))('are denied %s', (_name, spell) => {
    const missed = pages.filter(({ category, target }) => {
      const spelled = parseTarget(spell(new URL(target.url.href)));
      if ('problem' in spelled) return true;
      const known = evidence({ pages: { [TYPES[category]!]: target.url.href } });
      return evaluate(shipped, { url: spelled.url, method: 'GET' }, known).verdict !== 'deny';
    });
    expect(missed.map((row) => row.url)).toEqual([]);
  });

  it('are denied on another host of the domain', () => {
    const pages = { login: 'https://id.example.org/a-page' };
    expect(judge('https://id.example.org/a-page?x', { found: false, parentFound: true, pages })).toBe(
      'deny page_type_db/login',
    );
  });
});
