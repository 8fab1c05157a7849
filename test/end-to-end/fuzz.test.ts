/** Randomly mutated requests, from a fixed seed: each is answered or refused, none harms the server, and only answers are charged. */
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nextClient, requestText } from '../support/raw-http.ts';
import { type Deployment, deploy } from './deployment.ts';
import { ask, sane } from './table.ts';

const SEED = 20_261_121;
const QUIET_MS = 60;

const PIECES = [
  ...[
    '%',
    '%%',
    '%2',
    '%00',
    '%ff',
    '%41'.repeat(9_000),
    '&',
    '&&',
    '=',
    '?',
    '#',
    '\0',
    '\r\n',
    '\r',
    '\n',
    ' ',
    '\t',
    '+',
  ],
  ...['..', '/', '//', '\\', '@', ':', '[', ']', 'url=', 'domain=', 'api_key=', 'method=', 'X-API-Key: ', '\xff\xfe'],
  ...[
    'Content-Length: 5\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Expect: 100-continue\r\n',
    'HTTP/1.1',
    'HTTP/1.0',
    'GET ',
  ],
];

/** One change of a text: the position, in thousandths of its length, and the change. */
const change = fc.record({
  at: fc.noBias(fc.integer({ min: 0, max: 999 })),
  remove: fc.integer({ min: 0, max: 12 }),
  insert: fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'binary', maxLength: 3 })),
});

describe('mutated requests', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy();
  });
  afterAll(() => deployment.stop());

  /** Sends bytes and returns what is received until the server closes the connection or stops sending. */
  async function exchangeLoosely(bytes: Buffer): Promise<string> {
    const socket = connect({ port: deployment.port, host: '127.0.0.1', localAddress: nextClient() });
    let text = '';
    await new Promise<void>((resolve) => {
      let timer = setTimeout(() => socket.destroy(), 400);
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
        clearTimeout(timer);
        timer = setTimeout(() => socket.destroy(), QUIET_MS);
      });
      socket.on('error', () => {});
      socket.on('close', () => {
        clearTimeout(timer);
        resolve();
      });
      socket.write(bytes);
    });
    return text;
  }

  it('bytes: only documented statuses, no internal failure, and no answer without a charge', async () => {
    const { pro } = deployment.keys;
    const whole = requestText('/api/check?url=https%3A%2F%2Fstripe.com%2Fpricing', [['X-API-Key', pro]]);
    const before = await sane(deployment.port, pro);
    let sent = 0;
    let served = 0;
    const seen = new Set<string>();
    const property = fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
      let text = whole;
      for (const { at, remove, insert } of changes) {
        const place = Math.floor((at * text.length) / 1_000);
        text = text.slice(0, place) + insert + text.slice(place + remove);
      }
      sent += 1;
      // The server would wait for the rest of an unfinished request. This end makes it complete or invalid.
      const answer = await exchangeLoosely(Buffer.from(`${text}\r\n\r\n`, 'utf8'));
      for (const [, status = ''] of answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        seen.add(status);
        expect(['100', '200', '400', '401', '404', '405', '431', '505']).toContain(status);
        if (status === '200') served += 1;
      }
      expect(answer).not.toContain('"internal"');
    });
    await fc.assert(property, { numRuns: 150, seed: SEED, endOnFailure: true });
    const charged = before - (await sane(deployment.port, pro)) - 1;
    expect(charged).toBeGreaterThanOrEqual(served);
    expect(charged).toBeLessThanOrEqual(2 * sent);
    // The mutations reach the server's own code, not only the parser of the transport.
    for (const status of ['200', '400', '401', '404']) expect([...seen]).toContain(status);
  });

  it('values: 200 or 400, and normalizing the reported domain does not change it', async () => {
    const { business } = deployment.keys;
    const host = fc.oneof(fc.constantFrom('stripe.com', 'WWW.Stripe.com.', 'münchen.de', 'a.b.co.uk'), fc.domain());
    const value = fc.oneof(
      fc.webUrl({ withQueryParameters: true }),
      fc
        .tuple(fc.constantFrom('', 'https://', 'ftp://', 'http:', '//'), host, fc.string({ unit: 'grapheme' }))
        .map((p) => p.join('')),
      fc.string({ unit: 'grapheme', maxLength: 40 }),
    );
    const statuses = new Set<number>();
    const property = fc.asyncProperty(value, async (text) => {
      const response = await ask(deployment.port, { query: `url=${encodeURIComponent(text)}`, key: business });
      statuses.add(response.status);
      expect([200, 400]).toContain(response.status);
      if (response.status === 400) return;
      const { domain, verdict } = JSON.parse(response.body) as { domain: string; verdict: string };
      expect(['allow', 'deny', 'flag']).toContain(verdict);
      const again = await ask(deployment.port, { query: `url=https://${encodeURIComponent(domain)}/`, key: business });
      expect((JSON.parse(again.body) as { domain: string }).domain).toBe(domain);
    });
    await fc.assert(property, { numRuns: 300, seed: SEED, endOnFailure: true });
    expect([...statuses].sort()).toEqual([200, 400]);
  });
});
