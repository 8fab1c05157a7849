/** Known ways around such a guard. None works. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createGuardedFetch, GuardedAgent } from '../../src/guard/fetch.ts';
import { RefusedError } from '../../src/guard/refusal.ts';
import { createCertificate } from '../../tools/certificate.ts';
import { answerOf, closeLater, createDns, createGuard, createJudge, createSite, KEY, names } from './support.ts';

/** A guard whose pagegate allows everything, so that only the guard's own checks refuse. */
async function createScene(lookup: Parameters<typeof createScope>[1], exceptions = {}) {
  const judge = await createJudge(() => 'allow');
  return { judge, ...createScope(createGuard(judge.url, { exceptions }), lookup) };
}

function createScope(
  { guard, seen }: ReturnType<typeof createGuard>,
  lookup: NonNullable<ConstructorParameters<typeof GuardedAgent>[1]>['connect'],
) {
  const agent = new GuardedAgent(guard, { connect: { ...lookup }, pipelining: 0 });
  closeLater(() => agent.destroy());
  return { guard, seen, agent, guardedFetch: createGuardedFetch(guard, agent) };
}

/** A port that no request may reach. */
async function createTrap(): Promise<{ port: number; connections: string[] }> {
  const connections: string[] = [];
  const server = createTcpServer((socket) => {
    connections.push(socket.remoteAddress ?? '');
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closeLater(() => void server.close());
  return { port: (server.address() as { port: number }).port, connections };
}

const refusalOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'passed',
    (error) => (error instanceof RefusedError ? error.id : error),
  );

describe('a name with an internal address', () => {
  test.each([
    ['loopback', '127.0.0.1'],
    ['a metadata service', '169.254.169.254'],
    ['a private network', '10.0.0.1'],
    ['loopback of IPv6', '::1'],
    ['IPv4-mapped loopback', '::ffff:127.0.0.1'],
    ['IPv4-mapped metadata', '::ffff:a9fe:a9fe'],
    ['NAT64', '64:ff9b::7f00:1'],
    ['6to4', '2002:7f00:1::'],
    ['a unique local address', 'fd00::1'],
    ['this host', '0.0.0.0'],
  ])('%s is refused at the connection, before a packet is sent', async (_name, address) => {
    const { guardedFetch, seen } = await createScene({ lookup: names({ 'name.example': [address] }) });
    expect(await refusalOf(guardedFetch('http://name.example/'))).toBe('inside_address');
    expect(seen.map(({ verdict, layer, id }) => `${verdict} ${layer}/${id}`)).toEqual([
      'allow rules/allow_id',
      'deny guard/inside_address',
    ]);
    expect(seen[1]?.note).toContain(`name.example is ${address}`);
  });

  test('is also refused if it has a public address, too', async () => {
    const site = await createSite((_request, response) => void response.end('inside'));
    const lookup = (_name: string, _options: object, found: (error: null, all: object[]) => void) =>
      found(null, [
        { address: '93.184.216.34', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ]);
    const { guardedFetch } = await createScene({ lookup: lookup as never });
    expect(await refusalOf(guardedFetch(`http://name.example:${site.port}/`))).toBe('inside_address');
    expect(site.reached).toEqual([]);
  });

  test.each([
    'http://127.0.0.1',
    'http://[::1]',
    'http://[::ffff:127.0.0.1]',
    'http://2130706433',
    'http://0x7f.1',
    'http://0177.1',
  ])('%s, an address instead of a name, is refused even if pagegate allowed it', async (origin) => {
    const site = await createSite((_request, response) => void response.end('inside'));
    const judge = await createJudge(() => 'allow');
    const { guardedFetch } = createScope(createGuard(judge.url), {});
    expect(await refusalOf(guardedFetch(`${origin}:${site.port}/`))).toBe('inside_address');
    expect(site.reached).toEqual([]);
  });

  test("is also detected with the system's resolver", async () => {
    const site = await createSite((_request, response) => void response.end('inside'));
    const { guardedFetch } = await createScene({});
    expect(await refusalOf(guardedFetch(`http://localhost:${site.port}/`))).toBe('inside_address');
    expect(site.reached).toEqual([]);
  });
});

describe('rebinding', () => {
  test('a name that first has a public address and then loopback reaches nothing internal', async () => {
    const OUTSIDE = '127.0.0.2';
    const outside = await createSite((_request, response) => {
      response.setHeader('connection', 'close');
      response.end('outside');
    }, OUTSIDE);
    const inside = await createSite((_request, response) => void response.end('inside'), '127.0.0.1', outside.port);
    const lookup = await createDns({ 'rebind.example': [OUTSIDE, '127.0.0.1'] });
    // This address stands for a public one; the rest of loopback is not excepted.
    const { guardedFetch, judge } = await createScene({ lookup }, { 'rebind.example': OUTSIDE });
    const url = `http://rebind.example:${outside.port}/`;
    expect(await (await guardedFetch(url)).text()).toBe('outside');
    expect(await refusalOf(guardedFetch(url))).toBe('inside_address');
    expect(await refusalOf(guardedFetch(url))).toBe('inside_address');
    expect(outside.reached).toHaveLength(1);
    expect(inside.reached).toEqual([]);
    expect(judge.asked).toHaveLength(1);
  });

  test('the checked address is the one connected to: a name is resolved once', async () => {
    const site = await createSite((_request, response) => void response.end('site'), '127.0.0.3');
    let asked = 0;
    const lookup = (_name: string, _options: object, found: (error: null, all: object[]) => void) => {
      asked += 1;
      found(null, [{ address: asked === 1 ? '127.0.0.3' : '127.0.0.1', family: 4 }]);
    };
    const { guardedFetch } = await createScene({ lookup: lookup as never }, { 'rebind.example': '127.0.0.3' });
    expect(await (await guardedFetch(`http://rebind.example:${site.port}/`)).text()).toBe('site');
    expect(asked).toBe(1);
  });

  test('the socket itself is checked, whatever the lookup returned: a Unix socket in its place is refused', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pagegate-guard-'));
    closeLater(() => rmSync(folder, { recursive: true }));
    const reached: string[] = [];
    const site = createServer((request, response) => {
      reached.push(request.url!);
      response.end('inside');
    });
    await new Promise<void>((resolve) => site.listen(join(folder, 'site.sock'), resolve));
    closeLater(() => void site.close());
    const { guardedFetch } = await createScene({ socketPath: join(folder, 'site.sock') } as never);
    expect(await refusalOf(guardedFetch('http://a.example/'))).toBe('inside_address');
    expect(reached).toEqual([]);
  });
});

describe('a site that redirects the client by other means', () => {
  test('by alt-svc is ignored', async () => {
    const { port, connections } = await createTrap();
    const site = await createSite((_request, response) => {
      response.setHeader('alt-svc', `h2="127.0.0.1:${port}"; ma=3600, h3=":${port}"; ma=3600, http/1.1=":${port}"`);
      response.setHeader('connection', 'close');
      response.end('site');
    });
    const { guardedFetch } = await createScene(
      { lookup: names({ 'a.example': ['127.0.0.1'] }) },
      { 'a.example': '127.0.0.1' },
    );
    for (let i = 0; i < 3; i++)
      expect(await (await guardedFetch(`http://a.example:${site.port}/`)).text()).toBe('site');
    expect(site.reached).toHaveLength(3);
    expect(connections).toEqual([]);
  });

  test.each([
    ['a refresh header', { refresh: '0; url=/login' }, ''],
    ['meta refresh', {}, '<meta http-equiv="refresh" content="0; url=/login">'],
    ['a script', {}, '<script>location = "/login"</script>'],
    ['a link header', { link: '</login>; rel=preload; as=document' }, ''],
  ])('by %s: only the page itself is fetched', async (_name, headers, body) => {
    const site = await createSite((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body);
    });
    const { guardedFetch, judge } = await createScene(
      { lookup: names({ 'a.example': ['127.0.0.1'] }) },
      { 'a.example': '127.0.0.1' },
    );
    expect(await (await guardedFetch(`http://a.example:${site.port}/`)).text()).toBe(body);
    expect(site.reached).toHaveLength(1);
    expect(judge.asked).toHaveLength(1);
  });
});

