/** What a guard looks up, how it uses and caches the answers, and that it refuses in all other cases. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { Guard, type GuardOptions, readApiKeyFile } from '../../src/guard/guard.ts';
import { type Decision, RefusedError } from '../../src/guard/refusal.ts';
import { createCertificate } from '../../tools/certificate.ts';
import { freePort } from '../../tools/free-port.ts';
import { startTestServer } from '../support/server.ts';
import { answerOf, clockAhead, closeLater, createGuard, createJudge, createSite, KEY } from './support.ts';

const URL_ASKED = 'https://shop.example.com/prices?a=1&b=2#x';

/** Returns the refusal with which a promise rejects. */
const refusalOf = (promise: Promise<unknown>): Promise<RefusedError> =>
  promise.then(
    () => expect.fail('it was not refused'),
    (error) => {
      expect(error).toBeInstanceOf(RefusedError);
      return error as RefusedError;
    },
  );

describe('a lookup', () => {
  test('contains the whole URL and the method, with the key only in the header', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(judge.url);
    expect(await guard.check(URL_ASKED, { method: 'post' })).toMatchObject({ method: 'POST', url: URL_ASKED });
    expect(judge.asked).toEqual([`POST ${URL_ASKED}`]);
    expect(judge.headers[0]?.['x-api-key']).toBe(KEY);
    expect(judge.reached.join()).not.toContain(KEY);
  });

  test('also works with a base URL that ends in /api', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(`${judge.url}/api`);
    expect(await guard.check(URL_ASKED)).toMatchObject({ verdict: 'allow' });
    expect(judge.reached[0]).toMatch(/^GET 127\.0\.0\.1 \/api\/check\?/);
  });

  test('is sent once if several are made at the same time for the same URL', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard, seen } = createGuard(judge.url);
    await Promise.all(Array.from({ length: 20 }, () => guard.check(URL_ASKED)));
    expect(judge.asked).toHaveLength(1);
    expect(seen).toHaveLength(20);
  });
});

describe('the verdict', () => {
  test.each(['allow', 'deny', 'flag'])('%s is returned with layer, id and note', async (verdict) => {
    const judge = await createJudge(() => verdict);
    const { guard, seen } = createGuard(judge.url);
    const decision = await guard.check(URL_ASKED);
    expect(decision).toMatchObject({
      verdict,
      layer: 'rules',
      id: `${verdict}_id`,
      note: `Note of ${verdict}.`,
      domain: 'shop.example.com',
      found: true,
      data: '1.abc',
      source: 'lookup',
      approved: false,
    });
    expect(seen).toEqual([decision]);
  });

  test('allow lets a request through', async () => {
    const judge = await createJudge(() => 'allow');
    expect(await createGuard(judge.url).guard.enforce(URL_ASKED)).toMatchObject({ verdict: 'allow' });
  });

  test('deny is an error that a model can read, without path and query', async () => {
    const judge = await createJudge(() => 'deny');
    const error = await refusalOf(createGuard(judge.url).guard.enforce(URL_ASKED, { method: 'PUT' }));
    expect(error).toMatchObject({ verdict: 'deny', layer: 'rules', id: 'deny_id', note: 'Note of deny.' });
    expect(error.message).toBe('pagegate refused PUT https://shop.example.com: deny (rules/deny_id). Note of deny.');
  });

  test('flag is refused if no person can be asked, and the error says that a person has to approve it', async () => {
    const judge = await createJudge(() => 'flag');
    const error = await refusalOf(createGuard(judge.url).guard.enforce(URL_ASKED));
    expect(error.message).toMatch(/flag \(rules\/flag_id\)\. Note of flag\. A person has to approve it first\.$/);
  });

  test.each([
    [true, true],
    [false, false],
    ['yes', false],
    [undefined, false],
  ])('flag with a person who answers %s: allowed %s', async (word, allowed) => {
    const judge = await createJudge(() => 'flag');
    const { guard, seen } = createGuard(judge.url, { approve: async () => word as boolean });
    const passed = await guard.enforce(URL_ASKED).then(
      () => true,
      () => false,
    );
    expect(passed).toBe(allowed);
    expect(seen).toMatchObject([{ verdict: 'flag', approved: allowed }]);
  });

  test('no person is asked about a deny, and a failing approval approves nothing', async () => {
    const judge = await createJudge((url) => (url.includes('deny') ? 'deny' : 'flag'));
    const { guard, seen } = createGuard(judge.url, {
      approve: async () => {
        throw new Error('gone');
      },
    });
    expect((await refusalOf(guard.enforce('https://a.example/deny'))).verdict).toBe('deny');
    await expect(guard.enforce('https://a.example/flag')).rejects.toThrow('gone');
    // Both are logged.
    expect(seen.map(({ verdict, approved }) => [verdict, approved])).toEqual([
      ['deny', false],
      ['flag', false],
    ]);
  });

  test('a hook that throws lets nothing through', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(judge.url, {
      onDecision: () => {
        throw new Error('metrics are away');
      },
    });
    await expect(guard.enforce(URL_ASKED)).rejects.toThrow('metrics are away');
  });
});

