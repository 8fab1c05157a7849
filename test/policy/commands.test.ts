/** The commands as a person types them: what they print, and with which code they end. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { pagegate } from '../support/program.ts';
import { withFile } from './support.ts';

const cases = fileURLToPath(new URL('../../data/policy/cases.json', import.meta.url));

const run = (...words: string[]): { code: number | null; out: string; error: string } => {
  const { status, stdout, stderr } = pagegate(words);
  return { code: status, out: stdout, error: stderr };
};

describe('pagegate policy', () => {
  it('finds nothing wrong with what ships, and every shipped case as expected', () => {
    expect(run('policy', 'check')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^valid: 6\d hosts, 2\d guard rules/),
    });
    const { code, out } = run('policy', 'test', cases);
    expect([code, out.trim()]).toEqual([0, expect.stringMatching(/^(\d+) of \1 cases as expected$/)]);
  });

  it('ends with its own code for a file that is not valid, one that has no effect, and cases that fail', () => {
    const shadowed = {
      format: 'pagegate-policy/1',
      allow: [{ id: 'a', host: 'webhook.site', path: '/', methods: ['POST'] }],
    };
    const failing = [{ url: 'https://example.org/login', found: true, expect: { verdict: 'allow' } }];
    expect(withFile('{}', (file) => run('policy', 'check', file))).toMatchObject({
      code: 3,
      error: expect.stringContaining('policy_invalid'),
    });
    expect(withFile(JSON.stringify(shadowed), (file) => run('policy', 'check', file, '--json'))).toMatchObject({
      code: 4,
      out: expect.stringContaining('"by": "webhook.site"'),
    });
    expect(withFile(JSON.stringify(failing), (file) => run('policy', 'test', file))).toMatchObject({
      code: 4,
      out: expect.stringContaining('expected allow, got deny rules/login'),
    });
  });

  it('shows what differs, and whose verdict changes', () => {
    const own = { format: 'pagegate-policy/1', disable: ['login'] };
    const { code, out } = withFile(JSON.stringify(own), (file) =>
      run('policy', 'diff', 'shipped', file, '--cases', cases),
    );
    expect(code).toBe(0);
    expect(out).toContain('removed  rules login');
    expect(out).toContain('https://github.com/login: deny rules/login -> allow default/classified_read');
  });
});

describe('pagegate explain', () => {
  it('prints the layers for people and for programs', () => {
    const { code, out } = run('explain', 'https://github.com/login', '--profile', 'strict');
    expect(code).toBe(0);
    expect(out).toMatch(/=> 5 pattern_rules/);
    expect(out).toMatch(/deny {2}rules\/login/);
    const report = JSON.parse(run('explain', 'HTTP://0x7f.1/', '--method', 'post', '--json').out);
    expect(report).toMatchObject({
      domain: '127.0.0.1',
      method: 'POST',
      verdict: 'deny',
      matched: { id: 'obfuscated_address' },
    });
    expect(report.steps).toHaveLength(6);
  });

  it('refuses what the endpoint would refuse', () => {
    expect(run('explain', 'user@example.org').code).toBe(3);
    expect(run('explain', 'example.org', '--method', 'G E T').code).toBe(3);
  });
});
