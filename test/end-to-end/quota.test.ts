/** Accounts, plans, quota and the burst limit: spec sections 3.1, 5, 7, 8.1, 8.3 and the contract's tables on them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { converse, nextClient, type RawResponse, requestText } from '../support/raw-http.ts';
import { type Deployment, deploy } from './deployment.ts';
import { ask, expectError, remainingIn } from './table.ts';

const DAY_MS = 86_400_000;
const QUOTA_FIELDS = [
  'error',
  'message',
  'plan',
  'activated',
  'quota_limit',
  'quota_used',
  'quota_remaining',
  'quota_resets_at',
];

describe('accounts and quota', () => {
  let deployment: Deployment;
  let port = 0;
  beforeAll(async () => {
    deployment = await deploy({ workers: 2 });
    port = deployment.port;
  });
  afterAll(() => deployment.stop());

  const look = (key: string, query = 'url=stripe.com'): Promise<RawResponse> => ask(port, { query, key });

  /** Checks the code and the quota fields of a 403. Returns the fields. */
  function expect403(response: RawResponse, error: string): Record<string, unknown> {
    const body = expectError(response, 403, error);
    expect(Object.keys(body)).toEqual(QUOTA_FIELDS);
    return body;
  }

  describe('spec 3.1, the states', () => {
    it('spec 3.1: not activated, a lookup with a valid key: 403 and still not activated (spec 5 rule 5, spec 7: 403, contract errors: 403 fields)', async () => {
      const key = await deployment.createAccount('waiting');
      for (let i = 0; i < 2; i += 1) {
        expect(expect403(await look(key), 'not_activated')).toMatchObject({
          plan: null,
          activated: false,
          quota_limit: null,
          quota_used: 0,
          quota_remaining: 0,
          quota_resets_at: null,
        });
      }
    });

    it('spec 3.1: not activated, payment completes: activated, and the key that it was given counts (spec 5 rule 3)', async () => {
      const key = await deployment.createAccount('paying');
      expect403(await look(key), 'not_activated');
      await deployment.subscribe('paying', 'pro');
      expect(remainingIn(await look(key))).toBe(89_999);
    });

    it('spec 3.1: activated, each lookup, found or not: quota_remaining decreases by 1 (spec 8.1 rule 1, contract accounts: what consumes)', async () => {
      const key = await deployment.createAccount('counting');
      await deployment.subscribe('counting', 'pro');
      const queries = ['url=stripe.com', 'url=nobody-knows-this.com', 'url=fixture-all.com', 'url=http://10.0.0.1/'];
      const numbers: number[] = [];
      for (const query of queries) numbers.push(remainingIn(await look(key, query)));
      expect(numbers).toEqual([89_999, 89_998, 89_997, 89_996]);
    });

    it('spec 3.1: activated, the last unit is used: quota exhausted, later requests get 403 (spec 5 rule 6, spec 8.1 rule 3)', async () => {
      const before = Date.now();
      const key = await deployment.createAccount('small');
      await deployment.subscribe('small', 'custom', 2);
      expect(remainingIn(await look(key))).toBe(1);
      const last = await look(key);
      expect(last.status).toBe(200);
      expect(remainingIn(last)).toBe(0);
      for (let i = 0; i < 3; i += 1) {
        const body = expect403(await look(key), 'quota_exhausted');
        expect(body).toMatchObject({
          plan: 'custom',
          activated: true,
          quota_limit: 2,
          quota_used: 2,
          quota_remaining: 0,
        });
        const resets = String(body['quota_resets_at']);
        expect(resets).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$/);
        expect(Date.parse(resets)).toBeGreaterThan(before - 1_000 + 30 * DAY_MS);
        expect(Date.parse(resets)).toBeLessThanOrEqual(Date.now() + 30 * DAY_MS);
      }
    });

    it('spec 3.1: quota exhausted, the next 30-day cycle starts: the quota is that of the plan again (spec 8.1 rule 2, contract accounts: cycle)', async () => {
      const key = await deployment.createAccount('monthly');
      // The subscription began 30 days ago, minus ten seconds.
      await deployment.subscribe('monthly', 'custom', 1, Date.now() - 30 * DAY_MS + 10_000);
      expect(remainingIn(await look(key))).toBe(0);
      const body = expect403(await look(key), 'quota_exhausted');
      const boundary = Date.parse(String(body['quota_resets_at']));
      await new Promise((resolve) => setTimeout(resolve, boundary - Date.now() + 50));
      const next = await look(key);
      expect([next.status, remainingIn(next)]).toEqual([200, 0]);
      const later = expect403(await look(key), 'quota_exhausted');
      expect(Date.parse(String(later['quota_resets_at']))).toBe(boundary + 30 * DAY_MS);
    });

    it('spec 3.1: quota exhausted, upgrade to a larger plan: at once, and used stays (spec 8.1 rule 4, contract accounts: upgrade)', async () => {
      const key = await deployment.createAccount('growing');
      await deployment.subscribe('growing', 'custom', 1);
      expect(remainingIn(await look(key))).toBe(0);
      const body = expect403(await look(key), 'quota_exhausted');
      await deployment.subscribe('growing', 'pro');
      const next = await look(key);
      expect([next.status, remainingIn(next)]).toEqual([200, 90_000 - 2]);
      await deployment.subscribe('growing', 'custom', 2);
      expect(remainingIn(await look(key)), 'a downgrade waits for the boundary').toBe(90_000 - 3);
      expect(body['quota_used']).toBe(1);
    });

    it('contract accounts: clock moved back: before the start of a subscription its first cycle continues', async () => {
      const key = await deployment.createAccount('early');
      const start = Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000;
      await deployment.subscribe('early', 'custom', 1, start);
      expect(remainingIn(await look(key))).toBe(0);
      const body = expect403(await look(key), 'quota_exhausted');
      expect(Date.parse(String(body['quota_resets_at']))).toBe(start + 30 * DAY_MS);
    });

    it('spec 8.1 rule 3, contract accounts: what consumes: never charged beyond the plan: many at once get exactly what is left', async () => {
      const key = await deployment.createAccount('crowd');
      await deployment.subscribe('crowd', 'custom', 7);
      const answers = await Promise.all(Array.from({ length: 40 }, () => look(key)));
      const served = answers.filter((response) => response.status === 200);
      expect(served.map(remainingIn).sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
      expect(answers.filter((response) => response.status === 403)).toHaveLength(33);
    });
  });

  describe('spec 8.2, the plans (contract accounts: Business quota)', () => {
    it.each([
      ['pro', 90_000],
      ['pro_plus', 225_000],
      ['advanced', 450_000],
      ['advanced_plus', 900_000],
      ['business', 2_000_000],
      ['enterprise', 10_000_000],
    ])('%s has %i lookups', async (plan, lookups) => {
      const name = `on-${plan}`.replaceAll('_', '-');
      const key = await deployment.createAccount(name);
      await deployment.subscribe(name, plan);
      expect(remainingIn(await look(key))).toBe(lookups - 1);
    });

    it('spec 8.1 rule 5, contract accounts: plan volumes above Enterprise: custom has its own limit, above Enterprise too', async () => {
      const key = await deployment.createAccount('huge');
      await deployment.subscribe('huge', 'custom', 50_000_000);
      expect(remainingIn(await look(key))).toBe(49_999_999);
    });
  });

  describe('spec 5 and contract accounts: keys', () => {
    it('contract accounts: not activated: a suspended account gets 403 with its quota, and continues where it was', async () => {
      const key = await deployment.createAccount('late');
      await deployment.subscribe('late', 'pro');
      expect(remainingIn(await look(key))).toBe(89_999);
      await deployment.suspend('late');
      expect(expect403(await look(key), 'not_activated')).toMatchObject({
        plan: 'pro',
        activated: false,
        quota_limit: 90_000,
        quota_used: 1,
        quota_remaining: 89_999,
      });
      await deployment.resume('late');
      expect(remainingIn(await look(key))).toBe(89_998);
    });

    it('a closed account’s key gets 401', async () => {
      const key = await deployment.createAccount('gone');
      await deployment.subscribe('gone', 'pro');
      expect((await look(key)).status).toBe(200);
      await deployment.close('gone');
      expectError(await look(key), 401, 'unknown_key');
    });

    it('rotation can overlap: both keys of one account share one quota; a revoked key gets 401', async () => {
      const first = await deployment.createAccount('careful');
      await deployment.subscribe('careful', 'pro');
      const second = await deployment.rotateKey('careful', 3_600);
      expect(second).not.toBe(first);
      expect(remainingIn(await look(first))).toBe(89_999);
      expect(remainingIn(await look(second))).toBe(89_998);
      await deployment.revokeFirstKey('careful');
      expectError(await look(first), 401, 'unknown_key');
      expect(remainingIn(await look(second))).toBe(89_997);
    });

    it('rotation without overlap: the old key gets 401 at once', async () => {
      const first = await deployment.createAccount('prompt');
      await deployment.subscribe('prompt', 'pro');
      expect((await look(first)).status).toBe(200);
      const second = await deployment.rotateKey('prompt', 0);
      expectError(await look(first), 401, 'unknown_key');
      expect((await look(second)).status).toBe(200);
    });

    it('contract accounts: key: its form', async () => {
      expect(await deployment.createAccount('shape')).toMatch(/^pg_[0-9A-Za-z]{38}$/);
    });
  });

  describe('contract request: the order of the checks', () => {
    let waiting = '';
    let spent = '';
    beforeAll(async () => {
      waiting = await deployment.createAccount('order-waiting');
      spent = await deployment.createAccount('order-spent');
      await deployment.subscribe('order-spent', 'custom', 1);
      expect((await look(spent)).status).toBe(200);
    });

    it.each([
      ['401 before 403 and 400', () => ask(port, { query: 'foo=1' }), 401, 'missing_key'],
      ['403 not activated before 400', () => look(waiting, 'foo=1'), 403, 'not_activated'],
      ['400 before 403 quota', () => look(spent, 'foo=1'), 400, 'unknown_parameter'],
      ['403 quota last', () => look(spent), 403, 'quota_exhausted'],
      [
        'key in both places before not activated',
        () => look(waiting, `api_key=${waiting}`),
        400,
        'conflicting_credentials',
      ],
    ] as [string, () => Promise<RawResponse>, number, string][])('%s', async (_name, request, status, error) => {
      expectError(await request(), status, error);
    });
  });

  describe('spec 8.3, contract burst limit: per client IP', () => {
    /** Sends requests over one connection, each after the response to the previous one. */
    const burst = (from: string, texts: readonly string[]): Promise<RawResponse[]> => converse(port, texts, from);

    it('spec 8.3: 240 requests in 60 seconds are served, the next gets 429 and consumes nothing (spec 8.3: 429, spec 7: 429, contract errors: Retry-After)', async () => {
      const from = nextClient();
      const key = await deployment.createAccount('busy');
      await deployment.subscribe('busy', 'pro');
      const text = requestText('/api/check?url=stripe.com', [['X-API-Key', key]]);
      const served = await burst(
        from,
        Array.from({ length: 240 }, () => text),
      );
      expect(served.map((response) => response.status)).toEqual(Array.from({ length: 240 }, () => 200));
      const refused = await burst(
        from,
        Array.from({ length: 20 }, () => text),
      );
      for (const response of refused) {
        expectError(response, 429, 'rate_limited');
        expect(Number(response.headers['retry-after'])).toBeGreaterThanOrEqual(1);
        expect(Number(response.headers['retry-after'])).toBeLessThanOrEqual(60);
      }
      expect(remainingIn(await look(key)), 'another address is served').toBe(90_000 - 241);
    });

    it('contract burst limit: whatever their status: every request counts, and it comes before the key', async () => {
      const from = nextClient();
      const texts = Array.from({ length: 240 }, (_, i) =>
        i % 3 === 0
          ? requestText('/nothing')
          : i % 3 === 1
            ? requestText('/api/check')
            : requestText('/api/check', [], 'POST'),
      );
      const statuses = new Set((await burst(from, texts)).map((response) => response.status));
      expect([...statuses].sort()).toEqual([401, 404, 405]);
      const [unkeyed, elsewhere] = await burst(from, [requestText('/api/check'), requestText('/nothing')]);
      expectError(unkeyed!, 429, 'rate_limited');
      expectError(elsewhere!, 429, 'rate_limited');
    });

    it('contract burst limit: X-Forwarded-For: is ignored from an address that is not a configured proxy', async () => {
      const from = nextClient();
      const texts = Array.from({ length: 241 }, (_, i) =>
        requestText('/api/check', [['X-Forwarded-For', `203.0.113.${i % 250}`]]),
      );
      const statuses = (await burst(from, texts)).map((response) => response.status);
      expect(statuses.filter((status) => status === 429)).toHaveLength(1);
      expect(statuses[240]).toBe(429);
    });
  });
});
