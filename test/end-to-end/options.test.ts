/** Options that the contract leaves to the operator: parents for subdomains, proxies, exemptions from the burst limit, profiles. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { converse, requestText } from '../support/raw-http.ts';
import { type Deployment, deploy } from './deployment.ts';
import { ask, expectAnswer, expectError, found, remainingIn, unknown } from './table.ts';

const PROXY = '127.0.0.1';

describe('options', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy({
      config: {
        index: { subdomains: 'parent' },
        burst: { trusted_proxies: [PROXY, '10.0.0.0/8'], exempt: ['127.9.0.0/16'] },
        policy: { profile: 'strict' },
      },
    });
  });
  afterAll(() => deployment.stop());

  const look = (query: string) => ask(deployment.port, { query, key: deployment.keys.pro });

  describe('contract normalization: subdomain of a classified domain, option subdomains: parent', () => {
    it.each([
      ['a subdomain', 'url=https://docs.github.com/', found('github.com', 'deny default/unclassified_subdomain')],
      [
        'a subdomain of it',
        'url=https://a.b.github.com/about',
        found('github.com', 'deny default/unclassified_subdomain'),
      ],
      ['the domain itself', 'url=https://github.com/about', found('github.com', 'allow page_type_db/about')],
      [
        'below a private suffix',
        'url=https://someone.github.io/',
        unknown('someone.github.io', 'deny default/unclassified_read'),
      ],
      [
        'a parent that is not classified',
        'url=https://a.fixture-one.com/',
        unknown('a.fixture-one.com', 'deny default/unclassified_read'),
      ],
    ])('%s', async (_name, query, answer) => {
      expectAnswer(await look(query), answer);
    });
  });

  it('profile strict: a read of an unclassified host is denied', async () => {
    expectAnswer(
      await look('url=fixture-unknown.com'),
      unknown('fixture-unknown.com', 'deny default/unclassified_read'),
    );
  });

  describe('contract burst limit', () => {
    const from = (forwarded: readonly string[]): string =>
      requestText(
        '/api/check',
        forwarded.map((value) => ['X-Forwarded-For', value] as const),
      );
    const statuses = async (texts: readonly string[], client: string): Promise<Set<number>> =>
      new Set((await converse(deployment.port, texts, client)).map((response) => response.status));

    it('X-Forwarded-For from a configured proxy: each client has its own limit', async () => {
      const texts = Array.from({ length: 300 }, (_, i) => from([`203.0.113.${i % 200}`]));
      expect(await statuses(texts, PROXY)).toEqual(new Set([401]));
    });

    it('X-Forwarded-For: the rightmost address that is not a configured proxy counts, not what the client claims', async () => {
      const texts = Array.from({ length: 241 }, (_, i) => from([`198.51.100.${i % 250}, 192.0.2.7, 10.1.2.3`]));
      const responses = await converse(deployment.port, texts, PROXY);
      expect(new Set(responses.slice(0, 240).map((response) => response.status))).toEqual(new Set([401]));
      expectError(responses[240]!, 429, 'rate_limited');
    });

    it('X-Forwarded-For: two headers form one list', async () => {
      const texts = Array.from({ length: 241 }, (_, i) => from([`198.51.100.${i % 250}`, '192.0.2.8']));
      const responses = await converse(deployment.port, texts, PROXY);
      expect(responses.at(-1)?.status).toBe(429);
    });

    it('per client IP, IPv6 by /64', async () => {
      const texts = Array.from({ length: 241 }, (_, i) => from([`2001:db8:1:2:${i.toString(16)}::1`]));
      expect((await converse(deployment.port, texts, PROXY)).at(-1)?.status).toBe(429);
      expect(await statuses([from(['2001:db8:1:3::1'])], PROXY)).toEqual(new Set([401]));
    });

    it('an exempt network has no limit', async () => {
      const text = requestText('/api/check?url=stripe.com', [['X-API-Key', deployment.keys.business]]);
      const responses = await converse(
        deployment.port,
        Array.from({ length: 260 }, () => text),
        '127.9.3.4',
      );
      expect(new Set(responses.map((response) => response.status))).toEqual(new Set([200]));
      expect(remainingIn(responses.at(-1)!)).toBe(2_000_000 - 260);
    });
  });
});
