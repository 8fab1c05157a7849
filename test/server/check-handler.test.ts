import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERRORS } from '../../src/errors.ts';
import { exchange, type RawResponse, requestText } from '../support/raw-http.ts';
import { read, startTestServer, type TestServer } from '../support/server.ts';

const ENTRIES = [
  {
    domain: 'example.com',
    language: 'en',
    page_types: { login: 'https://example.com/login', pricing: 'https://example.com/pricing' },
    open_page_rank: 5.12,
    global_rank: 77,
  },
  { domain: 'plain.org' },
];

let server: TestServer;
let key: string;
const CHUNKED = 'transfer-encoding: chunked';
const withBody = (apiKey: string, header: string, body: string): string =>
  `GET /api/check?domain=plain.org HTTP/1.1\r\nhost: x\r\nx-api-key: ${apiKey}\r\n${header}\r\n\r\n${body}`;
const path = (query: string): string => `/api/check${query}`;
const text = (query: string, method = 'GET'): string => requestText(path(query), [['x-api-key', key]], method);

/** The transport itself recognizes only the value `close`. */
const CLOSE = ['connection', 'keep-alive, close'] as const;
const open = async (): Promise<Socket> => {
  const socket = connect({ port: server.port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return socket;
};

beforeAll(async () => {
  server = await startTestServer({
    entries: ENTRIES,
    accounts: {
      pro: { plan: 'pro' },
      piped: { plan: 'pro' },
      fresh: { plan: 'pro' },
      last: { plan: 'pro' },
      new: {},
      two: { plan: 'custom', limit: 2 },
    },
  });
  key = server.keys['pro']!;
});
afterAll(() => server.stop());

describe('a response', () => {
  it('consists of record, verdict and quota, in the order of the specification, byte for byte', async () => {
    const first = await server.check('?domain=example.com');
    const left = first.body.quota_remaining;
    expect(first.text).toBe(
      '{"domain":"example.com","found":true,"language":"en","page_types":{"login":"https://example.com/login","pricing":' +
        `"https://example.com/pricing"},"quota_remaining":${left},"verdict":"allow","matched":${JSON.stringify(first.body.matched)},` +
        '"open_page_rank":5.12,"global_rank":77}',
    );
    expect((await server.check('?domain=example.com')).text).toBe(first.text.replace(`${left},`, `${left - 1},`));
  });

  it('reports an unknown domain', async () => {
    const { status, body } = await server.check('?domain=unknown.net');
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['domain', 'found', 'page_types', 'quota_remaining', 'verdict', 'matched']);
    expect(body).toMatchObject({ domain: 'unknown.net', found: false, page_types: {} });
  });

  it('has its headers', async () => {
    const { headers } = await server.check('?domain=plain.org');
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-pagegate-data')).toMatch(/^1\.[0-9a-f]{12}$/);
  });

  it('judges a found page type by method', async () => {
    const url = encodeURIComponent('https://example.com/pricing');
    expect((await server.check(`?url=${url}`)).body).toMatchObject({
      verdict: 'allow',
      matched: { layer: 'page_type_db', id: 'pricing' },
    });
    expect((await server.check(`?url=${url}&method=post`)).body.verdict).toBe('deny');
  });

  it('counts once in the lookup latency if it waited for a reservation', async () => {
    // Nothing is reserved yet for an account without earlier lookups.
    const countOf = async (name: string): Promise<number> => {
      const { text: metrics } = await read(await fetch(`${server.adminUrl}/metrics`));
      return Number(new RegExp(`^pagegate_${name} (\\d+)$`, 'm').exec(metrics)?.[1]);
    };
    const names = ['lookup_seconds_count', 'wait_seconds_count', 'requests_total{status="200",code="ok"}'];
    const counts = () => Promise.all(names.map((name) => countOf(name.replace(/[{}]/g, '\\$&'))));
    const before = await counts();
    expect((await server.check('?domain=plain.org', { 'x-api-key': server.keys['fresh']! })).status).toBe(200);
    const after = await counts();
    expect(after.map((count, i) => count - before[i]!)).toEqual([1, 1, 1]);
    expect(await countOf('in_flight')).toBe(0);
  });

  it('that waited for a reservation closes its own connection if its request says so, whatever other requests arrive meanwhile', async () => {
    const sockets = [await open(), await open()] as const;
    const first = once(sockets[0], 'data');
    const second = once(sockets[1], 'data');
    sockets[0].write(requestText(path('?domain=plain.org'), [['x-api-key', server.keys['last']!], CLOSE]));
    sockets[1].write(text('?domain=plain.org'));
    expect(String(await first)).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is);
    expect(String(await second)).not.toMatch(/\r\nconnection: close\r\n/i);
    for (const socket of sockets) socket.destroy();
  });

  it('has its own quota when many are sent at once', async () => {
    const before = (await server.check('?domain=plain.org')).body.quota_remaining;
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => server.check(i % 2 ? '?domain=example.com' : '?domain=none.net')),
    );
    expect(answers.every(({ status, body }, i) => status === 200 && body.found === (i % 2 === 1))).toBe(true);
    const left = answers.map(({ body }) => body.quota_remaining).sort((a, b) => b - a);
    expect(left).toEqual(Array.from({ length: 200 }, (_, i) => before - 1 - i));
  });
});

