import { afterEach, describe, expect, it, vi } from 'vitest';
import { parseAddress } from '../../src/network/address.ts';
import { createLog } from '../../src/server/log.ts';
import { networkOf, RefusalLog } from '../../src/server/request/refusal-log.ts';
import { startTestServer } from '../support/server.ts';

const CLIENT = parseAddress('10.1.2.3')!;

describe('the log of refusals', () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLog('info', { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
  const takeLogged = (): unknown[] =>
    lines.splice(0).map(({ code, account, network, count }) => [code, account, network, count]);
  afterEach(() => {
    vi.useRealTimers();
    lines.length = 0;
  });

  it('writes the first refusal of a kind at once, and the others of the same minute in one line', () => {
    vi.useFakeTimers();
    const refusals = new RefusalLog({ log, networks: false });
    for (let i = 0; i < 1_000; i++) refusals.note('quota_exhausted', 'acme', CLIENT);
    refusals.note('quota_exhausted', 'other', CLIENT);
    refusals.note('unknown_key', undefined, CLIENT);
    expect(takeLogged()).toEqual([
      ['quota_exhausted', 'acme', undefined, 1],
      ['quota_exhausted', 'other', undefined, 1],
      ['unknown_key', undefined, undefined, 1],
    ]);
    vi.advanceTimersByTime(60_000);
    expect(takeLogged()).toEqual([['quota_exhausted', 'acme', undefined, 999]]);
    refusals.note('quota_exhausted', 'acme', CLIENT);
    expect(takeLogged()).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(takeLogged()).toEqual([['quota_exhausted', 'acme', undefined, 1]]);
    vi.advanceTimersByTime(60_000);
    refusals.note('quota_exhausted', 'acme', CLIENT);
    expect(takeLogged()).toEqual([['quota_exhausted', 'acme', undefined, 1]]);
    refusals.close();
  });

  it('distinguishes at most 256 kinds per minute; it counts the others by code', () => {
    vi.useFakeTimers();
    const quiet: [string, number][] = [];
    const refusals = new RefusalLog({
      log: (_event, fields) => {
        const { account, count } = fields as { account?: string; count: number };
        quiet.push([account ?? '-', count]);
      },
      networks: false,
    });
    for (let i = 0; i < 100_000; i++) refusals.note('quota_exhausted', `account-${i}`, CLIENT);
    expect(quiet).toHaveLength(257);
    expect(quiet.at(-1)).toEqual(['-', 1]);
    vi.advanceTimersByTime(60_000);
    expect(quiet.at(-1)).toEqual(['-', 100_000 - 257]);
    refusals.close();
  });

  it("contains the client's network only if the option is set", () => {
    expect(networkOf(CLIENT)).toBe('10.1.2.0/24');
    expect(networkOf(parseAddress('2001:db8:7:8::9')!)).toBe('2001:db8:7::/48');
    const refusals = new RefusalLog({ log, networks: true });
    refusals.note('rate_limited', undefined, CLIENT);
    refusals.note('rate_limited', undefined, parseAddress('10.9.9.9')!);
    expect(takeLogged()).toEqual([
      ['rate_limited', undefined, '10.1.2.0/24', 1],
      ['rate_limited', undefined, '10.9.9.0/24', 1],
    ]);
    refusals.close();
  });
});

it("401, 403 by cause and 429 are counted by code and logged with the account's name", async () => {
  const server = await startTestServer({
    entries: [{ domain: 'example.com' }],
    accounts: { poor: { plan: 'custom', limit: 1 }, waiting: {} },
    config: { burst: { exempt: [], limit: 5 } },
  });
  try {
    const as = (name: string) => server.check('?domain=example.com', { 'x-api-key': server.keys[name] ?? name });
    const statuses = [];
    for (const name of ['poor', 'poor', 'waiting', 'pg_wrong']) statuses.push((await as(name)).status);
    statuses.push((await server.check('?domain=example.com', {})).status, (await as('poor')).status);
    expect(statuses).toEqual([200, 403, 403, 401, 401, 429]);
    const text = await (await fetch(`${server.adminUrl}/metrics`)).text();
    const counts = [...text.matchAll(/^pagegate_requests_total\{status="(4\d\d)",code="(\w+)"\} (\d+)$/gm)];
    expect(counts.map(([, status, code, count]) => `${status} ${code} ${count}`).sort()).toEqual([
      '401 missing_key 1',
      '401 unknown_key 1',
      '403 not_activated 1',
      '403 quota_exhausted 1',
      '429 rate_limited 1',
    ]);
    const refused = server.log.map((line) => JSON.parse(line)).filter(({ event }) => event === 'requests_refused');
    expect(refused.map(({ code, account }) => [code, account])).toEqual([
      ['quota_exhausted', 'poor'],
      ['not_activated', 'waiting'],
      ['unknown_key', undefined],
      ['missing_key', undefined],
      ['rate_limited', undefined],
    ]);
    expect(JSON.stringify(refused)).not.toMatch(/127\.0\.0|pg_|example\.com/);
  } finally {
    await server.stop();
  }
});
