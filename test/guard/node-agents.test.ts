/** Requests of `node:http` and `node:https` through the guarded agents. Each is judged by the headers that are sent, on any connection. */
import { once } from 'node:events';
import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type LookupFunction } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { createGuardedAgents, type GuardedAgentsOptions } from '../../src/guard/node-agents.ts';
import { RefusedError } from '../../src/guard/refusal.ts';
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

/** A site behind both names, and agents that permit its address. */
async function createScene(judging: Judging = allowBut('/login'), options: GuardedAgentsOptions = {}) {
  const site = await createSite(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    response.end(`${request.method} ${request.url} ${body}`);
  });
  const judge = await createJudge(judging);
  const { guard, seen } = createGuard(judge.url, { exceptions: EXCEPTIONS });
  const agents = createGuardedAgents(guard, { lookup: LOOKUP, ...options });
  closeLater(() => {
    agents.http.destroy();
    agents.https.destroy();
  });
  const at = (path: string, host = 'a.example') => `http://${host}:${site.port}${path}`;
  /** Starts a request to the site with these options. */
  const begin = (requestOptions: RequestOptions = {}) =>
    http.request({ host: 'a.example', port: site.port, agent: agents.http, ...requestOptions });
  return { site, judge, guard, seen, agents, at, begin };
}

/** Returns the outcome of a request: status and body, the refusal's id, or the error. */
async function outcomeOf(request: ClientRequest): Promise<string> {
  try {
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage];
    return `${response.statusCode} ${(await response.setEncoding('utf8').toArray()).join('')}`;
  } catch (error) {
    return error instanceof RefusedError ? error.id : String(error);
  }
}

describe('createGuardedAgents', () => {
  test('makes an allowed request, and looks up exactly that', async () => {
    const { agents, judge, site, at } = await createScene();
    expect(await outcomeOf(http.get(at('/news?q=%41'), { agent: agents.http }))).toBe('200 GET /news?q=%41 ');
    expect(judge.asked).toEqual([`GET ${at('/news?q=%41')}`]);
    expect(site.reached).toEqual(['GET a.example /news?q=%41']);
  });

  test('fails a refused request with the refusal itself, ends it, and sends nothing', async () => {
    const { begin, site, seen } = await createScene();
    const request = begin({ path: '/login' });
    const closed = new Promise((resolve) => request.on('close', resolve));
    const [error] = await once(request.on('error', () => {}).end(), 'close').catch((reason) => [reason]);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({ verdict: 'deny', id: 'deny_id', code: 'PAGEGATE_REFUSED' });
    await closed;
    expect(site.reached).toEqual([]);
    expect(seen).toMatchObject([{ verdict: 'deny', method: 'GET' }]);
  });

  test('judges each request on a kept-alive connection', async () => {
    const { begin, agents, site, judge } = await createScene();
    const sockets = new Set<unknown>();
    for (const path of ['/one', '/login', '/two']) {
      const request = begin({ path });
      request.on('socket', (socket) => sockets.add(socket));
      await outcomeOf(request);
    }
    expect(pathsOf(site)).toEqual(['/one', '/two']);
    expect(judge.asked).toHaveLength(3);
    expect(sockets.size).toBe(1);
    expect(Object.keys(agents.http.freeSockets)).toHaveLength(1);
  });

  test('sends bodies unchanged, with the length that Node.js determines', async () => {
    const { begin, site } = await createScene();
    const whole = begin({ method: 'POST' });
    whole.end('text');
    expect(await outcomeOf(whole)).toBe('200 POST / text');
    const streamed = begin({ method: 'PUT', headers: { 'content-length': '6' } });
    streamed.write('abc');
    await sleep(20);
    streamed.write('def');
    expect(await outcomeOf(streamed)).toBe('200 PUT / abcdef');
    const expecting = begin({ method: 'POST', headers: { expect: '100-continue' } });
    await once(expecting, 'continue');
    expecting.write('later');
    expect(await outcomeOf(expecting)).toBe('200 POST / later');
    expect(site.headers.map((headers) => headers['content-length'])).toEqual(['4', '6', undefined]);
  });

  test('respects the maximum number of connections', async () => {
    const { begin, site } = await createScene(() => 'allow', { maxSockets: 1 });
    const sockets = new Set<unknown>();
    const outcomes = ['/1', '/2', '/3'].map((path) => {
      const request = begin({ path });
      request.on('socket', (socket) => sockets.add(socket));
      return outcomeOf(request);
    });
    expect(await Promise.all(outcomes)).toEqual(['200 GET /1 ', '200 GET /2 ', '200 GET /3 ']);
    expect([site.reached.length, sockets.size]).toEqual([3, 1]);
  });

  test.each(['fd', 'handle', 'host', 'port', 'path', 'proxyEnv', 'servername', 'socket', 'socketPath', 'protocol'])(
    'refuses the option %s, which would send requests elsewhere',
    async (name) => {
      const { guard } = await createScene();
      expect(() => createGuardedAgents(guard, { [name]: 'x' })).toThrow(`${name}: requests would go past the guard`);
    },
  );

  test('accepts only a guard', () => {
    for (const none of [undefined, {}]) expect(() => createGuardedAgents(none as never)).toThrow(/^guard: /);
  });

  test('used as the global agents it gets every request, even one with a plain agent of its own', async () => {
    const { agents, site, at } = await createScene();
    const before = [http.globalAgent, https.globalAgent] as const;
    http.globalAgent = agents.http;
    https.globalAgent = agents.https;
    try {
      for (const options of [{}, { agent: false }] as const) {
        expect(await outcomeOf(http.get(at('/news'), options))).toBe('200 GET /news ');
        expect(await outcomeOf(http.get(at('/login'), options))).toBe('deny_id');
        expect(await outcomeOf(https.get('https://127.0.0.1/', options))).toBe('inside_address');
      }
    } finally {
      [http.globalAgent, https.globalAgent] = before;
    }
    expect(pathsOf(site)).toEqual(['/news', '/news']);
  });
});

