/** No hostile URL gets an allow: not with the most open profile, and not on a classified domain. */
import { describe, expect, it } from 'vitest';
import { judge, licenseePolicy } from '../policy/support.ts';
import { hostileForms } from './hostile-urls.ts';

const open = licenseePolicy({}, 'open');
const { classes, addresses, unknown, all } = hostileForms(open.document);
const onlyUnknown = new Set(unknown);

describe('evasion', () => {
  it('is tested with at least five thousand URLs, none twice, and some of every class', () => {
    expect(all.length).toBeGreaterThan(5000);
    expect(new Set(all).size).toBe(all.length);
    for (const [name, forms] of Object.entries(classes)) expect([name, forms.length > 5]).toEqual([name, true]);
  });

  it('would be detected by these tests: a harmless URL is allowed', () => {
    expect(judge('https://example.org/', { found: false }, 'GET', open)).toMatch(/^allow/);
    expect(judge('https://example.org/?url=/local/path&q=10.0', { found: true }, 'GET', open)).toMatch(/^allow/);
  });

  it.each(['GET', 'HEAD', 'POST'])('never gets an allow with %s, classified or not', (method) => {
    const allowed = all.filter((value) =>
      (onlyUnknown.has(value) ? [false] : [true, false]).some((found) =>
        judge(value, { found }, method, open).startsWith('allow'),
      ),
    );
    expect(allowed).toEqual([]);
  });

  it('is denied or refused if it leads to an internal address', () => {
    const soft = addresses.filter((value) => !/^(deny|refused)/.test(judge(value, { found: true }, 'GET', open)));
    expect(soft).toEqual([]);
  });

  it('is not allowed by a verified page, or by an entry for another host', () => {
    const policy = licenseePolicy(
      { allow: [{ id: 'all', host: '*.org', path: '/', methods: ['GET', 'POST'] }] },
      'open',
    );
    const soft = addresses.filter(
      (value) => !/^(deny|refused)/.test(judge(value, { pages: { docs: value } }, 'GET', policy)),
    );
    expect(soft).toEqual([]);
  });
});