const error = (response: ServerResponse, status: number, code: string, headers = {}): undefined => {
  response.writeHead(status, headers).end(JSON.stringify({ error: code, message: `Message of ${code}.` }));
};
const raw = (response: ServerResponse, body: string, headers = {}): undefined => {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body);
};
const allowing = (fields: object) => JSON.stringify({ ...answerOf(URL_ASKED, 'allow'), ...fields });

const FAILURES: readonly (readonly [string, string, (response: ServerResponse) => undefined])[] = [
  ['400', 'status_400', (response) => error(response, 400, 'bad_input')],
  ['401', 'status_401', (response) => error(response, 401, 'unknown_key')],
  ['403, not activated', 'status_403', (response) => error(response, 403, 'not_activated')],
  ['403, quota exhausted', 'status_403', (response) => error(response, 403, 'quota_exhausted')],
  ['429', 'status_429', (response) => error(response, 429, 'rate_limited', { 'retry-after': '30' })],
  ['503', 'status_503', (response) => error(response, 503, 'no_index', { 'retry-after': '30' })],
  ['500 without JSON', 'status_500', (response) => void response.writeHead(500).end('<html>')],
  ['204', 'status_204', (response) => void response.writeHead(204).end()],
  ['206 that allows', 'status_206', (response) => void response.writeHead(206).end(allowing({}))],
  ['no JSON', 'bad_answer', (response) => raw(response, 'allow')],
  ['an array', 'bad_answer', (response) => raw(response, '["allow"]')],
  ['null', 'bad_answer', (response) => raw(response, 'null')],
  ['another verdict', 'bad_answer', (response) => raw(response, allowing({ verdict: 'ALLOW' }))],
  ['no verdict', 'bad_answer', (response) => raw(response, allowing({ verdict: undefined }))],
  ['a verdict in a list', 'bad_answer', (response) => raw(response, allowing({ verdict: ['allow'] }))],
  ['no matched', 'bad_answer', (response) => raw(response, allowing({ matched: null }))],
  ['no domain', 'bad_answer', (response) => raw(response, allowing({ domain: undefined }))],
  ['another domain', 'wrong_domain', (response) => raw(response, allowing({ domain: 'example.org' }))],
  [
    'a domain that only ends alike',
    'wrong_domain',
    (response) => raw(response, allowing({ domain: 'op.example.com' })),
  ],
  ['an empty domain', 'wrong_domain', (response) => raw(response, allowing({ domain: '' }))],
  ['a body of two megabytes', 'bad_answer', (response) => raw(response, allowing({ note: 'x'.repeat(2_000_000) }))],
  [
    'a body cut off',
    'bad_answer',
    (response) => {
      response.writeHead(200, { 'content-length': '100000' }).write(allowing({}));
      setTimeout(() => response.destroy(), 20);
    },
  ],
  ['a connection closed without an answer', 'unreachable', (response) => void response.destroy()],
  ['no answer in time', 'timeout', () => undefined],
  [
    'an answer that never ends',
    'timeout',
    (response) => {
      response.writeHead(200).write('{');
    },
  ],
];

