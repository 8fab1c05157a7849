/** A decision as a line in the format of the server's decision log. */
import { describe, expect, test } from 'vitest';
import { decisionLine } from '../../src/guard/decision-line.ts';
import type { Decision } from '../../src/guard/refusal.ts';

const DECISION: Decision = {
  method: 'GET',
  url: 'https://shop.example.com/members/secret?token=abc',
  verdict: 'deny',
  layer: 'page_type_db',
  id: 'login',
  note: 'A login page.',
  domain: 'shop.example.com',
  found: true,
  data: '7.0123456789ab',
  source: 'lookup',
  approved: false,
  latencyMs: 1.23456,
};
const line = (changes: Partial<Decision> = {}, fullUrl = false) =>
  JSON.parse(decisionLine({ ...DECISION, ...changes }, fullUrl)) as Record<string, unknown>;

describe('a line', () => {
  test('has the fields of the server’s log in the same order, except for the account', () => {
    const { time, id, ...rest } = line();
    expect(Date.parse(String(time))).toBeGreaterThan(0);
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(JSON.stringify(rest)).toBe(
      '{"method":"GET","scheme":"https","host":"shop.example.com","path":"/***","domain":"shop.example.com","found":true,' +
        '"verdict":"deny","matched":{"layer":"page_type_db","id":"login","note":"A login page."},' +
        '"data":"7.0123456789ab","latency_ms":1.235,"source":"lookup"}',
    );
  });

  test('contains the whole URL only if the option is set', () => {
    expect(line({}, true)).toMatchObject({ url: DECISION.url, host: 'shop.example.com', path: '/members/secret' });
    expect(decisionLine(DECISION)).not.toMatch(/secret|token/);
  });

  test('masks a host that carries data, and an invalid method', () => {
    expect(line({ id: 'dns_tunnel', method: 'SECRET' })).toMatchObject({ host: '***', domain: '***', method: 'other' });
    expect(line({ url: 'no url at all' })).toMatchObject({ host: '***', path: '***' });
    expect(line({ url: 'example.com' })).toMatchObject({ host: 'example.com', path: '/' });
  });

  test('names the scheme of a URL that has data instead of a host, and not the data', () => {
    const url = 'data:,user@secret';
    expect(line({ url })).toMatchObject({ scheme: 'data', host: '', path: '/***' });
    expect(line({ url: 'a.example:8443/x' })).toMatchObject({ scheme: 'https', host: 'a.example' });
  });

  test('states that a person approved', () => {
    expect(line({ verdict: 'flag', approved: true })).toMatchObject({ approved: true });
    expect(line()).not.toHaveProperty('approved');
  });
});
