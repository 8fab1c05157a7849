/** The commands as a person types them: their output and their exit codes. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { pagegateHere } from '../support/program.ts';
import { withFile } from './support.ts';

const cases = fileURLToPath(new URL('../../data/policy/cases.json', import.meta.url));

const run = async (...words: string[]): Promise<{ code: number; out: string; error: string }> => {
  const { status, stdout, stderr } = await pagegateHere(words);
  return { code: status, out: stdout, error: stderr };
};

describe('pagegate policy', () => {
  it('finds nothing wrong with what ships, and every shipped case as expected', async () => {
    expect(await run('policy', 'check')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^valid: 2,\d{3} hosts, 2\d guard rules, 2\d pattern rules, 0 allow entries, /),
    });
    const { code, out } = await run('policy', 'test', cases);
    expect([code, out.trim()]).toEqual([0, expect.stringMatching(/^(\d+) of \1 cases as expected$/)]);
  });

  it('ends with its own code for a file that is not valid, one that has no effect, and cases that fail', async () => {
    const shadowed = {
      format: 'pagegate-policy/1',
      allow: [{ id: 'a', host: 'webhook.site', path: '/', methods: ['POST'] }],
    };
    const failing = [{ url: 'https://example.org/login', found: true, expect: { verdict: 'allow' } }];
    expect(await withFile('{}', (file) => run('policy', 'check', file))).toMatchObject({
      code: 3,
      error: expect.stringContaining('policy_invalid'),
    });
    expect(await withFile(JSON.stringify(shadowed), (file) => run('policy', 'check', file, '--json'))).toMatchObject({
      code: 4,
      out: expect.stringContaining('"by": "webhook.site"'),
    });
    expect(await withFile(JSON.stringify(failing), (file) => run('policy', 'test', file))).toMatchObject({
      code: 4,
      out: expect.stringContaining('expected allow, got deny rules/login'),
    });
  });

  it.each([
    [
      { page_types: { logn: 'https://example.org/x' } },
      'names the page type "logn", which does not exist (did you mean "login"?)',
    ],
    [{ page_types: { login: '/x' } }, 'has the page "/x", which is not a URL with its scheme'],
    [
      { filtering_categories: ['Gamblin'] },
      'names the category "Gamblin", which the taxonomy does not have (did you mean "Gambling"?)',
    ],
  ])('does not take cases with evidence that no index gives: %j', async (evidence, expected) => {
    const text = JSON.stringify([{ url: 'https://example.org/x', ...evidence, expect: { verdict: 'allow' } }]);
    for (const words of [['test'], ['diff', 'shipped', 'shipped', '--cases']])
      expect(await withFile(text, (file) => run('policy', ...words, file))).toMatchObject({
        code: 3,
        error: expect.stringContaining(`The case [0] (https://example.org/x) ${expected}.`),
      });
  });

  it('refuses a method in a case as the endpoint does', async () => {
    const items = ['G ET', ''].map((method) => ({
      url: 'https://example.org/',
      method,
      expect: { verdict: 'refused' },
    }));
    expect(await withFile(JSON.stringify(items), (file) => run('policy', 'test', file))).toMatchObject({ code: 0 });
  });

  it('says whether two policies are the same but for their order', async () => {
    const allow = ['a', 'b'].map((id) => ({ id, host: `${id}.org`, path: '/', methods: ['GET'] }));
    const text = (entries: object[]): string => JSON.stringify({ format: 'pagegate-policy/1', allow: entries });
    const same = (other: object[]): Promise<{ out: string }> =>
      withFile(text(allow), (one) => withFile(text(other), (two) => run('policy', 'diff', one, two)));
    expect((await same(allow)).out).toBe('no difference\n');
    expect((await same(allow.toReversed())).out).toBe('only the order of entries differs\n');
  });

  it('shows what differs, and whose verdict changes', async () => {
    const own = { format: 'pagegate-policy/1', disable: ['login'] };
    const { code, out } = await withFile(JSON.stringify(own), (file) =>
      run('policy', 'diff', 'shipped', file, '--cases', cases),
    );
    expect(code).toBe(0);
    expect(out).toContain('removed  rules login');
    expect(out).toContain('https://github.com/login: deny rules/login -> allow default/classified_read');
  });
});

describe('pagegate explain', () => {
  it('prints the layers for people and for programs', async () => {
    const { code, out } = await run('explain', 'https://github.com/login', '--profile', 'strict');
    expect(code).toBe(0);
    expect(out).toMatch(/=> 5 pattern_rules/);
    expect(out).toMatch(/deny {2}rules\/login/);
    const report = JSON.parse((await run('explain', 'HTTP://0x7f.1/', '--method', 'post', '--json')).out);
    expect(report).toMatchObject({
      domain: '127.0.0.1',
      method: 'POST',
      verdict: 'deny',
      matched: { id: 'obfuscated_address' },
    });
    expect(report.steps).toHaveLength(6);
  });

  it('judges by what is stated, without an index', async () => {
    const stated = async (...words: string[]): Promise<unknown> =>
      JSON.parse((await run('explain', ...words, '--json')).out);
    expect(await stated('https://example.org/', '--found')).toMatchObject({
      verdict: 'allow',
      record: { index: null, stated: true, found: true, page_urls: [] },
    });
    const page = ['--page-type', 'login=HTTPS://Example.org/Enter', '--page-type', 'help=https://example.org/'];
    expect(await stated('https://example.org/enter/2', ...page)).toMatchObject({
      verdict: 'deny',
      matched: { layer: 'page_type_db', id: 'login' },
      record: { found: true, page_urls: [{ type: 'login', url: 'https://example.org/Enter' }, { type: 'help' }] },
    });
    expect((await run('explain', 'https://example.org/', ...page)).out).toContain('as stated: found, 2 verified pages');
    expect((await run('explain', 'https://example.org/', ...page.slice(2))).out).toContain(
      'as stated: found, 1 verified page\n',
    );
  });

  it.each([
    [['--page-type', 'entry=https://example.org/'], 'the type one of: login,'],
    [['--page-type', 'login'], 'expected <type>=<URL>'],
    [['--page-type', 'login=/enter'], 'is not a URL with its scheme'],
    [['--found', '--index', '/tmp/none.pgx'], 'give either them or --index'],
  ])('does not take %j', async (words, expected) => {
    expect(await run('explain', 'https://example.org/', ...words)).toMatchObject({
      code: 2,
      error: expect.stringContaining(expected),
    });
  });

  it('refuses what the endpoint would refuse', async () => {
    expect((await run('explain', 'user@example.org')).code).toBe(3);
    const long = await run('explain', `https://example.org/${'x'.repeat(9_000)}`);
    expect(long.code).toBe(3);
    expect(long.error).toMatch(/^pagegate: .*8,192 bytes.*\[input_too_long\]\n$/);
    expect(long.error.length).toBeLessThan(500);
    expect((await run('explain', 'example.org', '--method', 'G E T')).code).toBe(3);
  });
});
