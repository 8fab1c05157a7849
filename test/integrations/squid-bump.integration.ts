/** Squid with TLS opened, as shipped: real names, real ports, real certificates, a separate network. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { createBrowser } from './network/browser.ts';
import { curlThrough, curlWords, get, type Result, runCurl, speak, type Way } from './network/client.ts';
import { hasNetwork, INSIDE, PUBLIC } from './network/internet.ts';
import { HOME, STATUSES, until, wronglyReached } from './network/tour.ts';
import { GOOD, testOpenedTls, testTour, useTourWorld } from './network/tour-tests.ts';
import { type RunningSquid, startSquidBump } from './proxies.ts';
import { createJudge, createWorld, put, TOOLS, verdict } from './world.ts';

/** The text of a refusal in Squid's page. */
const refusal = (reason: string): string => `pagegate refused this request: ${reason}`;

describe.runIf(hasNetwork)('Squid with TLS opened', () => {
  const context = useTourWorld();
  let squid: RunningSquid & Way;
  beforeAll(async () => {
    const lines = ['negative_dns_ttl 1 second'];
    squid = await startSquidBump(
      context.world,
      `http://127.0.0.1:${context.judge.port}`,
      context.internet.caFile,
      lines,
    );
  });

  const curl = (...words: string[]): Promise<Result> => curlThrough(squid, ...words);

  testTour(context, { url: `${HOME}/tour`, proxy: () => squid }, (seen, report) => {
    test('the page sees 403, the layer and the note', () => {
      for (const name of ['fetch', 'post', 'put', ...STATUSES.map((status) => `redirect ${status}`)]) {
        expect(report()[name], name).toMatch(/^403 /);
        expect(report()[name], name).toContain(refusal('deny (rules/by_tour): note of by_tour'));
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

    test('a header that would change the method of a read is removed', () => {
      expect(report()['override']).toMatch(/^200 /);
      expect(context.internet.headersOf('/ok-override')).not.toHaveProperty('x-http-method-override');
    });

    test('no WebSocket is opened', () => {
      expect(report()).toMatchObject({ socket: 'error', 'socket read': 'error', 'socket allowed': 'error' });
      expect(seen.reached.filter((line) => line.startsWith('OPEN'))).toEqual([]);
      expect(seen.asked).toContain(`GET ${HOME}/denied-socket`);
    });
  });

  test('a refused page is one that a model can read', async () => {
    const browser = createBrowser({ proxy: `http://127.0.0.1:${squid.port}`, caFile: squid.caFile });
    try {
      expect(await browser.dump(`${HOME}/denied-page`)).toContain(refusal('deny (rules/by_tour): note of by_tour'));
    } finally {
      await browser.close();
    }
  });

  testOpenedTls(context, () => squid);

  test('a note in markup stays text', async () => {
    const strict = await createJudge(() => verdict('deny', '<script>alert(1)</script>'));
    const other = await startSquidBump(context.world, `http://127.0.0.1:${strict.port}`, context.internet.caFile);
    const before = squid;
    squid = other;
    try {
      const { body } = await curl(`${HOME}/ok`);
      expect(body).toContain('&lt;script&gt;');
      expect(body).not.toContain('<script>');
    } finally {
      squid = before;
      await strict.close();
    }
  });

  test('a site with an invalid certificate is not reached', async () => {
    context.names.set('wrong.example.net', PUBLIC);
    expect((await curl('https://wrong.example.net/ok')).status).toBe(503);
    expect(context.internet.reached).toEqual([]);
  });

  describe('the address of a name', () => {
    test.each(INSIDE)('%s: refused after the verdict', async (address) => {
      context.names.set(`inside-${INSIDE.indexOf(address)}.example.com`, address);
      for (const scheme of ['http', 'https']) {
        const { status, body } = await curl(`${scheme}://inside-${INSIDE.indexOf(address)}.example.com/ok`);
        expect(status).toBe(403);
        expect(body).toContain('deny (gateway/inside_address)');
      }
      expect(context.internet.reached).toEqual([]);
      expect(context.internet.inside).toEqual([]);
    });

    test('a name that is public first and internal later (rebinding)', async () => {
      context.names.set('rebind.example.com', PUBLIC);
      expect((await curl('https://rebind.example.com/ok')).status).toBe(200);
      context.names.set('rebind.example.com', '127.0.0.1');
      await sleep(2_500);
      for (let i = 0; i < 3; i += 1) expect((await curl('https://rebind.example.com/ok')).status).toBe(403);
      context.names.set('mixed.example.com', [PUBLIC, '10.0.0.5']);
      expect((await curl('https://mixed.example.com/ok')).status).toBe(403);
      expect(context.internet.reached).toEqual(['GET https://rebind.example.com/ok']);
      expect(context.internet.inside).toEqual([]);
    });

    test('a denied name is not even resolved', async () => {
      expect((await curl('https://secret.denied.example.com/')).status).toBe(403);
      expect(context.names.asked.filter((name) => name.includes('secret'))).toEqual([]);
    });
  });

  test.each([
    ['a Host header for another site, in the tunnel', get('/ok', 'denied.example.com'), GOOD],
    [
      'a request target with another site, in the tunnel',
      get('https://denied.example.com/ok', 'good.example.com'),
      GOOD,
    ],
    ['a request target on another site, without a tunnel', get('http://denied.example.com/ok', 'good.example.com')],
    ['a user name in the request line', get('http://good.example.com@denied.example.com/ok', 'denied.example.com')],
    ['a backslash', get('http://good.example.com\\@denied.example.com/ok', 'good.example.com')],
    ['a request target without a slash', get('ok', 'good.example.com'), GOOD],
    ['another scheme', get('ftp://good.example.com/ok', 'good.example.com')],
    [
      'a tunnel to another port',
      get('/ok', 'good.example.com:8443'),
      { to: 'good.example.com:8443', name: 'good.example.com' },
    ],
    ['a tunnel to port 80', get('/ok', 'good.example.com'), { to: 'good.example.com:80', name: 'good.example.com' }],
    ['an inside place in the tunnel', get('/ok', '10.0.0.5'), GOOD],
  ])('%s is refused', async (_name, text, tunnel = undefined) => {
    const answer = await speak(squid.port, text, tunnel);
    expect(wronglyReached(context.internet.reached)).toEqual([]);
    expect(context.internet.inside).toEqual([]);
    expect(answer).toMatch(/^HTTP\/1\.1 (?:4\d\d|5\d\d) /);
  });

  test.each([
    ['TLS for another name than the tunnel', { ...GOOD, name: 'denied.example.com' }],
    ['a tunnel to another site', { to: 'denied.example.com:443', name: 'denied.example.com' }],
    ['a tunnel to an inside place', { to: '10.0.0.5:443', name: 'good.example.com' }],
    ['a second Host header', GOOD, 'Host: denied.example.com\r\n'],
  ])('%s: the request inside is judged and fetched', async (_name, tunnel, more = '') => {
    expect(await speak(squid.port, get('/ok', 'good.example.com', more), tunnel)).toMatch(/^HTTP\/1\.1 200 /);
    expect(context.internet.reached).toEqual([`GET ${HOME}/ok`]);
    expect(context.internet.inside).toEqual([]);
  });

  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['bytes', '\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a'],
    ['HTTP without TLS', 'GET /ok HTTP/1.1\r\nHost: good.example.com\r\n\r\n'],
  ])('a tunnel that contains %s passes nothing on', async (_name, text) => {
    const before = context.internet.connections();
    await speak(squid.port, text, { to: 'good.example.com:443' });
    expect(context.internet.connections()).toBe(before);
  });

  test('an unknown version of HTTP in an opened tunnel reaches no site', async () => {
    const before = context.internet.connections();
    await speak(squid.port, get('/ok', 'good.example.com').replace('HTTP/1.1', 'HTTP/9.9'), GOOD);
    expect(context.internet.connections()).toBe(before);
  });

  test('only root can read the certificate authority, even after Squid reloads its configuration', async () => {
    const authority = statSync(squid.caFile.replace(/crt$/, 'pem'));
    expect([authority.uid, authority.mode & 0o777]).toEqual([0, 0o600]);
    const before = squid;
    squid = await startSquidBump(context.world, `http://127.0.0.1:${context.judge.port}`, context.internet.caFile);
    try {
      const opened = (): number => readFileSync(squid.logFile, 'utf8').split('Accepting SSL bumped').length;
      const times = opened();
      squid.child.kill('SIGHUP');
      await until(() => opened() > times);
      expect((await curl(`${HOME}/ok`)).status).toBe(200);
    } finally {
      squid = before;
    }
  });

  test('behind the firewall file an agent has no other way out, and Squid has no way to internal addresses', async () => {
    const rules = readFileSync(`${TOOLS}firewall/agents-through-proxy.nft`, 'utf8')
      .replace('{ "agent" }', '{ 64123 }')
      .replace('proxy_port = 3128', `proxy_port = ${squid.port}`)
      .replace('pagegate_port = 8443', `pagegate_port = ${context.judge.port}`);
    const file = put(context.world, 'rules.nft', rules);
    const asAgent = (...words: string[]): Promise<Result> => {
      const agent = ['--reuid=64123', '--regid=64123', '--clear-groups', 'curl', '--noproxy', ''];
      return runCurl('setpriv', [...agent, ...curlWords(squid, 4), ...words], process.env);
    };
    const through = ['-x', `http://127.0.0.1:${squid.port}`];
    expect((await asAgent('http://good.example.com/denied')).status, 'without it there is a way').toBe(200);
    context.internet.reached.length = 0;
    execFileSync('nft', ['-f', file]);
    try {
      for (const url of [
        'http://good.example.com/denied',
        'http://93.184.215.14/denied',
        'http://[2606:2800:21f::1]/denied',
        'http://10.0.0.5/',
      ]) {
        expect((await asAgent(url)).status, url).toBe(0);
      }
      expect((await asAgent(...through, `${HOME}/denied`)).status).toBe(403);
      expect((await asAgent(...through, `${HOME}/ok`)).status).toBe(200);
      expect(context.internet.reached).toEqual([`GET ${HOME}/ok`]);
      const asSquid = [
        '--reuid=proxy',
        '--regid=proxy',
        '--clear-groups',
        'curl',
        '--noproxy',
        '*',
        ...curlWords(squid),
      ];
      for (const host of ['127.0.0.1', '10.0.0.5', '169.254.169.254', '[::1]', '[fd00::5]']) {
        expect((await runCurl('setpriv', [...asSquid, `http://${host}/`], process.env)).status, host).toBe(0);
      }
      expect((await runCurl('setpriv', [...asSquid, `http://${PUBLIC}/ok`], process.env)).status).toBe(200);
    } finally {
      execFileSync('nft', ['delete', 'table', 'inet', 'pagegate']);
    }
    expect(context.internet.inside).toEqual([]);
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
    const answering = async (answer: Parameters<typeof createJudge>[0], reason: string): Promise<void> => {
      const strict = await createJudge(answer);
      const before = squid;
      squid = await startSquidBump(context.world, `http://127.0.0.1:${strict.port}`, context.internet.caFile);
      await refused(reason).finally(async () => {
        squid = before;
        await strict.close();
      });
    };

    test.each([401, 403, 429, 503, 500])('pagegate answers %d', (status) => {
      const body = JSON.stringify({ error: 'e', message: 'm', domain: 'x', verdict: 'allow', matched: {} });
      return answering(() => ({ status, body }), refusal('error ('));
    });

    test('pagegate is slow', () => answering(() => 'silence', refusal('error (')));
    test('pagegate hangs up', () => answering(() => 'hang up', refusal('error (')));
    test('pagegate flags', () => answering(() => verdict('flag'), refusal('flag (rules/test): note of test')));

    test('pagegate is unreachable, and returns', async () => {
      const { port } = context.judge;
      await context.judge.close();
      await refused(refusal('error (')).finally(async () => {
        context.judge = await createJudge(() => verdict('allow'), port);
      });
      expect((await curl(`${HOME}/ok`)).status).toBe(200);
    });

    test('a helper that cannot start reports why in one line, and nothing passes', async () => {
      const mine = await createWorld();
      try {
        put(mine, 'api.key', 'pg_test\n', 0o644);
        const before = context.internet.connections();
        // Squid itself may end: it gives up if a helper does not start.
        const started = await startSquidBump(
          mine,
          `http://127.0.0.1:${context.judge.port}`,
          context.internet.caFile,
        ).catch(() => undefined);
        if (started !== undefined) {
          const way = [
            '-q',
            '-s',
            '-k',
            '--max-time',
            '5',
            '-w',
            '\n%{http_code}',
            '-x',
            `http://127.0.0.1:${started.port}`,
          ];
          const { status } = await runCurl('curl', [...way, `${HOME}/ok`], { PATH: process.env['PATH'] });
          expect(status).not.toBe(200);
        }
        expect(context.internet.connections()).toBe(before);
        const log = readdirSync(mine.folder).find((name) => name.startsWith('cache-'))!;
        const lines = readFileSync(join(mine.folder, log), 'utf8').split('\n');
        const messages = lines.filter((line) => line.includes('pagegate-acl:') || /^\s+at /.test(line));
        expect(new Set(messages)).toEqual(
          new Set([`pagegate-acl: ${mine.keyFile}: others may access the API key; chmod o= it`]),
        );
      } finally {
        await mine.close();
      }
    });
  });
});