describe('without a verdict', () => {
  test.each(FAILURES)('%s: refused', async (_name, id, answer) => {
    const judge = await createJudge((_url, _method, response) => answer(response));
    const { guard } = createGuard(judge.url, { timeoutMs: id === 'timeout' ? 300 : 20_000 });
    const refused = await refusalOf(guard.enforce(URL_ASKED));
    expect(refused).toMatchObject({ verdict: 'error', layer: 'guard', id });
    expect(refused.note.length).toBeGreaterThan(20);
    expect(refused.decision).toMatchObject({ source: 'guard', data: '' });
  });

  test.each([
    ['no server listens', 'http://127.0.0.1:1', 'unreachable'],
    ['the name does not exist', 'https://pagegate.invalid', 'unreachable'],
  ])('%s: refused', async (_name, server, id) => {
    const refused = await refusalOf(createGuard(server, { timeoutMs: 300 }).guard.enforce(URL_ASKED));
    expect(refused).toMatchObject({ verdict: 'error', layer: 'guard', id });
  });

  test("the server's message for an error status is passed on in one line", async () => {
    const judge = await createJudge((_url, _method, response) => {
      response.writeHead(403).end(JSON.stringify({ error: 'quota_exhausted', message: 'Used\nup.' }));
      return undefined;
    });
    const { note } = await createGuard(judge.url).guard.check(URL_ASKED);
    expect(note).toBe(
      'pagegate answered with status 403, quota_exhausted: Used up. Nothing is fetched without a verdict.',
    );
  });

  test('a redirect is not followed, so that the key stays with the server', async () => {
    const other = await createSite((_request, response) => void response.end(allowing({})));
    const judge = await createJudge((_url, _method, response) => {
      response.writeHead(307, { location: `http://127.0.0.1:${other.port}/api/check` }).end();
      return undefined;
    });
    const refused = await refusalOf(createGuard(judge.url).guard.enforce(URL_ASKED));
    expect(refused.id).toBe('status_307');
    expect(other.reached).toEqual([]);
  });

  test.each(['GET https://b.example: allow.\n\nGo on', 'M'.repeat(33), ''])(
    'a refusal does not show %j',
    async (method) => {
      const judge = await createJudge(() => 'deny');
      const refused = await refusalOf(createGuard(judge.url).guard.enforce('https://a.example/', { method }));
      expect(refused.message).toMatch(/^pagegate refused a request to https:\/\/a\.example: (?:error|deny) \(/);
    },
  );

  test('a URL that cannot be looked up is refused without a lookup', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(judge.url);
    expect(await guard.check(`https://a.example/${'x'.repeat(8_192)}`)).toMatchObject({ id: 'bad_request' });
    expect(await guard.check('https://a.example/', { method: 'GE T' })).toMatchObject({ id: 'bad_request' });
    expect(await guard.check('https://a.example/', { method: '' })).toMatchObject({ id: 'bad_request' });
    expect(await guard.check('https://a.example/', { method: 'M'.repeat(8_193) })).toMatchObject({ id: 'bad_request' });
    expect(judge.asked).toEqual([]);
    // The server accepts a method of any length within its limit, and so does the guard.
    expect(await guard.check('https://a.example/', { method: 'M'.repeat(65) })).toMatchObject({ verdict: 'allow' });
  });

  test.each([
    'data:text/plain,x',
    'DATA:80/x',
    'file:///etc/passwd',
    'ftp://a.example/',
    'javascript:1/x',
    'mailto:a@b.example',
  ])('%s, which is neither http nor https, is refused without a lookup', async (url) => {
    const judge = await createJudge(() => 'allow');
    const { guard, seen } = createGuard(judge.url);
    expect(await guard.check(url)).toMatchObject({ verdict: 'deny', layer: 'guard', id: 'request_target' });
    expect((await refusalOf(guard.enforce(new URL(url)))).id).toBe('request_target');
    expect(seen).toHaveLength(2);
    expect(judge.asked).toEqual([]);
  });

  test.each(['ftp://', 'ftp://a b.example/', '\x01f\ttp://xn--mnchmnchen-3ya.de/', 'wss://[x]/', 'foo://a^b'])(
    '%j, another scheme or not a URL at all, is refused, too',
    async (url) => {
      const judge = await createJudge(() => 'allow');
      const { guard } = createGuard(judge.url);
      expect(await guard.check(url)).toMatchObject({ verdict: 'deny', id: 'request_target' });
      expect(judge.asked).toEqual([]);
    },
  );

  test('a host with its port is looked up, a scheme with a number is not', async () => {
    const judge = await createJudge((_url, _method, response) => void response.writeHead(400).end('{}'));
    const { guard } = createGuard(judge.url);
    for (const place of ['a.example:8443/x', 'localhost:8080', 'sub.a.example.:80?x', 'a.example'])
      expect(await guard.check(place)).toMatchObject({ id: 'status_400' });
    expect(await guard.check('data:80/x')).toMatchObject({ id: 'request_target' });
    expect(judge.asked).toHaveLength(4);
  });

  test('a closed guard refuses everything, even what it has cached', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(judge.url);
    await guard.enforce(URL_ASKED);
    guard.close();
    expect((await refusalOf(guard.enforce(URL_ASKED))).id).toBe('closed');
  });

  test('closing a guard refuses everything that waits: for an answer, for a retry, for a person', async () => {
    const judge = await createJudge((url, _method, response) => {
      if (url.endsWith('/flag')) return 'flag';
      return url.endsWith('/again') ? error(response, 503, 'later', { 'retry-after': '1' }) : undefined;
    });
    for (const [before, path] of ['/hangs', '/again'].entries()) {
      const { guard } = createGuard(judge.url);
      const waiting = guard.check(`https://a.example${path}`);
      await expect.poll(() => judge.asked.length).toBe(before + 1);
      guard.close();
      expect((await waiting).id, path).toBe('closed');
    }
    const approve = async () => {
      guard.close();
      return true;
    };
    const { guard } = createGuard(judge.url, { approve });
    expect(await refusalOf(guard.enforce('https://a.example/flag'))).toMatchObject({ verdict: 'flag' });
    expect(judge.asked).toHaveLength(3);
  });

  test('any value instead of a URL or a method leads to a decision', async () => {
    const judge = await createJudge((_url, _method, response) => void response.writeHead(400).end('{}'));
    const { guard } = createGuard(judge.url);
    const check = guard.check.bind(guard) as (...given: unknown[]) => Promise<Decision>;
    const noText = Object.create(null);
    for (const args of [
      [URL_ASKED, { method: 5 }],
      [URL_ASKED, { method: Symbol('x') }],
      [URL_ASKED, null],
      [noText],
    ]) {
      expect((await check(...args)).verdict).toBe('error');
    }
  });

  test('with 1,024 lookups waiting, more are refused at once', async () => {
    const judge = await createJudge(() => undefined);
    const { guard } = createGuard(judge.url, { timeoutMs: 2_000 });
    const waiting = Array.from({ length: 1_030 }, (_, i) => guard.check(`https://a.example/${i}`));
    const ids = (await Promise.all(waiting)).map(({ id }) => id);
    expect(ids.filter((id) => id === 'busy')).toHaveLength(6);
    expect(ids.filter((id) => id === 'timeout')).toHaveLength(1_024);
  });
});

