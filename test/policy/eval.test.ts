/** Real pages: the rules alone on labelled URLs, and the rules with the database on verified ones, however they are spelled. */
import { describe, expect, it } from 'vitest';
import { parseTarget } from '../../src/domain/target.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { readLabelled } from '../../tools/eval/labelled.ts';
import { COUNT_MIN, GOAL_TYPES, PURPOSE_TYPES, READING_TYPES, score, unmetGoals } from '../../tools/eval/score.ts';
import { evidence, judge, shipped } from './support.ts';

const data = new URL('../data/labelled-urls.tsv.gz', import.meta.url).pathname;
const labelled = readLabelled(data, new Set([...PURPOSE_TYPES, ...READING_TYPES]));

describe('labelled real pages', () => {
  it('are enough to tell', () => {
    expect(labelled.rows.length).toBeGreaterThan(10_000);
    for (const type of GOAL_TYPES)
      expect(labelled.rows.filter((row) => row.type === type).length).toBeGreaterThanOrEqual(COUNT_MIN);
  });

  it('keep a site in one half', () => {
    const halves = new Map<string, string>();
    for (const { target, half } of labelled.rows) {
      expect(halves.get(target.key) ?? half).toBe(half);
      halves.set(target.key, half);
    }
    expect(new Set(halves.values())).toEqual(new Set(['develop', 'report']));
  });

  it('are judged as the goals ask for', () => {
    expect(unmetGoals(score(shipped, labelled.rows))).toEqual([]);
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
      TYPES[row.type] !== undefined &&
      /^https?$/.test(url.scheme) &&
      [80, 443].includes(url.port) &&
      url.fragment === ''
    );
  });

  it('are enough to tell', () => {
    expect(pages.length).toBeGreaterThan(1000);
  });

  it.each(Object.entries(SPELLINGS))('are denied %s', (_name, spell) => {
    const missed = pages.filter(({ type, target }) => {
      const spelled = parseTarget(spell(new URL(target.url.href)));
      if ('problem' in spelled) return true;
      const known = evidence({ pages: { [TYPES[type]!]: target.url.href } });
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
