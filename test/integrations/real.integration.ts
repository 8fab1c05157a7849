/** The whole way: agent → Squid or nginx → helper → a real pagegate with a real index → origin. */
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../support/server.ts';
import { startNginx, startSquid } from './proxies.ts';
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

// Rules deny ports other than 80 and 443, and only root may listen there.
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