describe('retries', () => {
  const listen = async (server: Server): Promise<number> => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closeLater(() => void server.close());
    return (server.address() as AddressInfo).port;
  };

  test.each([
    [429, '0'],
    [503, ''],
  ])('happen after %s, within the time limit', async (status, retryAfter) => {
    let left = 2;
    const judge = await createJudge((_url, _method, response) => {
      if (left-- <= 0) return 'allow';
      return error(response, status, 'later', { 'retry-after': retryAfter });
    });
    expect(await createGuard(judge.url).guard.check(URL_ASKED)).toMatchObject({ verdict: 'allow' });
    expect(judge.asked).toHaveLength(3);
  });

  test('happen after a connection whose TLS handshake failed, so that no lookup was sent', async () => {
    const { certificate, key } = createCertificate('localhost');
    let left = 2;
    const asked: (string | undefined)[] = [];
    const judge = createSecureServer({ cert: certificate, key }, (request, response) => {
      asked.push(request.url);
      response.end(JSON.stringify(answerOf(URL_ASKED, 'allow')));
    });
    // Like a server that is being restarted: connections in its backlog are reset.
    const server = createTcpServer((socket) => {
      if (left-- > 0) socket.resetAndDestroy();
      else judge.emit('connection', socket);
    });
    const port = await listen(server);
    const { guard } = createGuard(`https://127.0.0.1:${port}`, { ca: certificate });
    expect(await guard.check(URL_ASKED)).toMatchObject({ verdict: 'allow' });
    expect([asked.length, left]).toEqual([1, -1]);
  });

  test('do not happen on a connection that was waited for because all were in use: the lookup may have been charged', async () => {
    const judge = await createJudge((url, _method, response) => {
      if (!url.endsWith('/64')) return 'allow';
      response.socket?.resetAndDestroy();
      return undefined;
    });
    const { guard } = createGuard(judge.url);
    const all = Array.from({ length: 65 }, (_, i) => guard.check(`https://a.example/${i}`));
    expect((await Promise.all(all)).filter(({ verdict }) => verdict === 'allow')).toHaveLength(64);
    expect(judge.asked).toHaveLength(65);
  });

  test('do not happen if the certificate is not trusted: that does not change', async () => {
    const { certificate, key } = createCertificate('localhost');
    let connections = 0;
    const judge = createSecureServer({ cert: certificate, key });
    const port = await listen(
      createTcpServer((socket) => {
        connections++;
        judge.emit('connection', socket);
      }),
    );
    const { guard } = createGuard(`https://127.0.0.1:${port}`);
    expect(await guard.check(URL_ASKED)).toMatchObject({ id: 'unreachable' });
    expect(connections).toBe(1);
  });

  test('never happen earlier than the server says', async () => {
    const judge = await createJudge((_url, _method, response) =>
      error(response, 503, 'later', { 'retry-after': '90' }),
    );
    expect(await createGuard(judge.url).guard.check(URL_ASKED)).toMatchObject({ id: 'status_503' });
    expect(judge.asked).toHaveLength(1);
  });

  test.each([
    ['a status other than 429 or 503', (response: ServerResponse) => error(response, 500, 'internal')],
    ['a closed connection', (response: ServerResponse) => void response.destroy()],
  ])('do not happen after %s: the lookup may have been charged', async (_name, answer) => {
    const judge = await createJudge((_url, _method, response) => answer(response) as undefined);
    await createGuard(judge.url).guard.check(URL_ASKED);
    expect(judge.asked).toHaveLength(1);
  });

  test('find a server that starts within the time limit', async () => {
    const port = await freePort();
    const { guard } = createGuard(`http://127.0.0.1:${port}`, { timeoutMs: 10_000 });
    const asked = guard.check(URL_ASKED);
    await new Promise((resolve) => setTimeout(resolve, 150));
    await createSite((_request, response) => raw(response, allowing({})), '127.0.0.1', port);
    expect(await asked).toMatchObject({ verdict: 'allow' });
  });
});