describe('the headers are judged as they are sent', () => {
  test('with changes made after the request was created', async () => {
    const { begin, judge, site } = await createScene((_url, method) => (method === 'DELETE' ? 'deny' : 'allow'));
    const later = async (change: (request: ClientRequest) => void, waitMs = 0) => {
      const request = begin();
      if (waitMs > 0) await sleep(waitMs);
      change(request);
      return outcomeOf(request);
    };
    expect(await later((request) => request.setHeader('X-HTTP-Method-Override', 'delete'))).toBe('deny_id');
    expect(await later((request) => request.setHeader('X_Method_Override', 'delete'), 20)).toBe('deny_id');
    expect(await later((request) => request.setHeader('Host', 'b.example'), 20)).toBe('host_header');
    expect(await later((request) => request.setHeader('X-Original-URL', '/login'))).toBe('host_header');
    expect(await later((request) => request.removeHeader('Host'))).toBe('host_header');
    expect(await later((request) => Object.assign(request, { method: 'DELETE' }), 20)).toBe('deny_id');
    expect(site.reached).toEqual([]);
    expect(judge.asked).toContain(`DELETE http://a.example:${site.port}/`);
    expect(await later((request) => request.setHeader('X-A', '1'), 20)).toBe('200 GET / ');
  });

  test.each([
    ['a list', ['Host', 'b.example']],
    ['two of them', ['Host', 'a.example', 'Host', 'b.example']],
    ['none', ['X-A', '1']],
    ['an object', { host: 'b.example' }],
    ['an object that expects to go on', { host: 'b.example', expect: '100-continue' }],
  ])('with a Host header for another host, given as %s', async (_name, headers) => {
    const { begin, judge, site } = await createScene();
    expect(await outcomeOf(begin({ headers } as RequestOptions))).toBe('host_header');
    expect([...site.reached, ...judge.asked]).toEqual([]);
  });

  test.each([
    ['/docs/../login', 'ambiguous_path'],
    ['/docs/%2e%2E/login', 'ambiguous_path'],
    ['/docs\\..\\login', 'ambiguous_path'],
    ['/news#/../login', 'request_target'],
    ['/l\xf6gin', 'request_target'],
    ['http://b.example/', 'request_target'],
    ['*', 'request_target'],
  ])('with the path %s', async (path, id) => {
    const { begin, judge, site } = await createScene(() => 'allow');
    expect(await outcomeOf(begin({ path }))).toBe(id);
    expect([...site.reached, ...judge.asked]).toEqual([]);
  });

  test.each(['/?', '//b.example/', `/a'b"<c>{d}|^\`?e='f'"<>`, '/%2e%2e%2flogin', '/?a=/../b\\c'])(
    'with the path %s, which is sent unchanged',
    async (path) => {
      const { begin, judge, site, at } = await createScene(() => 'allow');
      expect(await outcomeOf(begin({ path }))).toBe(`200 GET ${path} `);
      expect(pathsOf(site)).toEqual([path]);
      expect(judge.asked).toEqual([`GET ${new URL(at(path)).href}`]);
    },
  );

  test('with the method CONNECT, which has no URL', async () => {
    const { begin, site } = await createScene(() => 'allow');
    expect(await outcomeOf(begin({ method: 'CONNECT', path: 'b.example:443' }))).toBe('request_target');
    expect(site.reached).toEqual([]);
  });

  test('with an upgrade, which is judged as a write', async () => {
    const server = http.createServer();
    const opened: string[] = [];
    server.on('upgrade', (request, socket) => {
      opened.push(request.url!);
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    closeLater(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { begin, judge } = await createScene();
    const headers = { connection: 'Upgrade', upgrade: 'websocket' };
    await once(begin({ port, path: '/chat', headers }).end(), 'upgrade');
    expect(await outcomeOf(begin({ port, path: '/login', headers }))).toBe('deny_id');
    expect(opened).toEqual(['/chat']);
    expect(judge.asked).toEqual(['/chat', '/login'].map((path) => `POST http://a.example:${port}${path}`));
  });
});

describe('a body cannot become a second request', () => {
  const SMUGGLED = 'DELETE /login HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n';
  type Begin = (request: ClientRequest) => unknown;
  const withoutLength: Begin = (request) => {
    request.removeHeader('content-length');
    request.removeHeader('transfer-encoding');
  };
  const post = (headers: RequestOptions['headers']): RequestOptions => ({ method: 'POST', headers: headers ?? {} });
  interface Case {
    readonly expected: string;
    readonly options: RequestOptions;
    readonly begin?: Begin;
  }
  const CASES: readonly (readonly [string, Case])[] = [
    ['a GET that ends with it', { expected: '200', options: {} }],
    ['a DELETE that ends with it', { expected: '200', options: { method: 'DELETE' } }],
    ['a GET that streams it', { expected: '200', options: {}, begin: (request) => request.write('x') }],
    [
      'a GET whose head was sent',
      { expected: 'says no length', options: {}, begin: (request) => request.flushHeaders() },
    ],
    ['a GET with a list of headers', { expected: 'says no length', options: { headers: ['Host', ''] } }],
    ['a POST without a length', { expected: 'says no length', options: { method: 'POST' }, begin: withoutLength }],
    ['a POST with a smaller length', { expected: 'says 0 bytes', options: post({ 'content-length': '0' }) }],
    ['a POST with a larger length', { expected: 'says 999 bytes', options: post({ 'content-length': '999' }) }],
    ['a POST with a list for a length', { expected: 'says no length', options: post({ 'content-length': '0, 62' }) }],
    [
      'a POST with a number that some read',
      { expected: 'says no length', options: post({ 'content-length': '0x3e' }) },
    ],
    [
      'a POST with two lengths',
      { expected: 'two lengths', options: post({ 'content-length': '3', 'transfer-encoding': 'chunked' }) },
    ],
    [
      'a POST with another coding',
      { expected: 'another way than', options: post({ 'transfer-encoding': 'identity' }) },
    ],
  ];

  test.each(CASES)('%s', async (_name, { expected, options, begin }) => {
    const { begin: start, site } = await createScene();
    const headers = Array.isArray(options.headers) ? ['Host', `a.example:${site.port}`] : options.headers;
    const request = start({ ...options, ...(headers !== undefined && { headers }) });
    begin?.(request);
    const outcome = await new Promise<string>((resolve) => {
      request.on('response', (response) => resolve(`${response.resume().statusCode}`));
      request.on('error', (error) => resolve(error.message)).end(SMUGGLED);
    });
    expect(outcome).toContain(expected);
    expect(site.reached.filter((line) => line.includes('/login'))).toEqual([]);
  });

  test('other mistakes throw as usual', async () => {
    const { begin } = await createScene();
    const request = begin({ method: 'POST' });
    expect(() => request.write(5 as never)).toThrow(TypeError);
    expect(await outcomeOf(request)).toBe('200 POST / ');
  });
});

describe('a connection', () => {
  const inside: LookupFunction = (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]);

  test('to a name with an internal address is refused, whichever resolver is used', async () => {
    const { site, judge, guard } = await createScene(() => 'allow');
    const seen: Record<string, string> = {};
    for (const [name, agentLookup, lookup] of [
      ['agent', inside, undefined],
      ['request', undefined, inside],
    ] as const) {
      const agents = createGuardedAgents(guard, agentLookup && { lookup: agentLookup });
      const request = http.request({
        host: 'c.example',
        port: site.port,
        agent: agents.http,
        ...(lookup && { lookup }),
      });
      seen[name] = await outcomeOf(request);
    }
    expect(seen).toEqual({ agent: 'inside_address', request: 'inside_address' });
    const agents = createGuardedAgents(guard);
    expect(await outcomeOf(http.get(`http://localhost:${site.port}/`, { agent: agents.http }))).toBe('inside_address');
    expect(judge.asked).toHaveLength(2);
    expect(site.reached).toEqual([]);
  });

  test.each(['http://127.0.0.1', 'http://[::1]', 'http://[::ffff:127.0.0.1]', 'http://0x7f.1', 'http://2130706433'])(
    'to %s, an address instead of a name, is refused',
    async (origin) => {
      const { site, agents } = await createScene(() => 'allow');
      expect(await outcomeOf(http.get(`${origin}:${site.port}/`, { agent: agents.http }))).toBe('inside_address');
      expect(site.reached).toEqual([]);
    },
  );

  test('is closed before anything is sent if its socket has another address than was resolved', async () => {
    const arrived: string[] = [];
    const server = createTcpServer((socket) => socket.on('data', (data) => arrived.push(data.toString('latin1'))));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    closeLater(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { guard } = await createScene(() => 'allow');
    const agents = createGuardedAgents(guard, { lookup: LOOKUP });
    for (const client of [http, https] as const) {
      const agent = client === http ? agents.http : agents.https;
      // First the resolved address, then the one of the socket.
      vi.spyOn(guard.addresses, 'permits').mockReturnValueOnce(true).mockReturnValueOnce(false);
      expect(await outcomeOf(client.request({ host: 'a.example', port, agent }))).toBe('inside_address');
    }
    expect(arrived).toEqual([]);
  });

  test('goes to the host of the judged URL, whatever else a request names', async () => {
    const elsewhere = await createSite((_request, response) => void response.end('elsewhere'));
    const { begin, site } = await createScene();
    const socket = connect(elsewhere.port, '127.0.0.1');
    closeLater(() => void socket.destroy());
    const createConnection = () => socket;
    for (const given of [{ socket }, { createConnection }, { fd: 0 }, { handle: {} }]) {
      expect(await outcomeOf(begin({ path: '/x', ...given } as RequestOptions))).toBe('200 GET /x ');
    }
    expect(await outcomeOf(begin({ defaultPort: site.port }))).toBe('host_header');
    expect(await outcomeOf(begin({ socketPath: join('/tmp', 'nowhere.sock') }))).toBe('request_target');
    expect(elsewhere.reached).toEqual([]);
  });

  test('over TLS is verified against the judged name', async () => {
    const { certificate, key } = createCertificate('localhost');
    const wanted = new Set<string>();
    const SNICallback = (name: string, found: (error: null) => void): void => {
      wanted.add(name);
      found(null);
    };
    const server = https.createServer({ cert: certificate, key, SNICallback }, (_request, response) => {
      response.end('secure');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    closeLater(() => void server.close());
    const judge = await createJudge(allowBut('/login'));
    const { guard } = createGuard(judge.url, { exceptions: { localhost: '127.0.0.1', 'other.example': '127.0.0.1' } });
    const lookup = names({ localhost: ['127.0.0.1'], 'other.example': ['127.0.0.1'] });
    const { https: agent } = createGuardedAgents(guard, { ca: certificate, lookup });
    closeLater(() => agent.destroy());
    const { port } = server.address() as AddressInfo;
    const get = (host: string, options = {}) => outcomeOf(https.get(`https://${host}:${port}/`, { agent, ...options }));
    expect(await get('localhost')).toBe('200 secure');
    expect(await get('localhost', { servername: 'other.example' })).toBe('200 secure');
    expect(await get('other.example')).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
    expect(await get('other.example', { servername: 'localhost' })).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
    expect(await get('localhost', { path: '/login' })).toBe('deny_id');
    expect(judge.asked[0]).toBe(`GET https://localhost:${port}/`);
    expect([...wanted]).toEqual(['localhost', 'other.example']);
  });
});

describe('a request that fails', () => {
  test('because of an invalid option, or a hook that throws, does not affect others', async () => {
    const { begin, guard } = await createScene(() => 'allow');
    const { https: agent } = createGuardedAgents(guard, { ciphers: 'none', lookup: LOOKUP });
    expect(await outcomeOf(https.get('https://a.example/', { agent }))).toContain('no cipher match');
    vi.spyOn(guard, 'enforce').mockRejectedValueOnce(new Error('no space'));
    expect(await outcomeOf(begin())).toBe('Error: no space');
    expect(await outcomeOf(begin())).toBe('200 GET / ');
  });
});

describe('a request that is destroyed', () => {
  test('ends at once, before its headers are complete, and while its verdict is pending', async () => {
    let answer: (() => void) | undefined;
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    // No verdict arrives.
    const { begin, site } = await createScene(() => void answer?.());
    const early = begin();
    early.destroy();
    await expect(once(early, 'close')).rejects.toMatchObject({ code: 'ECONNRESET' });
    const aborter = new AbortController();
    const late = begin({ signal: aborter.signal });
    late.end();
    await asked;
    aborter.abort();
    await expect(once(late, 'close')).rejects.toMatchObject({ name: 'AbortError' });
    expect(late.destroyed).toBe(true);
    expect(site.reached).toEqual([]);
  });

  test('after its verdict ends like any other', async () => {
    const { begin } = await createScene();
    const request = begin();
    request.end();
    await once(request, 'socket');
    const error = new Error('enough');
    request.destroy(error);
    await expect(once(request, 'close')).rejects.toBe(error);
  });
});
