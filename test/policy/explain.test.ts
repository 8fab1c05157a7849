import { describe, expect, it } from 'vitest';
import { runCases } from '../../src/policy/cases.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { explain } from '../../src/policy/explain.ts';
import { evidence, type Known, licenseePolicy, request, shipped } from './support.ts';

const ORDER = ['high_value_hosts', 'guard_rules', 'allow_entries', 'page_type_db', 'pattern_rules', 'default'];

const deciding = (url: string, known: Known = {}, method = 'GET', policy = shipped): string[] =>
  explain(policy, request(url, method), evidence(known))
    .steps.filter((step) => step.decides)
    .map((step) => step.step);

describe('explain', () => {
  it.each([
    ['https://webhook.site/login', {}, 'GET', 'high_value_hosts'],
    ['http://10.0.0.1/login', { found: false }, 'GET', 'guard_rules'],
    ['https://example.org/a', { pages: { login: 'https://example.org/a' } }, 'GET', 'page_type_db'],
    ['https://example.org/a', { pages: { help: 'https://example.org/a' } }, 'GET', 'page_type_db'],
    ['https://example.org/login', {}, 'GET', 'pattern_rules'],
    ['https://example.org/', {}, 'GET', 'default'],
    ['https://example.org/', {}, 'OPTIONS', 'guard_rules'],
    ['https://bit.ly/x', {}, 'GET', 'high_value_hosts'],
    ['https://bit.ly/login', {}, 'GET', 'pattern_rules'],
  ])('%s with %j and %s is decided by %s', (url, known, method, expected) => {
    expect(deciding(url, known, method)).toEqual([expected]);
  });

  it('lets an allow entry decide', () => {
    const policy = licenseePolicy({ allow: [{ id: 'api', host: 'example.org', path: '/', methods: ['POST'] }] });
    expect(deciding('https://example.org/login', {}, 'POST', policy)).toEqual(['allow_entries']);
  });

  it('names every layer in order, also those that were not asked', () => {
    const { steps, verdict } = explain(shipped, request('https://webhook.site/login'), evidence());
    expect(steps.map((step) => step.step)).toEqual(ORDER);
    expect(steps.map((step) => step.reached)).toEqual([true, false, false, false, false, false]);
    expect(steps[4]?.matches.map(({ id }) => id)).toContain('login');
    expect(verdict.id).toBe('webhook.site');
  });

  it('names every rule that matches, on a page that is verified as good only what stands behind its path', () => {
    const patterns = (url: string, known: Known): string[] =>
      explain(shipped, request(url), evidence(known)).steps[4]!.matches.map(({ id }) => id);
    const url = 'https://example.org/account?next=https://evil.org/';
    expect(patterns(url, {})).toEqual(['account', 'open_redirect']);
    expect(patterns(url, { pages: { help: 'https://example.org/account' } })).toEqual(['open_redirect']);
  });

  it('says what evaluate says', () => {
    const urls = [
      'https://example.org/',
      'https://example.org/cart?x=http://10.0.0.1',
      'https://pastebin.com/setup.exe',
      'http://127.1/',
    ];
    for (const url of urls) {
      for (const method of ['GET', 'POST', 'OPTIONS', 'TRACE']) {
        const known = evidence({ pages: { download: 'https://pastebin.com/' } });
        expect(explain(shipped, request(url, method), known).verdict).toBe(
          evaluate(shipped, request(url, method), known),
        );
      }
    }
  });
});

describe('policy test', () => {
  it('tells which cases fail', () => {
    const results = runCases(shipped, [
      { url: 'https://example.org/login', expect: { verdict: 'deny', layer: 'rules', id: 'login' } },
      { url: 'https://example.org/', found: true, expect: { verdict: 'allow' } },
      { url: 'https://example.org/', expect: { verdict: 'allow' } },
      { url: 'user@example.org', expect: { verdict: 'refused' } },
      {
        url: 'https://x.org/a',
        page_types: { cart: 'https://x.org/a' },
        method: 'get',
        expect: { verdict: 'deny', id: 'cart' },
      },
      { url: 'https://x.org/', filtering_categories: ['Malware'], expect: { verdict: 'deny', id: 'login' } },
    ]);
    expect(results.map((result) => result.passed)).toEqual([true, true, false, true, true, false]);
  });

  it.each(['https://X.org/a', 'https://x.org/b/../a', 'https://x.org\\a', 'https://x.org/%61', 'https://x.org:443/a?'])(
    'takes the page %s as a build would store it',
    (cart) => {
      const item = { url: 'https://x.org/a', page_types: { cart }, expect: { verdict: 'deny', id: 'cart' } } as const;
      expect(runCases(shipped, [item])[0]).toMatchObject({ passed: true });
    },
  );
});