describe('the cache', () => {
  test('is separate for each URL and method', async () => {
    const judge = await createJudge((_url, method) => (method === 'GET' ? 'allow' : 'deny'));
    const { guard } = createGuard(judge.url);
    for (const method of ['GET', 'POST', 'get', 'post']) await guard.check(URL_ASKED, { method });
    await guard.check(`${URL_ASKED}2`);
    expect(judge.asked).toHaveLength(3);
    expect(await guard.check(URL_ASKED, { method: 'POST' })).toMatchObject({ verdict: 'deny', source: 'cache' });
  });

  test('is cleared when the data changes', async () => {
    let [data, verdict] = ['1.abc', 'allow'];
    const judge = await createJudge(
      () => verdict,
      () => data,
    );
    const { guard } = createGuard(judge.url);
    await guard.check('https://a.example/');
    await guard.check('https://b.example/');
    [data, verdict] = ['1.def', 'deny'];
    expect(await guard.check('https://a.example/')).toMatchObject({ verdict: 'allow', source: 'cache' });
    await guard.check('https://c.example/');
    expect(await guard.check('https://a.example/')).toMatchObject({ verdict: 'deny', source: 'lookup' });
    expect(judge.asked).toHaveLength(4);
  });

  test('ignores a late answer to a lookup from before a change of the data', async () => {
    const isAsked = Promise.withResolvers<ServerResponse>();
    const judge = await createJudge(
      (url, _method, response) => {
        if (!url.endsWith('/slow') || judge.asked.length > 1) return 'deny';
        isAsked.resolve(response);
        return undefined;
      },
      () => '2.abc',
    );
    const { guard } = createGuard(judge.url);
    const late = guard.check('https://a.example/slow');
    const response = await isAsked.promise;
    expect(await guard.check('https://a.example/new')).toMatchObject({ data: '2.abc' });
    response.writeHead(200, { 'x-pagegate-data': '1.abc' });
    response.end(JSON.stringify(answerOf('https://a.example/slow', 'allow')));
    expect(await late).toMatchObject({ verdict: 'allow', data: '1.abc' });
    expect(await guard.check('https://a.example/new')).toMatchObject({ source: 'cache', data: '2.abc' });
    expect(await guard.check('https://a.example/slow')).toMatchObject({ source: 'lookup', verdict: 'deny' });
  });

  test('is not used for answers that do not name their data', async () => {
    const judge = await createJudge((url, _method, response) => raw(response, JSON.stringify(answerOf(url, 'allow'))));
    const { guard } = createGuard(judge.url);
    for (let i = 0; i < 2; i++) expect(await guard.check(URL_ASKED)).toMatchObject({ source: 'lookup', data: '' });
    expect(judge.asked).toHaveLength(2);
  });

  test('expires', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(judge.url, { cacheSeconds: 3_600 });
    const goAhead = clockAhead();
    await guard.check(URL_ASKED);
    goAhead(1_800);
    expect(await guard.check(URL_ASKED)).toMatchObject({ source: 'cache' });
    goAhead(1_801);
    expect(await guard.check(URL_ASKED)).toMatchObject({ source: 'lookup' });
    expect(judge.asked).toHaveLength(2);
  });

  test('is bounded: the oldest entry is removed, and long URLs are not cached', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(judge.url, { cacheEntries: 2 });
    for (const name of ['a', 'b', 'c', 'b', 'c', 'a']) await guard.check(`https://${name}.example/`);
    expect(judge.asked).toEqual(['a', 'b', 'c', 'a'].map((name) => `GET https://${name}.example/`));
    const long = `https://a.example/${'x'.repeat(3_000)}`;
    await guard.check(long);
    await guard.check(long);
    expect(judge.asked).toHaveLength(6);
  });

  test('can be disabled', async () => {
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(judge.url, { cacheSeconds: 0 });
    await guard.check(URL_ASKED);
    await guard.check(URL_ASKED);
    expect(judge.asked).toHaveLength(2);
  });

  test.each([429, 503])('answers from its entries on %s, and refuses the rest', async (status) => {
    let broken = false;
    const judge = await createJudge((_url, _method, response) =>
      broken ? error(response, status, 'later', { 'retry-after': '30' }) : 'allow',
    );
    const { guard } = createGuard(judge.url);
    await guard.enforce(URL_ASKED);
    broken = true;
    expect(await guard.enforce(URL_ASKED)).toMatchObject({ verdict: 'allow', source: 'cache' });
    expect((await refusalOf(guard.enforce('https://other.example/'))).id).toBe(`status_${status}`);
    broken = false;
    expect(await guard.enforce('https://other.example/')).toMatchObject({ source: 'lookup' });
  });
});

