/** Guarded requests: every hop is judged, what is judged is what is sent, and composed interceptors cannot bypass it. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import {
  Agent,
  type Dispatcher,
  interceptors,
  RetryAgent,
  Request as UndiciRequest,
  type fetch as undiciFetch,
  WebSocket,
} from 'undici';
import { describe, expect, test } from 'vitest';
import { createGuardedFetch, GuardedAgent } from '../../src/guard/fetch.ts';
import { type Decision, RefusedError } from '../../src/guard/refusal.ts';
import { createCertificate } from '../../tools/certificate.ts';
import {
  allowBut,
  closeLater,
  createGuard,
  createJudge,
  createSite,
  EXCEPTIONS,
  type Judging,
  LOOKUP,
  names,
  pathsOf,
} from './support.ts';

/** A site behind both names, and a guard that permits its address. */
async function createScene(judging: Judging = allowBut('/login')) {
  const site = await createSite((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://x');
    const status = Number(pathname.slice(1));
    if (status >= 300 && status < 400) response.writeHead(status, { location: searchParams.get('to')! }).end();
    else response.end(`body of ${request.method} ${pathname}`);
  });
  const judge = await createJudge(judging);
  const { guard, seen } = createGuard(judge.url, { exceptions: EXCEPTIONS });
  const agent = new GuardedAgent(guard, { connect: { lookup: LOOKUP } });
  closeLater(() => agent.destroy());
  const at = (host: string, path: string) => `http://${host}:${site.port}${path}`;
  return { site, judge, guard, seen, agent, guardedFetch: createGuardedFetch(guard, agent), at };
}