describe('a proxy in the environment', () => {
  const SCRIPT = `
    import { createGuardedFetch, GuardedAgent } from '${new URL('../../src/guard/fetch.ts', import.meta.url)}';
    import { Guard } from '${new URL('../../src/guard/guard.ts', import.meta.url)}';
    const [server, site] = process.argv.slice(1);
    const guard = new Guard({ server, key: '${KEY}', exceptions: { 'a.example': '127.0.0.1' } });
    const lookup = (name, options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]);
    const guardedFetch = createGuardedFetch(guard, new GuardedAgent(guard, { connect: { lookup } }));
    const response = await guardedFetch('http://a.example:' + site + '/news');
    console.log(await response.text());
    process.exit(0);
  `;

  test('gets neither the key nor the lookup nor the request', async () => {
    const proxy = await createTrap();
    const site = await createSite((_request, response) => void response.end('site'));
    const judge = await createJudge(() => 'allow');
    const url = `http://127.0.0.1:${proxy.port}`;
    const env = Object.fromEntries(
      ['http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].map((name) => [name, url]),
    );
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '--no-warnings', '--eval', SCRIPT, judge.url, `${site.port}`],
      { env: { ...process.env, ...env, NODE_USE_ENV_PROXY: '1', no_proxy: '', NO_PROXY: '' } },
    );
    expect(stdout).toBe('site\n');
    expect(proxy.connections).toEqual([]);
    expect(judge.asked).toEqual([`GET http://a.example:${site.port}/news`]);
    expect(site.reached).toEqual(['GET a.example /news']);
  });
});