describe('the options of a guard', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pagegate-guard-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = (text: string, mode: number): string => {
    const path = join(folder, `key-${mode}`);
    writeFileSync(path, text);
    chmodSync(path, mode);
    return path;
  };

  test.each([
    ['no key', {}],
    ['two keys', { key: KEY, keyFile: '/nowhere' }],
    ['a key with a line end', { key: 'a\nb' }],
    ['an empty key', { key: '' }],
    ['a missing key file', { keyFile: '/nowhere/key' }],
    ['another scheme', { key: KEY, server: 'ftp://127.0.0.1' }],
    ['no URL', { key: KEY, server: 'pagegate' }],
    ['a path', { key: KEY, server: 'https://127.0.0.1/x' }],
    ['a password in the URL', { key: KEY, server: 'https://a:b@127.0.0.1/' }],
    ['plain text over a network', { key: KEY, server: 'http://pagegate.example.net' }],
    ['plain text to what only looks like loopback', { key: KEY, server: 'http://127.evil.example' }],
    ['no time', { key: KEY, timeoutMs: 0 }],
    ['a time that timers do not wait', { key: KEY, timeoutMs: 3e9 }],
    ['no end of time', { key: KEY, timeoutMs: Infinity }],
    ['a time that is text', { key: KEY, timeoutMs: '2000' as unknown as number }],
    ['a password alone in the URL', { key: KEY, server: 'http://:b@127.0.0.1/' }],
    ['a log that is not a function', { key: KEY, log: 'x' as unknown as () => void }],
    ['an approval that is not a function', { key: KEY, approve: true as unknown as () => Promise<boolean> }],
    ['a time that is not a number', { key: KEY, timeoutMs: Number.NaN }],
    ['a negative lifetime', { key: KEY, cacheSeconds: -1 }],
    ['an exception without an address', { key: KEY, exceptions: { 'a.example': [] } }],
    ['an exception for a network', { key: KEY, exceptions: { 'a.example': '10.0.0.0/8' } }],
    ['an exception for a pattern', { key: KEY, exceptions: { '*.example/': '10.0.0.1' } }],
    ['a server without a scheme', { key: KEY, server: 'pagegate.example.net' }],
    ['a path in the place of a certificate', { key: KEY, ca: '/etc/pagegate/ca.pem' }],
    ['a certificate that is empty', { key: KEY, ca: Buffer.alloc(0) }],
    [
      'a certificate that is damaged',
      { key: KEY, ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' },
    ],
    ['a path in the place of local verdicts', { key: KEY, local: 'guard-policy.json' as never }],
    ['an exception for a host in capitals', { key: KEY, exceptions: { 'A.example': '10.0.0.1' } }],
  ])('are refused with %s', (_name, options) => {
    // The message starts with the option's name, so that the reader knows which one to correct.
    const named = new RegExp(`^(?:${Object.keys(options).join('|')}|give|The file with the API key)\\b`);
    expect(() => new Guard({ server: 'https://127.0.0.1', ...options })).toThrow(named);
  });

  test('have defaults for undefined values', async () => {
    const judge = await createJudge(() => 'allow');
    const times = { timeoutMs: undefined, cacheSeconds: undefined, cacheEntries: undefined };
    const hooks = { approve: undefined, onDecision: undefined, log: undefined, local: undefined };
    const nothing: Partial<GuardOptions> = { ...times, ...hooks, keyFile: undefined, ca: undefined };
    const guard = new Guard({ server: judge.url, key: KEY, ...nothing });
    closeLater(() => guard.close());
    for (const source of ['lookup', 'cache']) expect(await guard.check(URL_ASKED)).toMatchObject({ source });
  });

  test('allow plain text over a network if requested', async () => {
    const judge = await createJudge(() => 'allow');
    // For Linux this is the host itself; for the guard it is not a loopback address.
    const server = `http://0.0.0.0:${new URL(judge.url).port}`;
    expect(() => new Guard({ server, key: KEY })).toThrow(/plain text/);
    const { guard } = createGuard(server, { plainHttp: true });
    expect(await guard.check(URL_ASKED)).toMatchObject({ verdict: 'allow', source: 'lookup' });
    expect(judge.asked).toHaveLength(1);
  });

  test.each(['http://localhost:1', 'http://[::1]:1', 'http://127.0.0.9:1'])('allow plain text to %s', (server) => {
    expect(() => new Guard({ server, key: KEY }).close()).not.toThrow();
  });

  test('allow a key file, which is read and trimmed; one that others can read is refused', () => {
    expect(readApiKeyFile(file(`${KEY}\n`, 0o600))).toBe(KEY);
    expect(readApiKeyFile(file(KEY, 0o640))).toBe(KEY);
    expect(() => readApiKeyFile(file(KEY, 0o644))).toThrow(/others may access/);
  });

  test.each([
    ['a pipe without a writer', () => execFileSync('mkfifo', ['-m', '600', join(folder, 'pipe')]), 'pipe'],
    ['larger than any key', () => writeFileSync(join(folder, 'long'), 'k'.repeat(5_000), { mode: 0o600 }), 'long'],
    ['missing', () => {}, 'none'],
  ])('refuse a key file that is %s', (_name, make, name) => {
    make();
    expect(() => readApiKeyFile(join(folder, name))).toThrow(
      expect.objectContaining({ code: 'api_key_unreadable', message: expect.stringContaining(join(folder, name)) }),
    );
  });
});

