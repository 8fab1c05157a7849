/** The proxy that opens TLS, on Debian's mitmproxy, as shipped: real names, real ports, real certificates, a separate network. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { createBrowser } from './network/browser.ts';
import { curlThrough, get, type Result, speak, speakHttp2, type Way } from './network/client.ts';
import { hasNetwork, INSIDE, PUBLIC } from './network/internet.ts';
import { HOME, STATUSES, wronglyReached } from './network/tour.ts';
import { GOOD, testOpenedTls, testTour, useTourWorld } from './network/tour-tests.ts';
import { startMitmproxy } from './proxies.ts';
import { createJudge, put, verdict } from './world.ts';

describe.runIf(hasNetwork)('mitmproxy', () => {
  const context = useTourWorld();
  let proxy: Way;
  beforeAll(async () => {
    proxy = await startMitmproxy(context.world, `http://127.0.0.1:${context.judge.port}`, context.internet.caFile);
  });

  const curl = (...words: string[]): Promise<Result> => curlThrough(proxy, ...words);

  testTour(context, { url: `${HOME}/tour`, proxy: () => proxy }, (seen, report) => {
    test('the page sees 403 and the note', () => {
      const refused = ['fetch', 'post', 'put', 'override', ...STATUSES.map((status) => `redirect ${status}`)];
      for (const name of refused) {
        expect(report()[name], name).toMatch(
          /^403 [\s\S]*<p>pagegate refused [A-Z]+ https:\/\/good\.example\.com: deny \(rules\/by_tour\)\. note of by_tour<\/p>/,
        );
      }
      expect(report()).toMatchObject({
        xhr: 403,
        image: 'error',
        'image allowed': 'load',
        script: 'error',
        style: 'error',
      });
      expect(report()['worker']).toMatchObject({
        '/denied-worker': expect.stringMatching(/^403 /),
        '/ok-worker': expect.stringMatching(/^200 /),
      });
      expect(report()['post allowed']).toMatch(/^200 /);
      for (const status of STATUSES) expect(report()[`redirect allowed ${status}`], `${status}`).toMatch(/^200 /);
    });

    test('WebSocket: judged as a write, before it is opened', () => {
      expect(report()).toMatchObject({ socket: 'error', 'socket read': 'error', 'socket allowed': 'message' });
      const lines = ['/denied-socket', '/ok-socket', '/write-socket'].map((path) => `POST ${HOME}${path}`);
      expect(seen.asked).toEqual(expect.arrayContaining(lines));
      expect(seen.reached.filter((line) => line.startsWith('OPEN'))).toEqual([`OPEN ${HOME}/write-socket`]);
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

  testOpenedTls(context, () => proxy);

  describe('another program on the host', () => {
    test.each(['--http1.1', '--http2'])(
      'sends a body of any size if it may, and gets a response if not: %s',
      async (version) => {
        const large = put(context.world, 'large', 'x'.repeat(3_000_000));
        expect(await curl(version, '-T', large, '-X', 'POST', `${HOME}/write`)).toMatchObject({ status: 200 });
        const refused = await curl(version, '-T', large, '-X', 'POST', `${HOME}/ok`);
        expect(refused.status, 'cut off').toBe(0);
        const chunked = await curl(version, '-H', 'transfer-encoding: chunked', '-d', 'x', `${HOME}/ok`);
        expect(chunked.status, 'of unknown size: cut off').toBe(0);
        expect(context.internet.reached).toEqual([`POST ${HOME}/write`]);
      },
    );

    test('does not use HTTP/2, where a site could take a body without a length for requests', async () => {
      const body = get('/denied-in-a-body', 'good.example.com');
      const answer = await speakHttp2(proxy.port, 'good.example.com', { ':method': 'POST', ':path': '/write' }, body);
      expect(wronglyReached(context.internet.reached)).toEqual([]);
      expect(answer).toBe('no HTTP/2');
    });

    test('does not reach a site with an invalid certificate', async () => {
      context.names.set('wrong.example.net', PUBLIC);
      expect((await curl('https://wrong.example.net/ok')).status).toBe(502);
      expect(context.internet.reached).toEqual([]);
    });
  });

  describe('the address of a name', () => {
    test.each(INSIDE)('%s: refused at the connection, whatever the verdict', async (address) => {
      context.names.set('inside.example.com', address);
      for (const scheme of ['http', 'https']) {
        const { status, body } = await curl(`${scheme}://inside.example.com/ok`);
        expect(status).toBe(502);
        expect(body).toContain('guard/inside_address');
      }
      expect(context.internet.inside).toEqual([]);
    });

    test('a name that is public first and internal later (rebinding)', async () => {
      let asked = 0;
      context.names.set('rebind.example.com', () => (asked++ === 0 ? PUBLIC : '127.0.0.1'));
      expect((await curl('-4', 'https://rebind.example.com/ok')).status).toBe(200);
      for (let i = 0; i < 3; i += 1) expect((await curl('https://rebind.example.com/ok')).status).toBe(502);
      context.names.set('mixed.example.com', [PUBLIC, '10.0.0.5']);
      expect((await curl('https://mixed.example.com/ok')).status).toBe(502);
      expect(context.internet.reached).toEqual(['GET https://rebind.example.com/ok']);
      expect(context.internet.inside).toEqual([]);
    });

    test('a denied name is not even resolved', async () => {
      expect((await curl('https://secret.denied.example.com/')).status).toBe(403);
      expect(context.names.asked).toEqual([]);
      expect(context.internet.reached).toEqual([]);
    });
  });

  test.each([
    ['a Host header for another site, in the tunnel', get('/ok', 'denied.example.com'), GOOD],
    ['a second Host header', get('/ok', 'good.example.com', 'Host: denied.example.com\r\n'), GOOD],
    [
      'a request target with another site, in the tunnel',
      get('https://denied.example.com/ok', 'good.example.com'),
      GOOD,
    ],
    ['TLS for another name than the tunnel', get('/ok', 'good.example.com'), { ...GOOD, name: 'denied.example.com' }],
    [
      'a tunnel to another site than the one named',
      get('/ok', 'good.example.com'),
      { to: 'denied.example.com:443', name: 'good.example.com' },
    ],
    ['a Host header that contradicts the request line', get('http://good.example.com/ok', 'denied.example.com')],
    ['a user name in the request line', get('http://good.example.com@denied.example.com/ok', 'denied.example.com')],
    ['a backslash', get('http://good.example.com\\@denied.example.com/ok', 'good.example.com')],
    ['a request target without a slash', get('ok', 'good.example.com'), GOOD],
    ['a request for the server itself', get('*', 'good.example.com').replace('GET', 'OPTIONS'), GOOD],
    ['a fragment that is sent', get('/ok#/../denied', 'good.example.com'), GOOD],
    ['another scheme', get('ftp://good.example.com/ok', 'good.example.com')],
  ])('%s is refused', async (_name, text, tunnel = undefined) => {
    expect(await speak(proxy.port, text, tunnel)).toMatch(/^HTTP\/1\.1 (?:403|400|502) /);
    expect(context.internet.reached).toEqual([]);
    expect(context.internet.inside).toEqual([]);
  });

  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['bytes', '\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\r\n\r\n'],
  ])('a tunnel that contains %s passes nothing on', async (_name, text) => {
    const before = context.internet.connections();
    expect(await speak(proxy.port, text, { to: 'good.example.com:80' })).toMatch(/^HTTP\/1\.1 400 Bad Request/);
    expect(context.internet.connections()).toBe(before);
  });

  test('a failure of the addon, and an invalid path, let nothing pass', () => {
    const tests = fileURLToPath(new URL('python/addon_test.py', import.meta.url));
    const { status, stderr } = spawnSync('/usr/bin/python3', ['-B', '-W', 'ignore', tests], { encoding: 'utf8' });
    expect(stderr).toMatch(/Ran [3-9] tests[\s\S]*OK/);
    expect(status).toBe(0);
  });

  test('a request to upgrade the connection to another protocol is not forwarded', async () => {
    const more = 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n';
    const text = get('http://good.example.com/ok', 'good.example.com', more).replace(
      'close',
      'Upgrade, HTTP2-Settings',
    );
    expect(await speak(proxy.port, text)).toMatch(/^HTTP\/1\.1 200 /);
    expect(context.internet.headersOf('/ok')).not.toHaveProperty('upgrade');
  });

  test('headers for the proxy and for pagegate reach no site', async () => {
    expect(
      (await curl('--proxy-header', 'Proxy-Authorization: Basic eDp5', 'http://good.example.com/ok-headers')).status,
    ).toBe(200);
    const seen = JSON.stringify(context.internet.headersOf('/ok-headers'));
    for (const word of ['proxy', 'pg_test', 'x-api-key']) expect(seen).not.toContain(word);
  });

  test('an exception applies to one name and one address, and a host can be refused without a lookup', async () => {
    context.names.set('intra.example.com', '10.0.0.5');
    context.names.set('other.example.com', '10.0.0.5');
    const words = ['--except', 'intra.example.com=10.0.0.5', '--refuse', 'update.example.com'];
    const before = proxy;
    proxy = await startMitmproxy(
      context.world,
      `http://127.0.0.1:${context.judge.port}`,
      context.internet.caFile,
      words,
    );
    try {
      expect((await curl('https://intra.example.com/ok')).status).toBe(200);
      expect((await curl('https://other.example.com/ok')).status).toBe(502);
      context.judge.asked.length = 0;
      expect((await curl('https://UPDATE.example.com/ok')).body).toContain('guard/refused_here');
      expect(context.judge.asked).toEqual([]);
    } finally {
      proxy = before;
    }
    expect(context.internet.reached).toEqual(['GET https://intra.example.com/ok']);
  });

  describe('without a verdict', () => {
    const refused = async (reason: string): Promise<void> => {
      const before = context.internet.connections();
      for (const origin of [HOME, 'http://good.example.com']) {
        const { status, body } = await curl(`${origin}/ok`);
        expect(status).toBe(403);
        expect(body).toContain(reason);
      }
      expect(context.internet.connections(), 'no connection is made before the verdict').toBe(before);
    };
    const answering = async (answer: Parameters<typeof createJudge>[0]): Promise<Way> => {
      const strict = await createJudge(answer);
      const made = await startMitmproxy(context.world, `http://127.0.0.1:${strict.port}`, context.internet.caFile, [
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

    test('pagegate is unreachable, and returns', async () => {
      const { port } = context.judge;
      await context.judge.close();
      await refused('guard/unreachable').finally(async () => {
        context.judge = await createJudge(() => verdict('allow'), port);
      });
      expect((await curl(`${HOME}/ok`)).status).toBe(200);
    });
  });
});
