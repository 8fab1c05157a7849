/** The whole path: agent → a proxy → its helper → a real pagegate with a real index → origin. */
import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../support/server.ts';
import { curlThrough, type Way } from './network/client.ts';
import { createInternet, hasNetwork, INSIDE, type Internet, PUBLIC } from './network/internet.ts';
import { createNames, type Names } from './network/names.ts';
import { startMitmproxy, startNginx, startSquid, startSquidBump } from './proxies.ts';
import { createWorld, put, through, type World } from './world.ts';

const ORIGIN = 'shop.example.com';
const UNKNOWN = 'unknown.example.org';
const ENTRIES = [
  {
    domain: ORIGIN,
    language: 'en',
    page_types: { login: `https://${ORIGIN}/members`, pricing: `https://${ORIGIN}/prices` },
  },
];

let pagegate: TestServer;
beforeAll(async () => {
  pagegate = await startTestServer({ entries: ENTRIES, accounts: { gateway: { plan: 'pro' } } });
});
afterAll(() => pagegate.stop());

const CASES: readonly (readonly [string, string, string, string, boolean])[] = [
  ['a read of a classified site', 'GET', ORIGIN, '/news', true],
  ['its verified pricing page', 'GET', ORIGIN, '/prices', true],
  ['its verified login page', 'GET', ORIGIN, '/members', false],
  ['below its login page, with a query', 'GET', ORIGIN, '/members/reset?x=1', false],
  ['its login page, encoded', 'GET', ORIGIN, '/%6dembers', false],
  ['a write', 'POST', ORIGIN, '/news', false],
  ['a site that is not classified', 'GET', UNKNOWN, '/', false],
];

describe('nginx', () => {
  let world: World;
  let gateway: number;
  beforeAll(async () => {
    world = await createWorld();
    put(world, 'api.key', `${pagegate.keys['gateway']}\n`, 0o600);
    ({ gateway } = await startNginx(world, pagegate.url, [ORIGIN, UNKNOWN]));
  });
  afterAll(() => world.close());
  beforeEach(() => {
    world.reached.length = 0;
  });

  test.each(CASES)('%s', async (_name, method, host, path, passes) => {
    const { status } = await through(gateway, method, path, { host });
    expect(status).toBe(passes ? 200 : 403);
    expect(world.reached).toEqual(passes ? [`${method} ${host} ${path}`] : []);
  });
});

// The rules deny ports other than 80 and 443, which only root may use.
describe.runIf(process.getuid?.() === 0)('Squid', () => {
  const ADDRESS = '127.0.0.77';
  const reached: string[] = [];
  let world: World;
  let origin: Server;
  let proxy: number;
  beforeAll(async () => {
    world = await createWorld();
    put(world, 'api.key', `${pagegate.keys['gateway']}\n`, 0o600);
    origin = createServer((request, response) => {
      reached.push(`${request.method} ${request.headers.host} ${request.url}`);
      response.end('origin');
    });
    await new Promise<void>((resolve) => origin.listen(80, ADDRESS, resolve));
    proxy = await startSquid(world, pagegate.url, { [ORIGIN]: ADDRESS, [UNKNOWN]: ADDRESS });
  });
  afterAll(async () => {
    origin.closeAllConnections();
    origin.close();
    await world.close();
  });
  beforeEach(() => {
    reached.length = 0;
  });

  test.each(CASES)('%s', async (_name, method, host, path, passes) => {
    const { status } = await through(proxy, method, `http://${host}${path}`, { host });
    expect(status).toBe(passes ? 200 : 403);
    expect(reached).toEqual(passes ? [`${method} ${host} ${path}`] : []);
  });
});

/** A world with the gateway's key and names with addresses of the test's sites. Opened before all tests of a block, closed after them. */
function useWorld(pages?: Parameters<typeof createInternet>[1]) {
  const opened = {} as { world: World; names: Names; internet: Internet };
  beforeAll(async () => {
    opened.world = await createWorld();
    put(opened.world, 'api.key', `${pagegate.keys['gateway']}\n`, 0o600);
    opened.names = await createNames({ [ORIGIN]: PUBLIC, [UNKNOWN]: PUBLIC });
    opened.internet = await createInternet(opened.world.folder, pages);
  });
  afterAll(async () => {
    await opened.world?.close();
    await opened.internet?.close();
    await opened.names?.close();
  });
  beforeEach(() => {
    opened.internet.reached.length = 0;
    opened.internet.inside.length = 0;
  });
  return opened;
}

describe.runIf(hasNetwork).each([
  ['Squid with TLS opened', startSquidBump],
  ['mitmproxy', startMitmproxy],
])('%s', (_name, start) => {
  const opened = useWorld();
  let proxy: Way;
  beforeAll(async () => {
    proxy = await start(opened.world, pagegate.url, opened.internet.caFile);
  });

  test.each(CASES)('%s', async (_case, method, host, path, passes) => {
    for (const scheme of ['https', 'http']) {
      opened.internet.reached.length = 0;
      const { status, body } = await curlThrough(proxy, '-X', method, `${scheme}://${host}${path}`);
      expect(status).toBe(passes ? 200 : 403);
      expect(opened.internet.reached).toEqual(passes ? [`${method} ${scheme}://${host}${path}`] : []);
      if (!passes)
        expect(body).toMatch(/pagegate refused .*(?:deny|flag) \((?:page_type_db|rules|default)\/\w+\)[:.] \w/);
    }
  });
});

describe.runIf(hasNetwork)('the guard for Python', () => {
  const program = fileURLToPath(new URL('python/open_url.py', import.meta.url));
  const opened = useWorld({
    '/away': (_request, response) => response.writeHead(302, { location: `https://${ORIGIN}/members` }).end(),
  });

  const open = (method: string, url: string): Promise<string> =>
    new Promise((resolve) => {
      const words = [program, pagegate.url, opened.world.keyFile, opened.internet.caFile, method, url];
      execFile('/usr/bin/python3', words, (_error, stdout) => resolve(stdout));
    });

  test.each(CASES)('%s', async (_case, method, host, path, passes) => {
    const output = await open(method, `https://${host}${path}`);
    expect(output).toMatch(
      passes ? /^200 / : /^refused pagegate refused [A-Z]+ https:\S+: (?:deny|flag) \(\w+\/\w+\)\. \w/,
    );
    expect(opened.internet.reached).toEqual(passes ? [`${method} https://${host}${path}`] : []);
  });

  test('a redirect to a login page, and a name with an internal address', async () => {
    expect(await open('GET', `https://${ORIGIN}/away`)).toContain('deny (page_type_db/login)');
    expect(opened.internet.reached).toEqual([`GET https://${ORIGIN}/away`]);
    for (const address of INSIDE) {
      opened.names.set(ORIGIN, address);
      expect(await open('GET', `https://${ORIGIN}/news`), address).toContain('deny (guard/inside_address)');
    }
    opened.names.set(ORIGIN, PUBLIC);
    expect(opened.internet.inside).toEqual([]);
  });
});
