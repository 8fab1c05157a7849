/** The proxy that opens TLS, on Debian's mitmproxy, as shipped: real names, real ports, real certificates, a network of its own. */
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createBrowser } from './network/browser.ts';
import { curlThrough, get, type Result, speak, type Way } from './network/client.ts';
import {
  createInternet,
  hasNetwork,
  INSIDE,
  type Internet,
  PUBLIC,
  PUBLIC_TOO,
  PUBLIC_V6,
} from './network/internet.ts';
import { createNames, type Names } from './network/names.ts';
import {
  atHome,
  createTourJudge,
  HOME,
  JUDGED,
  type Report,
  STATUSES,
  tourPages,
  until,
  wronglyReached,
} from './network/tour.ts';
import { startMitmproxy } from './proxies.ts';
import { createJudge, createWorld, type Judge, put, verdict, type World } from './world.ts';

describe.runIf(hasNetwork)('mitmproxy', () => {
  let world: World;
  let judge: Judge;
  let names: Names;
  let internet: Internet;
  let proxy: Way;
  let report: Report = {};
  beforeAll(async () => {
    world = await createWorld();
    put(world, 'api.key', 'pg_test\n', 0o600);
    names = await createNames({ 'good.example.com': PUBLIC, 'denied.example.com': PUBLIC_TOO });
    internet = await createInternet(
      world.folder,
      tourPages((seen) => {
        report = seen;
      }),
    );
    judge = await createTourJudge();
    proxy = await startMitmproxy(world, `http://127.0.0.1:${judge.port}`, internet.caFile);
  });
  afterAll(async () => {
    await judge?.close();
    await world?.close();
    await internet?.close();
    await names?.close();
  });
  beforeEach(() => {
    internet.reached.length = 0;
    internet.inside.length = 0;
    judge.asked.length = 0;
    names.asked.length = 0;
  });

  const curl = (...words: string[]): Promise<Result> => curlThrough(proxy, ...words);

  describe('a browser on its tour', () => {
    let asked: string[];
    let reached: string[];
    let inside: string[];
    beforeAll(async () => {
      const browser = createBrowser({ proxy: `http://127.0.0.1:${proxy.port}`, caFile: proxy.caFile });
      try {
        browser.open(`${HOME}/tour`);
        const everything = Object.values(JUDGED).flat().map(atHome);
        await until(() => Object.keys(report).length > 0);
        await until(() => everything.every((line) => judge.asked.includes(line)));
      } finally {
        await browser.close();
      }
      asked = [...judge.asked];
      reached = [...internet.reached];
      inside = [...internet.inside];
    });

    test.each(Object.entries(JUDGED))('%s: judged', (_cell, lines) => {
      expect(asked).toEqual(expect.arrayContaining(lines.map(atHome)));
      const allowed = lines.filter((line) => !/denied|^POST \/ok|^PUT/.test(line)).map(atHome);
      expect(reached).toEqual(expect.arrayContaining(allowed));
    });

    test('nothing that was refused reached a site', () => {
      expect(reached.length).toBeGreaterThan(20);
      expect(wronglyReached(reached)).toEqual([]);
      expect(inside).toEqual([]);
    });

    test('the page sees 403 and the note', () => {
      const refused = ['fetch', 'post', 'put', 'override', ...STATUSES.map((status) => `redirect ${status}`)];
      for (const name of refused) {
        expect(report[name], name).toMatch(
          /^403 [\s\S]*<p>pagegate refused [A-Z]+ https:\/\/good\.example\.com: deny \(rules\/by_tour\)\. note of by_tour<\/p>/,
        );
      }
      expect(report).toMatchObject({
        xhr: 403,
        image: 'error',
        'image allowed': 'load',
        script: 'error',
        style: 'error',
      });
      expect(report['worker']).toMatchObject({
        '/denied-worker': expect.stringMatching(/^403 /),
        '/ok-worker': expect.stringMatching(/^200 /),
      });
      expect(report['post allowed']).toMatch(/^200 /);
      for (const status of STATUSES) expect(report[`redirect allowed ${status}`], `${status}`).toMatch(/^200 /);
    });

    test('WebSocket: judged as a write, before it is opened', () => {
      expect(report).toMatchObject({ socket: 'error', 'socket read': 'error', 'socket allowed': 'message' });
      const lines = ['/denied-socket', '/ok-socket', '/write-socket'].map((path) => `POST ${HOME}${path}`);
      expect(asked).toEqual(expect.arrayContaining(lines));
      expect(reached.filter((line) => line.startsWith('OPEN'))).toEqual([`OPEN ${HOME}/write-socket`]);
    });

    test('no other service for a host is told of', () => {
      expect(report['alt-svc']).toBeNull();
    });
  });

  test('a refused page is one that a model can read', async () => {
    const browser = createBrowser({ proxy: `http://127.0.0.1:${proxy.port}`, caFile: proxy.caFile });
    try {
      const text = await browser.dump(`${HOME}/denied-page`);
      expect(text).toContain('pagegate refused GET https://good.example.com: deny (rules/by_tour). note of by_tour');
    } finally {
      await browser.close();
    }
  });

  describe('another program on the host', () => {
    test('is judged by URL and method, over TLS and without', async () => {
      for (const origin of [HOME, 'http://good.example.com']) {
        expect(await curl(`${origin}/ok?q=%41#x`)).toMatchObject({ code: 0, status: 200 });
        expect(await curl(`${origin}/denied`)).toMatchObject({ code: 0, status: 403 });
        expect(await curl('-d', 'x', `${origin}/ok`)).toMatchObject({ status: 403 });
        expect(await curl('-d', 'x', `${origin}/write`)).toMatchObject({ status: 200 });
        expect(await curl('-L', `${origin}/go?status=307&to=/denied`)).toMatchObject({ status: 403 });
      }
      expect(judge.asked).toContain(`GET ${HOME}/ok?q=%41`);
      expect(judge.asked).toContain('POST http://good.example.com/ok');
      expect(wronglyReached(internet.reached)).toEqual([]);
    });

    test.each(['--http1.1', '--http2'])(
      'sends a body of any size where it may, and gets its answer where not: %s',
      async (version) => {
        const large = put(world, 'large', 'x'.repeat(3_000_000));
        expect(await curl(version, '-T', large, '-X', 'POST', `${HOME}/write`)).toMatchObject({ status: 200 });
        const refused = await curl(version, '-T', large, '-X', 'POST', `${HOME}/ok`);
        expect(refused.status, 'cut off').toBe(0);
        const chunked = await curl(version, '-H', 'transfer-encoding: chunked', '-d', 'x', `${HOME}/ok`);
        expect(chunked.status, 'of unknown size: cut off, but HTTP/2 has no such header').toBe(
          version === '--http2' ? 403 : 0,
        );
        expect(internet.reached).toEqual([`POST ${HOME}/write`]);
      },
    );

    test('does not reach a site whose certificate is not its own', async () => {
      names.set('wrong.example.net', PUBLIC);
      expect((await curl('https://wrong.example.net/ok')).status).toBe(502);
      expect(internet.reached).toEqual([]);
    });
  });

  describe('where a name leads', () => {
    test.each(INSIDE)('%s: refused at the connection, whatever the verdict', async (address) => {
      names.set('inside.example.com', address);
      for (const scheme of ['http', 'https']) {
        const { status, body } = await curl(`${scheme}://inside.example.com/ok`);
        expect(status).toBe(502);
        expect(body).toContain('guard/inside_address');
      }
      expect(internet.inside).toEqual([]);
    });

    test.each(['127.0.0.1', '[::1]', '[::ffff:10.0.0.5]', '169.254.169.254', '2130706433', '0x7f.1', '127.1'])(
      'a host that is an address, %s',
      async (host) => {
        for (const scheme of ['http', 'https'])
          expect((await curl(`${scheme}://${host}/ok`)).status).toBeGreaterThan(399);
        expect(internet.reached).toEqual([]);
        expect(internet.inside).toEqual([]);
      },
    );

    test('a name that leads outside first and inside then (rebinding)', async () => {
      let asked = 0;
      names.set('rebind.example.com', () => (asked++ === 0 ? PUBLIC : '127.0.0.1'));
      expect((await curl('-4', 'https://rebind.example.com/ok')).status).toBe(200);
      for (let i = 0; i < 3; i += 1) expect((await curl('https://rebind.example.com/ok')).status).toBe(502);
      names.set('mixed.example.com', [PUBLIC, '10.0.0.5']);
      expect((await curl('https://mixed.example.com/ok')).status).toBe(502);
      expect(internet.reached).toEqual(['GET https://rebind.example.com/ok']);
      expect(internet.inside).toEqual([]);
    });

    test('an address of the other family is looked at, too', async () => {
      names.set('six.example.com', PUBLIC_V6);
      expect((await curl('https://six.example.com/ok')).status).toBe(200);
    });

    test('a name that is denied is not even looked up', async () => {
      expect((await curl('https://secret.denied.example.com/')).status).toBe(403);
      expect(names.asked).toEqual([]);
      expect(internet.reached).toEqual([]);
    });
  });

  const good = { to: 'good.example.com:443', name: 'good.example.com' };

  test.each([
    ['a Host header for another site, in the tunnel', get('/ok', 'denied.example.com'), good],
    ['a second Host header', get('/ok', 'good.example.com', 'Host: denied.example.com\r\n'), good],
    [
      'a request target with another site, in the tunnel',
      get('https://denied.example.com/ok', 'good.example.com'),
      good,
    ],
    ['TLS for another name than the tunnel', get('/ok', 'good.example.com'), { ...good, name: 'denied.example.com' }],
    [
      'a tunnel to another site than the one named',
      get('/ok', 'good.example.com'),
      { to: 'denied.example.com:443', name: 'good.example.com' },
    ],
    ['a Host header that contradicts the request line', get('http://good.example.com/ok', 'denied.example.com')],
    ['a user name in the request line', get('http://good.example.com@denied.example.com/ok', 'denied.example.com')],
    ['a backslash', get('http://good.example.com\\@denied.example.com/ok', 'good.example.com')],
    ['a request target without a slash', get('ok', 'good.example.com'), good],
    ['a request for the server itself', get('*', 'good.example.com').replace('GET', 'OPTIONS'), good],
    ['a fragment that is sent', get('/ok#/../denied', 'good.example.com'), good],
    ['another scheme', get('ftp://good.example.com/ok', 'good.example.com')],
  ])('%s is refused', async (_name, text, tunnel = undefined) => {
    expect(await speak(proxy.port, text, tunnel)).toMatch(/^HTTP\/1\.1 (?:403|400|502) /);
    expect(internet.reached).toEqual([]);
    expect(internet.inside).toEqual([]);
  });

  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['bytes', '\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\r\n\r\n'],
  ])('a tunnel that holds %s passes nothing on', async (_name, text) => {
    const before = internet.connections();
    expect(await speak(proxy.port, text, { to: 'good.example.com:80' })).toMatch(/^HTTP\/1\.1 400 Bad Request/);
    expect(internet.connections()).toBe(before);
  });

  test('a failure of the addon, and a path that is none, let nothing pass', () => {
    const tests = new URL('python/addon_test.py', import.meta.url).pathname;
    const { status, stderr } = spawnSync('/usr/bin/python3', ['-B', '-W', 'ignore', tests], { encoding: 'utf8' });
    expect(stderr).toMatch(/Ran [3-9] tests[\s\S]*OK/);
    expect(status).toBe(0);
  });

  test('another protocol on the same connection is not asked for', async () => {
    const more = 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n';
    const text = get('http://good.example.com/ok', 'good.example.com', more).replace(
      'close',
      'Upgrade, HTTP2-Settings',
    );
    expect(await speak(proxy.port, text)).toMatch(/^HTTP\/1\.1 200 /);
    expect(internet.headersOf('/ok')).not.toHaveProperty('upgrade');
  });

  test('what belongs to the proxy and to pagegate goes to no site', async () => {
    expect(
      (await curl('--proxy-header', 'Proxy-Authorization: Basic eDp5', 'http://good.example.com/ok-headers')).status,
    ).toBe(200);
    const seen = JSON.stringify(internet.headersOf('/ok-headers'));
    for (const word of ['proxy', 'pg_test', 'x-api-key']) expect(seen).not.toContain(word);
  });

  test('an exception is for one name and one address, and a host can be refused without a lookup', async () => {
    names.set('intra.example.com', '10.0.0.5');
    names.set('other.example.com', '10.0.0.5');
    const words = ['--except', 'intra.example.com=10.0.0.5', '--refuse', 'update.example.com'];
    const before = proxy;
    proxy = await startMitmproxy(world, `http://127.0.0.1:${judge.port}`, internet.caFile, words);
    try {
      expect((await curl('https://intra.example.com/ok')).status).toBe(200);
      expect((await curl('https://other.example.com/ok')).status).toBe(502);
      judge.asked.length = 0;
      expect((await curl('https://UPDATE.example.com/ok')).body).toContain('guard/refused_here');
      expect(judge.asked).toEqual([]);
    } finally {
      proxy = before;
    }
    expect(internet.reached).toEqual(['GET https://intra.example.com/ok']);
  });

  describe('without a verdict', () => {
    const refused = async (reason: string): Promise<void> => {
      const before = internet.connections();
      for (const origin of [HOME, 'http://good.example.com']) {
        const { status, body } = await curl(`${origin}/ok`);
        expect(status).toBe(403);
        expect(body).toContain(reason);
      }
      expect(internet.connections(), 'no connection is made before the verdict').toBe(before);
    };
    const answering = async (answer: Parameters<typeof createJudge>[0]): Promise<Way> => {
      const strict = await createJudge(answer);
      const made = await startMitmproxy(world, `http://127.0.0.1:${strict.port}`, internet.caFile, [
        '--timeout-ms',
        '700',
      ]);
      return made;
    };

    test.each([401, 403, 429, 503, 500])('pagegate answers %d', async (status) => {
      const body = JSON.stringify({ error: 'e', message: 'm', domain: 'x', verdict: 'allow', matched: {} });
      const before = proxy;
      proxy = await answering(() => ({ status, body }));
      await refused(`guard/status_${status}`).finally(() => {
        proxy = before;
      });
    });

    test('pagegate is slow', async () => {
      const before = proxy;
      proxy = await answering(() => 'silence');
      await refused('guard/timeout').finally(() => {
        proxy = before;
      });
    });

    test('pagegate flags', async () => {
      const before = proxy;
      proxy = await answering(() => verdict('flag'));
      await refused('flag (rules/test)').finally(() => {
        proxy = before;
      });
    });

    test('pagegate is away, and comes back', async () => {
      const { port } = judge;
      await judge.close();
      await refused('guard/unreachable').finally(async () => {
        judge = await createJudge(() => verdict('allow'), port);
      });
      expect((await curl(`${HOME}/ok`)).status).toBe(200);
    });
  });
});