describe('GuardedAgent', () => {
  test('accepts the connection options beside `connect`, like an Agent', async () => {
    const { certificate, key } = createCertificate('localhost');
    const server = createSecureServer({ cert: certificate, key, allowHTTP1: true }, (request, response) => {
      response.end(request.httpVersion);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const judge = await createJudge(() => 'allow');
    const { guard } = createGuard(judge.url, { exceptions: { localhost: '127.0.0.1' } });
    const connect = { ca: certificate, lookup: names({ localhost: ['127.0.0.1'] }) };
    const agent = new GuardedAgent(guard, { allowH2: true, connect });
    closeLater(async () => {
      await agent.destroy();
      server.close();
    });
    const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
    const { body } = await agent.request({ origin, path: '/', method: 'GET' });
    expect(await body.text()).toBe('2.0');
    expect(() => new GuardedAgent(guard, { maxCachedSessions: -1 })).toThrow(/maxCachedSessions/);
  });
});

describe('a value that is not a guard', () => {
  test('is refused as the guard, and other objects as the agent', async () => {
    const { guard, agent } = await createScene();
    for (const none of [undefined, {}, agent]) expect(() => new GuardedAgent(none as never)).toThrow(/^guard: /);
    for (const other of [new Agent(), {}, { connect: { timeout: 1 } }]) {
      expect(() => createGuardedFetch(guard, other as never)).toThrow(/^agent: not a GuardedAgent/);
    }
    for (const name of ['connect', 'factory']) {
      expect(() => new GuardedAgent(guard, { [name]: () => undefined } as never)).toThrow(/^connect, factory: /);
    }
  });
});

describe('guardedFetch', () => {
  test('fetches what is allowed, and looks up exactly that', async () => {
    const { guardedFetch, judge, site, at } = await createScene();
    const response = await guardedFetch(at('a.example', '/x/../news?q=%41#top'));
    expect([response.status, await response.text()]).toEqual([200, 'body of GET /news']);
    expect(judge.asked).toEqual([`GET ${at('a.example', '/news?q=%41')}`]);
    expect(site.reached).toEqual(['GET a.example /news?q=%41']);
  });

  test('rejects with the refusal itself, and nothing is sent', async () => {
    const { guardedFetch, site, seen, at } = await createScene();
    const refused = await guardedFetch(at('a.example', '/login')).catch((error) => error);
    expect(refused).toBeInstanceOf(RefusedError);
    expect(refused).toMatchObject({ verdict: 'deny', layer: 'rules', id: 'deny_id', note: 'Note of deny.' });
    expect(site.reached).toEqual([]);
    expect(seen).toMatchObject([{ verdict: 'deny', method: 'GET' }]);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'])('judges the method %s', async (method) => {
    const { guardedFetch, judge, site, at } = await createScene((_url, judged) =>
      judged === 'PUT' ? 'deny' : 'allow',
    );
    const body = method === 'HEAD' || method === 'DELETE' ? null : 'x';
    const passed = await guardedFetch(at('a.example', '/'), { method, body }).then(
      () => true,
      () => false,
    );
    expect(passed).toBe(method !== 'PUT');
    expect(judge.asked).toEqual([`${method} ${at('a.example', '/')}`]);
    expect(site.reached).toEqual(method === 'PUT' ? [] : [`${method} a.example /`]);
  });

  test('accepts a Request of the platform’s fetch, and one of undici’s', async () => {
    const { guardedFetch, site, at } = await createScene();
    const init = { method: 'POST', body: 'text', headers: { 'x-a': 'b' } };
    const answers = [
      await guardedFetch(new Request(at('a.example', '/one'), init)),
      await guardedFetch(new UndiciRequest(at('a.example', '/two'), init) as unknown as Request),
      await guardedFetch(new URL(at('a.example', '/three'))),
    ];
    expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual(
      ['POST /one', 'POST /two', 'GET /three'].map((what) => `body of ${what}`),
    );
    expect(site.headers.map((headers) => headers['x-a'])).toEqual(['b', 'b', undefined]);
    await expect(guardedFetch(new Request(at('a.example', '/login')))).rejects.toBeInstanceOf(RefusedError);
  });

  test('checks the integrity that a Request demands, whichever class it has', async () => {
    const { guardedFetch, at } = await createScene();
    const hash = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`;
    for (const One of [Request, UndiciRequest as unknown as typeof Request]) {
      const right = new One(at('a.example', '/x'), { integrity: hash('body of GET /x') });
      expect(await (await guardedFetch(right)).text()).toBe('body of GET /x');
      const wrong = guardedFetch(new One(at('a.example', '/x'), { integrity: hash('another') }));
      await expect(wrong).rejects.toMatchObject({ cause: { message: 'integrity mismatch' } });
    }
  });

  test('passes on the fetch options of a platform’s Request', async () => {
    const { guardedFetch, site, at } = await createScene();
    const init = { method: 'POST', body: 'x', cache: 'no-store', keepalive: true, mode: 'same-origin' } as const;
    await guardedFetch(new Request(at('a.example', '/x'), init));
    expect(site.headers).toMatchObject([{ 'cache-control': 'no-cache', 'sec-fetch-mode': 'same-origin' }]);
  });

  test('accepts null as options, like fetch', async () => {
    const { guardedFetch, at } = await createScene();
    const response = await guardedFetch(at('a.example', '/x'), null as unknown as RequestInit);
    expect(await response.text()).toBe('body of GET /x');
  });

  test('accepts no other dispatcher', async () => {
    const { guardedFetch, site, at } = await createScene();
    const init = { dispatcher: new Agent() } as unknown as RequestInit;
    await expect(guardedFetch(at('a.example', '/'), init)).rejects.toThrow(TypeError);
    expect(site.reached).toEqual([]);
  });

  test('a refused address that cannot be reported makes the request fail, not the program', async () => {
    const judge = await createJudge(() => 'allow');
    const onDecision = ({ id }: Decision) => {
      if (id === 'inside_address') throw new Error('no space');
    };
    const { guard } = createGuard(judge.url, { onDecision });
    const agent = new GuardedAgent(guard, { connect: { lookup: names({ 'a.example': ['127.0.0.1'] }) } });
    closeLater(() => agent.destroy());
    for (const host of ['a.example', '127.0.0.1']) {
      const fetched = createGuardedFetch(guard, agent)(`http://${host}/`);
      await expect(fetched).rejects.toMatchObject({ cause: { message: 'no space' } });
    }
  });

  test('passes other failures on unchanged', async () => {
    const { guardedFetch, at } = await createScene();
    await expect(guardedFetch('no URL')).rejects.toThrow(TypeError);
    const aborted = guardedFetch(at('a.example', '/'), { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
    await expect(guardedFetch('http://nowhere.example/')).rejects.toMatchObject({ message: 'fetch failed' });
  });
});

describe('a scheme other than http and https', () => {
  /** Returns why a call was refused, and whether a decision was reported. */
  const refused = async ({ seen, judge, site }: Awaited<ReturnType<typeof createScene>>, fetched: Promise<unknown>) => {
    const error = (await fetched.catch((reason) => reason)) as RefusedError;
    expect(error).toBeInstanceOf(RefusedError);
    expect(seen.at(-1)).toBe(error.decision);
    expect([...judge.asked, ...site.reached]).toEqual([]);
    return `${error.verdict} ${error.layer}/${error.id}`;
  };

  test.each([
    'data:text/plain,hello',
    'DATA:text/plain,hello',
    ' data:text/plain,hello',
    'da\nta:text/plain,hello',
    'data:80/x,hello',
    'data://a.example/,hello',
    'file:///etc/passwd',
    'File:/etc/passwd',
    'ftp://a.example/',
    'gopher://a.example/',
    'ws://a.example/',
    'about:blank',
    'javascript:alert(1)',
    'blob:https://a.example/x',
    'a.example:80/x',
  ])('%j is refused', async (url) => {
    const scene = await createScene(() => 'allow');
    expect(await refused(scene, scene.guardedFetch(url))).toBe('deny guard/request_target');
  });

  test('is refused in a URL, a Request of either kind, and anything converted to a string', async () => {
    const url = 'data:text/plain,hello';
    const blob = URL.createObjectURL(new Blob(['hello']));
    let reads = 0;
    const turning = { toString: () => (reads++ === 0 ? url : 'http://a.example/') };
    for (const input of [new URL(url), new Request(url), new UndiciRequest(url), turning, blob, new Request(blob)]) {
      const scene = await createScene(() => 'allow');
      expect(await refused(scene, scene.guardedFetch(input as string))).toBe('deny guard/request_target');
    }
  });

  test('is refused with the intended method, and with a message that does not show the data in the URL', async () => {
    const { guardedFetch, seen } = await createScene();
    const error = await guardedFetch('data:text/plain,user@secret', { method: 'POST' }).catch((reason) => reason);
    expect(seen).toMatchObject([{ method: 'POST', url: 'data:text/plain,user@secret' }]);
    expect(error.message).toMatch(/^pagegate refused POST this address: deny \(guard\/request_target\)\. /);
  });

  test('is refused, but a relative URL fails like in any fetch', async () => {
    const { guardedFetch, seen } = await createScene();
    await expect(guardedFetch('data:,x')).rejects.toBeInstanceOf(RefusedError);
    expect(seen.splice(0)).toHaveLength(1);
    for (const url of ['/data:text/plain,x', '//a.example/x', '', 'http:'])
      await expect(guardedFetch(url)).rejects.toThrow('Failed to parse URL');
    expect(seen).toEqual([]);
  });
});

describe('a redirect', () => {
  const STATUSES = [301, 302, 303, 307, 308];

  test.each(STATUSES)('%i to an allowed page is followed', async (status) => {
    const { guardedFetch, site, at } = await createScene();
    const response = await guardedFetch(at('a.example', `/${status}?to=/news`));
    expect(await response.text()).toBe('body of GET /news');
    expect(pathsOf(site)).toEqual([`/${status}?to=/news`, '/news']);
  });

  test.each(STATUSES)('%i to a refused page is not', async (status) => {
    const { guardedFetch, site, at } = await createScene();
    const refused = await guardedFetch(at('a.example', `/${status}?to=/login`)).catch((error) => error);
    expect(refused).toBeInstanceOf(RefusedError);
    expect(pathsOf(site)).toEqual([`/${status}?to=/login`]);
  });

  test.each(STATUSES)('%i to another site, and from there to a refused page, is not', async (status) => {
    const { guardedFetch, site, at } = await createScene();
    const last = encodeURIComponent(at('a.example', '/login'));
    const first = encodeURIComponent(at('b.example', `/${status}?to=${last}`));
    await expect(guardedFetch(at('a.example', `/${status}?to=${first}`))).rejects.toBeInstanceOf(RefusedError);
    expect(site.reached).toHaveLength(2);
    expect(site.reached[1]).toMatch(/^GET b\.example /);
  });

  test.each(STATUSES)('%i of a POST is judged with the method it will have', async (status) => {
    const kept = status >= 307;
    const { guardedFetch, judge, at } = await createScene((url, method) =>
      new URL(url).pathname === '/next' && method === 'POST' ? 'deny' : 'allow',
    );
    const fetched = guardedFetch(at('a.example', `/${status}?to=/next`), { method: 'POST', body: 'x' });
    if (kept) await expect(fetched).rejects.toBeInstanceOf(RefusedError);
    else expect((await fetched).status).toBe(200);
    expect(judge.asked[1]).toBe(`${kept ? 'POST' : 'GET'} ${at('a.example', '/next')}`);
  });

  test.each(
    STATUSES.flatMap((status) => ['data:text/plain,hello', 'FILE:///etc/passwd'].map((to) => [status, to] as const)),
  )('%i to %s is refused', async (status, to) => {
    const { guardedFetch, seen, at } = await createScene();
    const url = at('a.example', `/${status}?to=${encodeURIComponent(to)}`);
    const error = await guardedFetch(url).catch((reason) => reason);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error.id).toBe('request_target');
    expect(seen.map((decision) => decision.url)).toEqual([url, new URL(to).href]);
  });

  test('to another scheme is refused if it would be followed, and returned if redirects are not followed', async () => {
    const { guardedFetch, seen, at } = await createScene();
    const url = at('a.example', '/302?to=data:,x');
    await expect(guardedFetch(url)).rejects.toBeInstanceOf(RefusedError);
    seen.length = 0;
    const response = await guardedFetch(url, { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([302, 'data:,x']);
    expect((await guardedFetch(new Request(url, { redirect: 'manual' }))).status).toBe(302);
    await expect(guardedFetch(url, { redirect: 'error' })).rejects.toThrow(TypeError);
    expect(seen.map(({ verdict }) => verdict)).toEqual(['allow', 'allow', 'allow']);
  });
});

describe('interceptors', () => {
  type Compose = (
    agent: GuardedAgent,
  ) => Parameters<typeof undiciFetch>[1] extends infer I
    ? NonNullable<NonNullable<I> extends { dispatcher?: infer D } ? D : never>
    : never;
  const redirect = () => interceptors.redirect({ maxRedirections: 5 });
  const retry = () => interceptors.retry({ maxRetries: 1, minTimeout: 1 });
  const ORDERS: readonly (readonly [string, Compose])[] = [
    ['redirect', (agent) => agent.compose(redirect())],
    ['redirect, then retry', (agent) => agent.compose(redirect(), retry())],
    ['retry, then redirect', (agent) => agent.compose(retry(), redirect())],
    ['composed twice', (agent) => agent.compose(retry()).compose(redirect())],
    ['cache and redirect', (agent) => agent.compose(interceptors.cache(), redirect())],
    ['redirect and cache', (agent) => agent.compose(redirect(), interceptors.cache())],
    ['a RetryAgent', (agent) => new RetryAgent(agent, { maxRetries: 1, minTimeout: 1 }).compose(redirect())],
  ];

  test.each(ORDERS)('composed as %s judge every hop', async (_name, compose) => {
    const { agent, site, at } = await createScene();
    const composed = compose(agent);
    const ask = (path: string) => composed.request({ origin: at('a.example', ''), path, method: 'GET' });
    expect(await (await ask('/302?to=/news')).body.text()).toBe('body of GET /news');
    await expect(ask('/302?to=/login')).rejects.toBeInstanceOf(RefusedError);
    expect(pathsOf(site)).not.toContain('/login');
  });

  test.each([
    [
      'the interceptor',
      (agent: GuardedAgent) => agent.compose(interceptors.retry({ maxRetries: 1, minTimeout: 3_600_000 })),
    ],
    ['a RetryAgent', (agent: GuardedAgent) => new RetryAgent(agent, { maxRetries: 1, minTimeout: 3_600_000 })],
  ])('that retry, %s, pass a refusal on at once', async (_name, compose) => {
    const { agent, seen, at } = await createScene();
    const asked = compose(agent).request({ origin: at('a.example', ''), path: '/login', method: 'GET' });
    await expect(asked).rejects.toMatchObject({ name: 'RefusedError', code: 'PAGEGATE_REFUSED' });
    expect(seen).toHaveLength(1);
  });

  test('for names only change the refused URL: an address instead of the host is judged as an address', async () => {
    const { agent, site, judge, at } = await createScene((url) => (url.includes('127.0.0.1') ? 'deny' : 'allow'));
    const lookup = (_origin: unknown, _options: unknown, found: (error: null, list: object[]) => void) =>
      found(null, [{ address: '127.0.0.1', family: 4, ttl: 1_000 }]);
    const composed = agent.compose(interceptors.dns({ lookup } as Parameters<typeof interceptors.dns>[0]));
    await expect(composed.request({ origin: at('a.example', ''), path: '/', method: 'GET' })).rejects.toBeInstanceOf(
      RefusedError,
    );
    expect(site.reached).toEqual([]);
    expect(judge.asked).toEqual([]);
  });
});

describe('the judged request is the one that is sent', () => {
  const send = async (options: object, judging?: Judging) => {
    const scene = await createScene(judging);
    const request = scene.agent.request({
      origin: scene.at('a.example', ''),
      path: '/',
      method: 'GET',
      ...options,
    } as Parameters<GuardedAgent['request']>[0]);
    const status = await request.then(
      (response) => response.statusCode,
      (error) => (error instanceof RefusedError ? error.id : error),
    );
    return { ...scene, status };
  };

  test('a separate query is judged with the path', async () => {
    const { judge, site, status, at } = await send({ path: '/a?b=1', query: { action: 'edit', tag: ['x', 'y z'] } });
    expect(status).toBe(200);
    expect(judge.asked).toEqual([`GET ${at('a.example', '/a?b=1&action=edit&tag=x&tag=y+z')}`]);
    expect(pathsOf(site)).toEqual(['/a?b=1&action=edit&tag=x&tag=y+z']);
  });

  test('even if the caller changes its options while the verdict is pending', async () => {
    const { agent, judge, site, at } = await createScene();
    const options = { origin: at('a.example', ''), path: '/news', method: 'GET' as Dispatcher.HttpMethod, headers: {} };
    const ended = new Promise<void>((resolve, reject) => {
      agent.dispatch(options, {
        onRequestStart: () => {},
        onResponseStart: () => {},
        onResponseData: () => {},
        onResponseEnd: () => resolve(),
        onResponseError: (_controller, error) => reject(error),
      });
    });
    Object.assign(options, { method: 'DELETE', path: '/login', upgrade: 'websocket', headers: { host: 'b.example' } });
    await ended;
    expect(judge.asked).toEqual([`GET ${at('a.example', '/news')}`]);
    expect(site.reached).toEqual(['GET a.example /news']);
  });

  test('a path is sent as the URL standard parses it', async () => {
    const { judge, site, at } = await send({ path: '/docs/../%6cogin/./x\\y' }, () => 'allow');
    expect(judge.asked).toEqual([`GET ${at('a.example', '/%6cogin/x/y')}`]);
    expect(pathsOf(site)).toEqual(['/%6cogin/x/y']);
  });

  test.each([
    ['a path that is a URL of another host', { path: 'http://b.example/' }],
    ['a number sign in the path', { path: '/news#/../login' }],
    ['no path', { path: '' }],
    ['another scheme', { origin: 'ftp://a.example' }],
    ['an invalid origin', { origin: 'a.example' }],
  ])('%s is refused', async (_name, options) => {
    const { status, site, judge } = await send(options);
    expect(status).toBe('request_target');
    expect([...site.reached, ...judge.asked]).toEqual([]);
  });

  test.each([
    ['an object', { Host: 'b.example' }],
    ['a list', ['HOST', 'b.example']],
    ['an iterable', new Map([['host', 'b.example']])],
    ['a Headers', new Headers({ host: 'b.example' })],
    ['a list of values', { host: ['a.example', 'b.example'] }],
  ])('a Host header for another host is refused, given as %s', async (_name, headers) => {
    const { status, site, judge } = await send({ headers });
    expect(status).toBe('host_header');
    expect([...site.reached, ...judge.asked]).toEqual([]);
  });

  test.each(['X-Original-URL', 'x-rewrite-url'])('a header that names another URL, %s, is refused', async (name) => {
    const { status, site, judge } = await send({ headers: { [name]: '/login' } });
    expect(status).toBe('host_header');
    expect([...site.reached, ...judge.asked]).toEqual([]);
  });

  test('the correct Host header, and other headers in every form, arrive', async () => {
    for (const headers of [{ 'x-a': '1' }, ['x-a', '1'], new Map([['x-a', '1']]), new Headers({ 'x-a': '1' })]) {
      const { status, site } = await send({ headers });
      expect([status, site.headers[0]?.['x-a']]).toEqual([200, '1']);
    }
    const scene = await createScene();
    const headers = { host: `a.example:${scene.site.port}` };
    const options = { origin: scene.at('a.example', ''), path: '/', method: 'GET', headers } as const;
    expect((await scene.agent.request(options)).statusCode).toBe(200);
  });

  test.each([
    ['a name without a value', ['x-a', '1', 'x-b']],
    ['a pair', [['x-a', '1']]],
  ])('a list of headers that contains %s does not lead to a request without them', async (_name, headers) => {
    const scene = await createScene();
    const options = {
      origin: scene.at('a.example', ''),
      path: '/',
      method: 'GET',
      headers: headers as string[],
    } as const;
    await expect(scene.agent.request(options)).rejects.toMatchObject({ code: 'UND_ERR_INVALID_ARG' });
    expect([...scene.site.reached, ...scene.judge.asked]).toEqual([]);
  });

  test.each(['X-HTTP-Method-Override', 'x-method-override', 'X-HTTP-Method', 'X_HTTP-Method_Override'])(
    'a method in %s is judged as well',
    async (name) => {
      const judging: Judging = (_url, method) => (method === 'DELETE' ? 'deny' : 'allow');
      const { status, site, judge } = await send({ headers: { [name]: 'delete' } }, judging);
      expect(status).toBe('deny_id');
      expect(judge.asked.map((line) => line.split(' ')[0])).toEqual(['GET', 'DELETE']);
      expect(site.reached).toEqual([]);
    },
  );

  test('a body is not longer than its headers say, whatever options the agent gets', async () => {
    const { guard, site, at } = await createScene();
    const connect = { lookup: names({ 'a.example': ['127.0.0.1'] }) };
    const agent = new GuardedAgent(guard, { connect, strictContentLength: false } as object);
    closeLater(() => agent.destroy());
    const headers = { 'content-length': '0' };
    const body = 'DELETE /login HTTP/1.1\r\nHost: a.example\r\n\r\n';
    const sent = agent.request({ origin: at('a.example', ''), path: '/', method: 'POST', headers, body });
    await expect(sent).rejects.toMatchObject({ code: 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH' });
    expect(pathsOf(site)).not.toContain('/login');
  });

  test('a WebSocket is judged as a write', async () => {
    const server = createServer();
    const opened: string[] = [];
    server.on('upgrade', (request, socket) => {
      opened.push(request.url!);
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closeLater(() => void server.close());
    const { agent, judge } = await createScene();
    const { port } = server.address() as AddressInfo;
    for (const path of ['/chat', '/login']) {
      const socket = new WebSocket(`ws://a.example:${port}${path}`, { dispatcher: agent });
      await new Promise((resolve) => socket.addEventListener('close', resolve));
    }
    expect(opened).toEqual(['/chat']);
    expect(judge.asked).toEqual([`POST http://a.example:${port}/chat`, `POST http://a.example:${port}/login`]);
  });

  test.each([
    ['another method', 'DELETE', {}],
    ['a method in a header', 'GET', { 'x-http-method-override': 'DELETE' }],
  ])('an upgrade with %s is judged as both', async (_name, method, headers) => {
    const { agent, judge, site, at } = await createScene((_url, judged) => (judged === 'DELETE' ? 'deny' : 'allow'));
    const { origin } = new URL(at('a.example', '/'));
    const options = { origin, path: '/chat', method, headers, protocol: 'websocket' };
    await expect(agent.upgrade(options)).rejects.toMatchObject({ id: 'deny_id' });
    expect(judge.asked).toEqual(['POST', 'DELETE'].map((judged) => `${judged} ${origin}/chat`));
    expect(site.reached).toEqual([]);
  });
});
