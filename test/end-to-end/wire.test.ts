/** Bytes on the wire: every status, headers, unusual ways to send a request. The server works after each of them. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { converse, exchange, nextClient, type RawResponse, requestText } from '../support/raw-http.ts';
import { type Deployment, deploy } from './deployment.ts';
import { expectAnswer, expectError, found, sane } from './table.ts';

const PRICING = found('stripe.com', 'allow page_type_db/pricing');
const TARGET = '/api/check?url=https://stripe.com/pricing';

describe('the wire', () => {
  let deployment: Deployment;
  let port = 0;
  let key = '';
  let waiting = '';
  let left = 0;

  beforeAll(async () => {
    deployment = await deploy();
    port = deployment.port;
    key = deployment.keys.pro;
    waiting = await deployment.createAccount('waiting');
    left = await sane(port, key);
  });
  afterAll(() => deployment.stop());

  /** Sends bytes with a key. Afterwards the server still answers, and exactly `charged` lookups were charged. */
  async function send(
    chunks: readonly (string | Uint8Array)[],
    charged: number,
    options: Parameters<typeof exchange>[2] = {},
  ): Promise<readonly RawResponse[]> {
    const { responses } = await exchange(port, chunks, { from: nextClient(), ...options });
    const now = await sane(port, key);
    expect(left - now, 'lookups charged').toBe(charged + 1);
    left = now;
    return responses;
  }

  /**
   * Sends requests without waiting for the responses. A busy server may close such a connection (docs/api.md); a client then retries. Requests
   * without a response may have been charged, those with a response always were.
   */
  async function sendPipelined(
    chunks: readonly string[],
    count: number,
    charged: number,
  ): Promise<readonly RawResponse[]> {
    const from = nextClient();
    for (let tries = 0; tries < 10; tries += 1) {
      const { responses, closed } = await exchange(port, chunks, { from, count });
      const now = await sane(port, key);
      const cost = left - now - 1;
      left = now;
      if (responses.length === count) {
        expect(cost, 'lookups charged').toBe(charged);
        return responses;
      }
      const served = responses.filter((response) => response.status === 200).length;
      expect(closed).toBe(true);
      expect(cost - served, 'lookups charged that nobody saw').toBeGreaterThanOrEqual(0);
      expect(cost, 'lookups charged').toBeLessThanOrEqual(charged);
    }
    throw new Error('the connection was cut ten times');
  }

  const withKey = (target = TARGET, headers: readonly (readonly [string, string])[] = [], method = 'GET'): string =>
    requestText(target, [['X-API-Key', key], ...headers], method);

  describe('spec 7, contract errors: form and status', () => {
    it('spec 7: 200, a lookup record, and contract response: headers', async () => {
      const [response] = await send([withKey()], 1);
      expectAnswer(response!, PRICING);
      expect(response!.headers['x-pagegate-data']).toMatch(/^1\./);
      expect(Number(response!.headers['content-length'])).toBe(Buffer.byteLength(response!.body));
      // And no header that identifies the server software.
      expect(Object.keys(response!.headers).sort()).toEqual(
        ['cache-control', 'content-length', 'content-type', 'date', 'x-pagegate-data'].sort(),
      );
    });

    it('spec 7: 400, no parameter; contract errors: form', async () => {
      const [response] = await send([withKey('/api/check')], 0);
      expectError(response!, 400, 'missing_input');
    });

    it('spec 7: 401, no key (spec 5 rule 4)', async () => {
      const [response] = await send([requestText(TARGET)], 0);
      expectError(response!, 401, 'missing_key');
    });

    it('spec 7: 401, a key that matches no account (spec 5 rule 4)', async () => {
      const [response] = await send([requestText(TARGET, [['X-API-Key', deployment.keys.stranger]])], 0);
      expectError(response!, 401, 'unknown_key');
    });

    it.each([
      ['another path', '/'],
      ['a path below', '/api/check/more'],
      ['a slash behind', '/api/check/'],
      ['a path in another case', '/API/check'],
      ['an encoded path', '/api%2Fcheck'],
      ['a doubled slash', '//api/check'],
      ['health, which is not public', '/healthz'],
      ['metrics, which are not public', '/metrics'],
    ])('contract transport: the public port has the one endpoint: 404 for %s', async (_name, path) => {
      const [response] = await send([withKey(`${path}?url=stripe.com`)], 0);
      expectError(response!, 404, 'not_found');
    });

    it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'BREW'])(
      'contract request: other HTTP methods on the path: 405 for %s',
      async (method) => {
        const [response] = await send([withKey(TARGET, [], method)], 0);
        expectError(response!, 405, 'method_not_allowed');
        expect(response!.headers['allow']).toBe('GET');
      },
    );

    it('405: HEAD, which has no body', async () => {
      const [response] = await send([withKey(TARGET, [], 'HEAD')], 0, { heads: [0] });
      expect(response!.status).toBe(405);
      expect(response!.headers['allow']).toBe('GET');
    });

    it('404 and 405 come before the key: they reveal nothing about it', async () => {
      const [missing] = await send([requestText('/other')], 0);
      expectError(missing!, 404, 'not_found');
      const [post] = await send([requestText('/api/check', [], 'POST')], 0);
      expectError(post!, 405, 'method_not_allowed');
    });
  });

  describe('spec 5 rule 1, spec 5 rule 2: the key', () => {
    it.each(['X-API-Key', 'x-api-key', 'X-API-KEY'])('header %s', async (name) => {
      const [response] = await send([requestText(TARGET, [[name, key]])], 1);
      expectAnswer(response!, PRICING);
    });

    it('blanks around the key in the header are ignored', async () => {
      const [response] = await send([requestText(TARGET, [['X-API-Key', `  ${key} \t`]])], 1);
      expectAnswer(response!, PRICING);
    });

    it('parameter api_key, before the input', async () => {
      const [response] = await send([requestText(`/api/check?api_key=${key}&url=https://stripe.com/pricing`)], 1);
      expectAnswer(response!, PRICING);
    });

    it.each([
      ['in header and query', (k: string) => requestText(`${TARGET}&api_key=${k}`, [['X-API-Key', k]])],
      ['in header and query, one of them wrong', (k: string) => requestText(`${TARGET}&api_key=x`, [['X-API-Key', k]])],
      [
        'in two headers',
        (k: string) =>
          requestText(TARGET, [
            ['X-API-Key', k],
            ['X-API-Key', k],
          ]),
      ],
      [
        'in two headers of different case',
        (k: string) =>
          requestText(TARGET, [
            ['x-api-key', k],
            ['X-API-KEY', 'y'],
          ]),
      ],
      [
        'in header and in a parameter whose name is encoded',
        (k: string) => requestText(`${TARGET}&%61pi_key=${k}`, [['X-API-Key', k]]),
      ],
      [
        'twice, and no input: the key step comes first',
        (k: string) => requestText(`/api/check?api_key=${k}`, [['X-API-Key', k]]),
      ],
    ])('contract request: key in header and in query: %s', async (_name, request) => {
      const [response] = await send([request(key)], 0);
      expectError(response!, 400, 'conflicting_credentials');
    });

    it.each([
      ['twice', (k: string) => `${TARGET}&api_key=${k}&api_key=${k}`],
      ['twice, one name encoded', (k: string) => `${TARGET}&api_key=${k}&api%5Fkey=${k}`],
      ['twice, one of them wrong', (k: string) => `${TARGET}&api_key=${k}&api_key=x`],
    ])('contract request: a parameter sent twice: api_key %s', async (_name, target) => {
      const [response] = await send([requestText(target(key))], 0);
      expectError(response!, 400, 'repeated_parameter');
    });

    it.each([
      ['empty', ''],
      ['in lower case', 'lower'],
      ['with one character changed', 'typo'],
      ['cut off', 'short'],
      ['with text behind it', 'long'],
      ['of 4,000 characters', 'huge'],
      ['a bearer token', 'bearer'],
    ])('401: a key %s', async (_name, kind) => {
      const wrong = {
        lower: key.toLowerCase(),
        typo: key.replace(/.$/, (c) => (c === 'a' ? 'b' : 'a')),
        short: key.slice(0, -1),
        long: `${key}0`,
        huge: 'k'.repeat(4_000),
        bearer: `Bearer ${key}`,
      }[kind];
      const [response] = await send([requestText(TARGET, [['X-API-Key', wrong ?? '']])], 0);
      expectError(response!, 401, wrong === undefined ? 'missing_key' : 'unknown_key');
    });

    it('spec 5 rule 7: no other authentication scheme exists', async () => {
      const [response] = await send([requestText(TARGET, [['Authorization', `Bearer ${key}`]])], 0);
      expectError(response!, 401, 'missing_key');
    });

    it('401 comes before 400: a client without a key learns nothing about the input', async () => {
      const [response] = await send([requestText('/api/check?foo=1', [['X-API-Key', deployment.keys.stranger]])], 0);
      expectError(response!, 401, 'unknown_key');
    });
  });

  describe('contract request: a body on the GET', () => {
    it.each([
      ['content-length above 0', [['Content-Length', '5']], 'hello'],
      ['transfer-encoding', [['Transfer-Encoding', 'chunked']], '5\r\nhello\r\n0\r\n\r\n'],
      ['a body that never comes', [['Content-Length', '100']], ''],
      [
        'a body that looks like a request',
        [['Content-Length', '44']],
        'GET /api/check?url=a.com HTTP/1.1\r\nhost: x\r\n\r\n',
      ],
    ] as [string, [string, string][], string][])(
      '%s is 400 and closes the connection',
      async (_name, headers, body) => {
        const responses = await send([withKey(TARGET, headers) + body], 0, { untilClose: true });
        expect(responses).toHaveLength(1);
        expectError(responses[0]!, 400, 'body_not_allowed');
      },
    );

    it.each([
      ['content-length', [['Content-Length', '5']], 'hello'],
      ['transfer-encoding', [['Transfer-Encoding', 'chunked']], '5\r\nhello\r\n0\r\n\r\n'],
    ] as [string, [string, string][], string][])(
      '%s: a request after the body, in the same packet, is neither answered nor charged',
      async (_name, headers, body) => {
        const responses = await send([withKey(TARGET, headers) + body + withKey()], 0, { untilClose: true });
        expect(responses).toHaveLength(1);
        expectError(responses[0]!, 400, 'body_not_allowed');
        // With more requests the transport closes the connection at once; none of them is served either.
        const many = await send([withKey(TARGET, headers) + body + withKey().repeat(5)], 0, { untilClose: true });
        expect(many.filter(({ status }) => status !== 400)).toEqual([]);
      },
    );

    it('content-length 0 counts as no body', async () => {
      const [response] = await send([withKey(TARGET, [['Content-Length', '0']])], 1);
      expectAnswer(response!, PRICING);
    });

    it('content-length and transfer-encoding together are never read as two requests', async () => {
      const smuggled = withKey();
      const headers = [
        ['Content-Length', '4'],
        ['Transfer-Encoding', 'chunked'],
      ] as const;
      const { responses, closed } = await exchange(port, [`${withKey(TARGET, headers)}0\r\n\r\n${smuggled}`], {
        from: nextClient(),
        untilClose: true,
      });
      expect(closed).toBe(true);
      expect(responses.filter((response) => response.status === 200)).toEqual([]);
      left = await sane(port, key);
    });
  });

  describe('unusual ways to send a request', () => {
    it('a request that arrives in single bytes', async () => {
      const [response] = await send([...withKey()], 1);
      expectAnswer(response!, PRICING);
    });

    it('a request line that is split within a percent escape', async () => {
      const text = withKey('/api/check?url=https%3A%2F%2Fstripe.com%2Fpricing');
      const cut = text.indexOf('%2Fpricing') + 2;
      const [response] = await send([text.slice(0, cut), text.slice(cut)], 1, { pauseMs: 20 });
      expectAnswer(response!, PRICING);
    });

    it('pipelined requests are answered in order', async () => {
      const paths = ['/pricing', '/login', '/', '/pricing'];
      const text = paths.map((path) => withKey(`/api/check?url=https://stripe.com${path}`)).join('');
      const responses = await sendPipelined([text], 4, 4);
      const verdicts = ['allow page_type_db/pricing', 'deny page_type_db/login', 'allow default/classified_read'];
      for (const [i, response] of responses.entries()) {
        expectAnswer(response, found('stripe.com', verdicts[i % 3] as string));
      }
    });

    it('contract errors: only a 200 consumes a lookup: pipelined requests of which some are refused', async () => {
      const text = [withKey('/api/check?foo=1'), withKey(), requestText(TARGET), withKey('/x'), withKey()].join('');
      const responses = await sendPipelined([text], 5, 2);
      expect(responses.map((response) => response.status)).toEqual([400, 200, 401, 404, 200]);
    });

    it('fifty pipelined requests, cut into segments of 37 bytes', async () => {
      const text = withKey().repeat(50);
      const chunks = Array.from({ length: Math.ceil(text.length / 37) }, (_, i) => text.slice(i * 37, i * 37 + 37));
      const responses = await sendPipelined(chunks, 50, 50);
      for (const response of responses) expectAnswer(response, PRICING);
      const numbers = responses.map((response) => Number(/"quota_remaining":(\d+)/.exec(response.body)?.[1]));
      expect(numbers).toEqual(numbers.map((_, i) => numbers[0]! - i));
    });

    it.each(['close', 'Close', 'keep-alive, close', 'close ,TE'])(
      'Connection: %s gets a response and a close, and nothing after it is served or charged',
      async (value) => {
        const last = withKey(TARGET, [['Connection', value]]);
        for (const text of [last, last + withKey(), withKey('/api/check?foo=1', [['Connection', value]]) + withKey()]) {
          const isFirstServed = text.startsWith(last);
          const responses = await send([text], isFirstServed ? 1 : 0, { untilClose: true });
          expect(responses.map(({ status }) => status)).toEqual([isFirstServed ? 200 : 400]);
        }
      },
    );

    it.each(['keep-alive', 'closed', 'x-close'])('Connection: %s leaves it open', async (value) => {
      const text = withKey(TARGET, [['Connection', value]]);
      expect(await send([text, text], 2, { count: 2, pauseMs: 50 })).toHaveLength(2);
    });

    it('a client that disconnects in the middle of its request', async () => {
      const text = withKey();
      const socket = connect({ port, host: '127.0.0.1', localAddress: nextClient() });
      await once(socket, 'connect');
      await new Promise((resolve) => socket.write(text.slice(0, 40), resolve));
      socket.resetAndDestroy();
      expect(await sane(port, key)).toBe(left - 1);
      left -= 1;
    });

    it('raw bytes beyond ASCII in the target are decoded as UTF-8', async () => {
      const raw = Buffer.from('/api/check?url=m\u00fcnchen.de', 'utf8').toString('latin1');
      const [response] = await send([withKey(raw)], 1);
      expectAnswer(response!, found('xn--mnchen-3ya.de', 'allow default/classified_read'));
    });

    it('raw bytes that are not UTF-8 get 400', async () => {
      const [response] = await send([withKey('/api/check?url=m\xfcnchen.de')], 0);
      expectError(response!, 400, 'bad_encoding');
    });
  });

  describe('refusals of the transport itself: no JSON, no charge, and the server still works', () => {
    it.each([
      ['a NUL byte in the request line', () => withKey('/api/check?url=stri\0pe.com')],
      ['a NUL byte in a header', () => withKey(TARGET, [['X-Other', 'a\0b']])],
      ['no HTTP at all', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
      ['an HTTP version that does not exist', () => withKey().replace('HTTP/1.1', 'HTTP/9.9')],
      ['a header section that is too large', () => withKey(TARGET, [['X-Other', 'x'.repeat(200_000)]])],
      ['a header without a colon', () => withKey().replace('\r\n', '\r\nno colon here\r\n')],
      ['a blank in the header name', () => withKey(TARGET, [['X Other', '1']])],
      ['a content-length that is no number', () => withKey(TARGET, [['Content-Length', 'many']])],
      ['a negative content-length', () => withKey(TARGET, [['Content-Length', '-1']])],
      [
        'two different content-lengths',
        () =>
          withKey(TARGET, [
            ['Content-Length', '0'],
            ['Content-Length', '5'],
          ]),
      ],
    ] as [string, () => string][])('%s', async (_name, request) => {
      const { responses } = await exchange(port, [request()], { from: nextClient(), untilClose: true }).catch(() => ({
        responses: [],
      }));
      for (const response of responses) expect([400, 431, 505]).toContain(response.status);
      const now = await sane(port, key);
      expect(left - now, 'lookups charged').toBe(1);
      left = now;
    });

    it('an absolute target does not match the path', async () => {
      const { responses } = await exchange(port, [withKey(`http://127.0.0.1${TARGET}`)], { from: nextClient() });
      expect([400, 404, 505]).toContain(responses[0]?.status);
      left = await sane(port, key);
    });
  });

  /** 503 is tested in outage.test.ts, which has a server without an index. */
  describe('spec 4: every answer of the handler has a JSON body, errors too', () => {
    it.each([
      [200, () => [withKey()]],
      [400, () => [withKey('/api/check?foo=1')]],
      [401, () => [requestText(TARGET)]],
      [403, () => [requestText(TARGET, [['X-API-Key', waiting]])]],
      [404, () => [withKey('/other')]],
      [405, () => [withKey(TARGET, [], 'POST')]],
      [429, () => Array<string>(241).fill(requestText('/api/check'))],
    ] as [number, () => string[]][])('%i', async (status, requests) => {
      const response = (await converse(port, requests(), nextClient())).at(-1)!;
      expect([response.status, response.headers['content-type']]).toEqual([status, 'application/json']);
      expect(JSON.parse(response.body)).toMatchObject(
        status === 200 ? { verdict: 'allow' } : { error: expect.any(String) },
      );
      left = await sane(port, key);
    });
  });
});