describe('a refusal', () => {
  it.each<[string, number, string]>([
    ['', 400, 'missing_input'],
    ['?domain=', 400, 'bad_input'],
    ['?domain=localhost', 400, 'bad_input'],
    ['?domain=10.0.0.1', 400, 'bad_input'],
    ['?domain=a%40b.com', 400, 'bad_input'],
    [`?domain=${'a.'.repeat(130)}com`, 400, 'input_too_long'],
    ['?domain=example.com&domain=example.com', 400, 'repeated_parameter'],
    ['?domain=example.com&url=plain.org', 400, 'conflicting_input'],
    ['?domain=example.com&x=1', 400, 'unknown_parameter'],
    ['?domain=%zz', 400, 'bad_encoding'],
    ['?domain=example.com&method=%20', 400, 'bad_method'],
  ])('answers %s with %i %s', async (query, status, error) => {
    const answer = await server.check(query);
    expect([answer.status, answer.body.error]).toEqual([status, error]);
    expect(answer.body.message).toContain(ERRORS[error as keyof typeof ERRORS].message);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  it.each([
    ['?url=10.0.0.1', 'It is an address, which no record describes; with a scheme'],
    ['?url=localhost', 'It is a single label, which no record describes; with a scheme'],
    ['?url=a%40b.com', 'It has an @ before the first slash'],
    ['?url=javascript%3Aalert(1)', 'Expected a domain (example.com) or a URL with a host'],
    ['?url=%zz', 'Percent-encode the bytes of its UTF-8 form'],
    ['?url=a.com&method=%20', 'Send one word such as GET or POST.'],
  ])('says what to send instead of %s', async (query, expected) => {
    expect((await server.check(query)).body.message).toContain(expected);
  });

  it('does not apply to both parameters with the same domain: that is no conflict', async () => {
    const answer = await server.check('?domain=EXAMPLE.com&url=https%3A%2F%2Fwww.example.com%2Flogin');
    expect(answer.body).toMatchObject({ domain: 'example.com', verdict: 'deny' });
  });

  it.each<[string, string, Record<string, string>, number, string]>([
    ['no key', '?domain=x.com', {}, 401, 'missing_key'],
    ['an empty key', '?domain=x.com', { 'x-api-key': '' }, 401, 'missing_key'],
    [
      'a wrong key, before anything wrong with the input',
      '?domain=%zz',
      { 'x-api-key': 'pg_wrong' },
      401,
      'unknown_key',
    ],
    ['an empty key in the query', '?api_key=&domain=x.com', {}, 401, 'missing_key'],
    ['a key that is not UTF-8', '?api_key=%ff', {}, 401, 'unknown_key'],
    ['a key that is not well encoded', '?api_key=%zz&domain=x.com', {}, 401, 'unknown_key'],
  ])('is given for %s', async (_, query, headers, status, error) => {
    const answer = await server.check(query, headers);
    expect([answer.status, answer.body.error]).toEqual([status, error]);
  });

  it('is given for two keys in any combination', async () => {
    expect((await server.check(`?domain=x.com&api_key=${key}`)).body.error).toBe('conflicting_credentials');
    expect((await server.check(`?domain=x.com&api_key=${key}&api_key=${key}`, {})).body).toMatchObject({
      error: 'repeated_parameter',
      parameter: 'api_key',
    });
    const twice = requestText(path('?domain=x.com'), [
      ['X-API-Key', key],
      ['x-api-key', key],
    ]);
    const { responses } = await exchange(server.port, [twice]);
    expect(JSON.parse(responses[0]!.body).error).toBe('conflicting_credentials');
    expect((await server.check(`?domain=x.com&api_key=${key}`, {})).status).toBe(200);
  });

  it('is given to an account that is not activated, and to one whose quota is used up', async () => {
    const inactive = await server.check('?domain=%zz', { 'x-api-key': server.keys['new']! });
    expect([inactive.status, inactive.body.error, inactive.body.activated]).toEqual([403, 'not_activated', false]);
    const headers = { 'x-api-key': server.keys['two']! };
    expect((await server.check('?domain=x.com', headers)).body.quota_remaining).toBe(1);
    expect((await server.check('?domain=x.com', headers)).body.quota_remaining).toBe(0);
    const { status, body } = await server.check('?domain=x.com', headers);
    expect(status).toBe(403);
    expect(body).toMatchObject({
      error: 'quota_exhausted',
      plan: 'custom',
      activated: true,
      quota_limit: 2,
      quota_used: 2,
      quota_remaining: 0,
      quota_resets_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    });
    expect((await server.check('?domain=%zz', headers)).status).toBe(400);
  });

  it('is given for other paths and methods', async () => {
    for (const other of ['/', '/api/check/', '/api/checks', '//api/check', '/api/%63heck', '/metrics']) {
      const { status, body } = await read(await fetch(`${server.url}${other}`, { headers: { 'x-api-key': key } }));
      expect([other, status, body.error]).toEqual([other, 404, 'not_found']);
    }
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const answer = await read(await fetch(`${server.url}/api/check`, { method, headers: { 'x-api-key': key } }));
      expect([method, answer.status, answer.body.error, answer.headers.get('allow')]).toEqual([
        method,
        405,
        'method_not_allowed',
        'GET',
      ]);
    }
  });

  it.each<[string, (key: string, next: string) => string]>([
    ['a body', (key) => withBody(key, 'content-length: 3', 'abc')],
    ['an incomplete body', (key) => withBody(key, 'content-length: 3000', 'abc')],
    ['a body and a request after it', (key, next) => withBody(key, 'content-length: 3', 'abc') + next],
    ['a chunked body and a request after it', (key, next) => withBody(key, CHUNKED, '3\r\nabc\r\n0\r\n\r\n') + next],
  ])('of %s is a 400, closes the connection, and serves nothing that follows', async (_name, packet) => {
    const before = (await server.check('?domain=plain.org')).body.quota_remaining;
    const { responses } = await exchange(server.port, [packet(key, text('?domain=plain.org'))], {
      untilClose: true,
    });
    expect(responses.map(({ status, body }) => [status, JSON.parse(body).error])).toEqual(
      responses.map(() => [400, 'body_not_allowed']),
    );
    expect(responses.every(({ headers }) => headers['connection'] === 'close')).toBe(true);
    expect(responses.length).toBeGreaterThan(0);
    expect((await server.check('?domain=plain.org')).body.quota_remaining).toBe(before - 1);
  });

  it('of a body with several requests after it serves none of them, although the transport may close before the 400 is sent', async () => {
    const before = (await server.check('?domain=plain.org')).body.quota_remaining;
    const next = text('?domain=plain.org');
    const packet = withBody(key, CHUNKED, '3\r\nabc\r\n0\r\n\r\n') + next + next + next;
    const { responses } = await exchange(server.port, [packet], { untilClose: true });
    expect(responses.length).toBeLessThanOrEqual(1);
    expect(responses.filter(({ status }) => status !== 400)).toEqual([]);
    expect((await server.check('?domain=plain.org')).body.quota_remaining).toBe(before - 1);
  });

  it('of a HEAD request has the headers of the refusal and no body', async () => {
    const query = '?domain=example.com';
    const { responses } = await exchange(server.port, [text(query, 'HEAD') + text(query)], { count: 2, heads: [0] });
    expect(responses[0]).toMatchObject({
      status: 405,
      body: '',
      headers: { allow: 'GET', 'content-type': 'application/json' },
    });
    expect(responses[1]!.status).toBe(200);
  });
});

describe('the wire', () => {
  it('delivers a request that arrives in single bytes', async () => {
    const { responses } = await exchange(server.port, [...text('?domain=example.com')]);
    expect(JSON.parse(responses[0]!.body).found).toBe(true);
  });

  const pipelined = (apiKey = key): string =>
    ['?domain=example.com', '?domain=none.net', '', '?domain=plain.org']
      .map((query) => requestText(path(query), [['x-api-key', apiKey]]))
      .join('');
  const answered = [
    [200, 'example.com'],
    [200, 'none.net'],
    [400, undefined],
    [200, 'plain.org'],
  ];

  const expectAnswered = (responses: readonly RawResponse[]): void =>
    expect(responses.map(({ status, body }) => [status, JSON.parse(body).domain])).toEqual(answered);

  /** Returns the four responses; undefined if the connection was closed early. `isSlow` means that a slow disk may be the reason. */
  const sendPipelined = async (): Promise<{ responses: readonly RawResponse[] | undefined; isSlow: boolean }> => {
    const startedMs = performance.now();
    const { responses } = await exchange(server.port, [pipelined()], { count: 4 });
    // The server waits 250 ms for the disk; the next request then closes the connection.
    const isSlow = performance.now() - startedMs >= 250;
    return { responses: responses.length === 4 ? responses : undefined, isSlow };
  };

  it('answers pipelined requests of one segment in order', async () => {
    // The first lookup reserves enough for the account that none of the four waits for the disk.
    const own = { 'x-api-key': server.keys['piped']! };
    expect((await server.check('?domain=example.com', own)).status).toBe(200);
    const { responses } = await exchange(server.port, [pipelined(own['x-api-key'])], { count: 4 });
    expectAnswered(responses);
  });

  it('closes a connection with pipelined requests at most once under load, and answers every later attempt', async ({
    skip,
  }) => {
    let isDone = false;
    const load = Array.from({ length: 24 }, async () => {
      while (!isDone) expect((await server.check('?domain=example.com')).status).toBe(200);
    });
    try {
      let cuts = 0;
      let slow = 0;
      for (let times = 0; times < 10; times += 1) {
        const { responses, isSlow } = await sendPipelined();
        if (responses !== undefined) expectAnswered(responses);
        else if (isSlow) slow += 1;
        else cuts += 1;
      }
      skip(slow > 5, 'the disk is too slow to tell');
      expect(cuts).toBeLessThanOrEqual(1);
    } finally {
      isDone = true;
      await Promise.all(load);
    }
  });

  it.each([
    ['content-length', 'content-length: 5\r\n\r\nhello'],
    ['chunked', 'transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'],
    ['a body that never comes', 'content-length: 500\r\n\r\nhel'],
  ])('answers a body on the GET (%s) with 400 and closes the connection', async (_, rest) => {
    const request = `GET ${path('?domain=x.com')} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n${rest}`;
    const { responses } = await exchange(server.port, [request], { untilClose: true });
    expect(responses[0]!.status).toBe(400);
    expect(JSON.parse(responses[0]!.body).error).toBe('body_not_allowed');
  });

  it.each(['close', 'Close', 'keep-alive, close', 'close , x'])(
    'connection: %s closes after the response',
    async (value) => {
      const request = requestText(path('?domain=plain.org'), [
        ['x-api-key', key],
        ['connection', value],
      ]);
      const { responses, closed } = await exchange(server.port, [request], { untilClose: true });
      expect([responses.length, closed]).toEqual([1, true]);
    },
  );

  it('does not serve what follows the last request of a connection', async () => {
    const before = (await server.check('?domain=plain.org')).body.quota_remaining;
    const last = requestText(path('?domain=plain.org'), [['x-api-key', key], CLOSE]);
    const { responses } = await exchange(server.port, [last + text('?domain=plain.org')], { untilClose: true });
    expect(responses.map(({ status }) => status)).toEqual([200]);
    expect((await server.check('?domain=plain.org')).body.quota_remaining).toBe(before - 2);
  });

  it('treats content-length 0 as no body: the connection stays open', async () => {
    const headers = [
      ['x-api-key', key],
      ['content-length', '0'],
    ] as const;
    const request = requestText(path('?domain=example.com'), headers);
    const { responses } = await exchange(server.port, [request, request], { count: 2 });
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('delivers a value of 8,192 bytes that are all percent-encoded', async () => {
    const value = `https://example.com/${'a'.repeat(8_192 - 20)}`;
    const encoded = [...Buffer.from(value)].map((byte) => `%${byte.toString(16)}`).join('');
    expect((await server.check(`?url=${encoded}`)).status).toBe(200);
    expect((await server.check(`?url=${encoded}%61`)).body.error).toBe('input_too_long');
  });

  it.each([
    ['an old protocol', 'GET /api/check HTTP/1.0\r\nhost: x\r\n\r\n', 505],
    ['no host', 'GET /api/check HTTP/1.1\r\n\r\n', 400],
    ['headers that are too large', `GET /api/check HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(50_000)}\r\n\r\n`, 431],
    [
      'two definitions of the length of the body',
      'GET /api/check HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\nx',
      400,
    ],
  ])('refuses %s in the transport', async (_, chunk, status) => {
    const { responses } = await exchange(server.port, [chunk], { untilClose: true });
    expect(responses[0]?.status).toBe(status);
  });

  it('is unaffected by clients that disconnect at any point', async () => {
    const request = text('?domain=example.com');
    const goAway = async (chunk: string, how: 'destroy' | 'resetAndDestroy'): Promise<void> => {
      const socket = connect({ port: server.port, host: '127.0.0.1', noDelay: true });
      await once(socket, 'connect');
      await new Promise((sent) => socket.write(chunk, sent));
      socket[how]();
    };
    const opened = async (): Promise<number> => (await server.server.status()).workers[0]!.connections;
    const before = await opened();
    const chunks = Array.from({ length: Math.ceil(request.length / 7) }, (_, i) => request.slice(0, 7 * i + 1));
    for (let i = 0; i < 50; i++) chunks.push(request);
    await Promise.all(chunks.flatMap((chunk) => [goAway(chunk, 'destroy'), goAway(chunk, 'resetAndDestroy')]));
    await expect.poll(opened).toBeLessThanOrEqual(before);
    expect((await server.check('?domain=example.com')).status).toBe(200);
  });
});