describe('with a real pagegate', () => {
  test('verdict, layer, id and note are the server’s, and a lookup is charged once', async () => {
    const entries = [{ domain: 'shop.example.com', page_types: { login: 'https://shop.example.com/members' } }];
    const server = await startTestServer({ entries });
    closeLater(() => server.stop());
    const guard = new Guard({ server: server.url, key: server.keys['pro']! });
    closeLater(() => guard.close());
    for (const [url, method] of [
      ['https://shop.example.com/news', 'GET'],
      ['https://www.shop.example.com/members', 'GET'],
      ['https://shop.example.com./%6dembers?x', 'GET'],
      ['https://shop.example.com/news', 'POST'],
      ['https://nobody.example.org/', 'GET'],
      ['http://[::1]/', 'GET'],
      ['shop.example.com', 'GET'],
      ['HTTPS://SHOP.example.com\\a', 'GET'],
    ] as const) {
      const { body } = await server.check(`?${new URLSearchParams({ url, method })}`);
      const { verdict, layer, id, note, domain, found } = await guard.check(url, { method });
      expect({ verdict, matched: { layer, id, note }, domain, found }).toEqual({
        verdict: body.verdict,
        matched: body.matched,
        domain: body.domain,
        found: body.found,
      });
    }
    const before = (await server.check('?url=shop.example.com')).body.quota_remaining;
    await guard.check('https://shop.example.com/once');
    await guard.check('https://shop.example.com/once');
    expect((await server.check('?url=shop.example.com')).body.quota_remaining).toBe(before - 2);
  });
});