describe('an untrusted certificate', () => {
  test('is refused, whatever the environment says; a configured one is accepted', async () => {
    const { certificate, key } = createCertificate('pagegate');
    const keys: unknown[] = [];
    const server = createTlsServer({ cert: certificate, key }, (request, response) => {
      keys.push(request.headers['x-api-key']);
      response.end(JSON.stringify(answerOf('https://a.example/', 'allow')));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closeLater(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `https://127.0.0.1:${(server.address() as { port: number }).port}`;
    const script = `
      import { Guard } from '${new URL('../../src/guard/guard.ts', import.meta.url)}';
      const [server, ca] = process.argv.slice(1);
      const guard = new Guard({ server, key: '${KEY}', ...(ca && { ca }) });
      console.log((await guard.check('https://a.example/')).id);
      process.exit(0);
    `;
    const run = async (...args: string[]) => {
      const env = { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '0' };
      const flags = ['--input-type=module', '--no-warnings', '--eval', script, url];
      return (await promisify(execFile)(process.execPath, [...flags, ...args], { env })).stdout.trim();
    };
    expect(await run()).toBe('unreachable');
    expect(keys).toEqual([]);
    expect(await run(certificate)).toBe('allow_id');
    expect(keys).toEqual([KEY]);
  });
});

describe('the key', () => {
  test('reaches pagegate only: no site, redirect, refusal or log line contains it', async () => {
    const lines: string[] = [];
    const site = await createSite((request, response) => {
      if (request.url === '/302') response.writeHead(302, { location: '/login' }).end();
      else response.end('site');
    });
    const judge = await createJudge((url) => (url.endsWith('/login') ? 'deny' : 'allow'));
    const { guard, seen } = createGuard(judge.url, {
      exceptions: { 'a.example': '127.0.0.1' },
      log: (line) => void lines.push(line),
      logFullUrl: true,
    });
    const { guardedFetch } = createScope({ guard, seen }, { lookup: names({ 'a.example': ['127.0.0.1'] }) });
    await guardedFetch(`http://a.example:${site.port}/`);
    const refused = await guardedFetch(`http://a.example:${site.port}/302`).catch((error) => error);
    expect(JSON.stringify([site.headers, site.reached, seen, lines, refused, String(refused.stack)])).not.toContain(
      KEY,
    );
    expect(judge.headers.every((headers) => headers['x-api-key'] === KEY)).toBe(true);
  });
});
