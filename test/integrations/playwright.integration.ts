/** The guard around Debian's Chromium, driven by Playwright. Each test tries one way out of a page. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Guard } from '../../src/guard/guard.ts';
import type { Decision } from '../../src/guard/refusal.ts';
import { type BrowserProxy, startBrowserProxy } from '../../tools/integrations/playwright/browser-proxy.ts';
import { guardContext } from '../../tools/integrations/playwright/guard-context.ts';
import { createWebSite, html, type Pages, script, type WebSite } from './site.ts';
import { createJudge, type Judge, through, verdict } from './world.ts';

/** Without these Chromium looks for its maker's services, and as root it needs the first. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
].concat(['--disable-component-update', '--disable-sync', '--ignore-certificate-errors']);
/** The same for a browser without the proxy. */
const LAUNCHED = [...ARGS, '--host-resolver-rules=MAP *.example 127.0.0.1'];
const NAMES = ['site.example', 'other.example', 'denied.example'];
/** What a page may do after what was asked for; there is no event for what does not happen. */
const A_WHILE_MS = 700;

const redirect =
  (status: number, to: string): NonNullable<Pages[string]> =>
  (_request, response) =>
    void response.writeHead(status, { location: to }).end();
const file: NonNullable<Pages[string]> = (_request, response) =>
  void response.writeHead(200, { 'content-disposition': 'attachment; filename=a.bin' }).end('data');
const CASES: Pages = {
  ...Object.fromEntries([301, 302, 303, 307, 308].map((status) => [`/${status}`, redirect(status, '/denied')])),
  '/allowed-hop': redirect(302, '/page'),
  '/two-hops': redirect(302, '/302'),
  '/meta': html('<meta http-equiv="refresh" content="0; url=/denied">'),
  '/script': html('<script>location.href = "/denied"</script>'),
  '/refresh': (_request, response) => void response.writeHead(200, { refresh: '0; url=/denied' }).end(),
  '/links': html(
    '<a id=popup target=_blank href="/denied">x</a><a id=download href="/denied-file">x</a><a id=file href="/file">x</a>',
  ),
  // As many as make it likely that one of them would be faster than what is put into it.
  '/frames': (request, response) => {
    const url = `wss://${request.headers.host}/denied-chat`;
    const frame = `<iframe sandbox=allow-scripts srcdoc="<script>new WebSocket('${url}')</script>"></iframe>`;
    html(frame.repeat(5))(request, response);
  },
  '/file': file,
  '/denied-file': file,
  '/worker.js': script('onmessage = (e) => fetch(e.data).then((r) => postMessage(r.status), () => postMessage(0))'),
  '/sw.js': script(
    'onmessage = (e) => e.waitUntil(fetch(e.data).then((r) => e.source.postMessage(r.status), () => e.source.postMessage(0)))',
  ),
  // What these two ask the browser for is fetched while the worker still thinks about it, and shown to nobody.
  '/sw-preload.js': script(`
    const ready = async () => { await registration.navigationPreload.enable(); await clients.claim(); };
    onactivate = (e) => e.waitUntil(ready());
    onfetch = (e) => e.request.mode === 'navigate' && e.respondWith(e.preloadResponse);`),
  '/sw-race.js': script(`
    oninstall = (e) => e.addRoutes({ condition: { urlPattern: '/*' }, source: 'race-network-and-fetch-handler' });
    onfetch = (e) => e.respondWith(new Response('later'));`),
};

let site: WebSite;
let judge: Judge;
beforeAll(async () => {
  site = await createWebSite(CASES);
  judge = await createJudge(judgeSite);
});
afterAll(async () => {
  await judge.close();
  await site.close();
});

function judgeSite(url: string, method: string): ReturnType<typeof verdict> {
  const { hostname, pathname } = new URL(url);
  if (method !== 'GET' && pathname !== '/chat') return verdict('deny', 'unclassified_write');
  if (hostname === 'denied.example' || pathname.startsWith('/denied')) return verdict('deny', 'login');
  if (pathname.startsWith('/flagged')) return verdict('flag', 'unclassified_read');
  return pathname.startsWith('/broken') ? { status: 503, body: '{}' } : verdict('allow');
}

interface Scene {
  readonly guard: Guard;
  readonly browser: Browser;
  readonly context: BrowserContext;
  readonly page: Page;
  readonly proxy: BrowserProxy | undefined;
}
let scene: Scene;
const seen: Decision[] = [];
/** The addresses of turning.example, one after the other. */
const turns: string[] = [];

function lookup(
  name: string,
  _options: object,
  found: (error: Error | null, address: string, family: number) => void,
): void {
  const address = name === 'turning.example' ? turns.shift() : '127.0.0.1';
  if (name.endsWith('.example') && address !== undefined) found(null, address, 4);
  else found(new Error(`no such name: ${name}`), '', 0);
}

const launch = (proxy?: BrowserProxy, executablePath = '/usr/bin/chromium'): Promise<Browser> =>
  chromium.launch({
    executablePath,
    args: proxy === undefined ? LAUNCHED : [...ARGS, ...proxy.args],
  });

async function open(withProxy: boolean, program?: string): Promise<Scene> {
  const guard = new Guard({
    server: `http://127.0.0.1:${judge.port}`,
    key: 'pg_test',
    timeoutMs: 1_000,
    exceptions: Object.fromEntries([...NAMES, 'turning.example'].map((name) => [name, '127.0.0.1'])),
    onDecision: (decision) => void seen.push(decision),
  });
  const proxy = withProxy ? await startBrowserProxy(guard, { lookup }) : undefined;
  const browser = await launch(proxy, program);
  const context = await browser.newContext();
  await guardContext(context, guard, proxy && { proxy });
  return { guard, browser, context, page: await context.newPage(), proxy };
}

async function close({ guard, browser, proxy }: Scene): Promise<void> {
  await browser.close();
  proxy?.close();
  guard.close();
}

beforeEach(() => {
  site.reached.length = 0;
  judge.asked.length = 0;
  seen.length = 0;
});

const at = (path: string, host = 'site.example') => `https://${host}:${site.securePort}${path}`;
const plainAt = (path: string, host = 'site.example') => `http://${host}:${site.plainPort}${path}`;
const reachedPaths = () => site.reached.map((line) => line.split(' ')[2]!);
const aWhile = () => new Promise((resolve) => setTimeout(resolve, A_WHILE_MS));

/** Has a page prefetch a URL by speculation rules, which CDP Fetch does not see. */
const speculate = (url: string) => `{
  const script = document.createElement('script');
  script.type = 'speculationrules';
  script.text = '{"prefetch":[{"source":"list","urls":["${url}"]}]}';
  document.head.append(script);
}`;

/** What is refused did not arrive, and it was refused, not forgotten. */
async function expectRefused(...paths: string[]): Promise<void> {
  const refused = () => seen.filter(({ verdict: given }) => given !== 'allow').map(({ url }) => new URL(url).pathname);
  await expect.poll(refused).toEqual(expect.arrayContaining(paths));
  await aWhile();
  expect(reachedPaths().filter((path) => paths.includes(path))).toEqual([]);
}

describe.each([
  ['alone', false],
  ['with its proxy', true],
])('guardContext %s', (_name, withProxy) => {
  beforeEach(async () => {
    scene = await open(withProxy);
  });
  afterEach(() => close(scene));

  test('page: an allowed one is shown, a refused one is a page that says why', async () => {
    const { page } = scene;
    expect((await page.goto(at('/page')))?.status()).toBe(200);
    expect(await page.textContent('h1')).toBe('/page');
    const refused = await page.goto(at('/denied'));
    expect([refused?.status(), refused?.headers()['x-pagegate-verdict']]).toEqual([403, 'deny']);
    expect(await page.textContent('body')).toContain('pagegate refused GET https://site.example');
    expect(await page.textContent('body')).toContain('deny (rules/login). note of login');
    // Playwright goes on working after a refusal.
    expect((await page.goto(at('/page2')))?.status()).toBe(200);
    expect(reachedPaths()).toEqual(['/page', '/page2']);
  });

  test('page: flagged, unjudged and other schemes are refused, fragments are judged', async () => {
    const { page } = scene;
    expect((await page.goto(at('/flagged')))?.status()).toBe(403);
    expect((await page.goto(at('/broken')))?.status()).toBe(403);
    expect(await page.textContent('body')).toContain('status_503');
    expect((await page.goto('file:///etc/hostname'))?.status()).toBe(403);
    expect(await page.textContent('body')).toContain('guard/request_target');
    expect(judge.asked.join()).not.toContain('file:');
    await page.goto(at('/app#/denied-route'));
    expect(judge.asked).toContain(`GET ${at('/app#/denied-route')}`);
    expect(reachedPaths()).toEqual(['/app']);
  });

  test.each([301, 302, 303, 307, 308])('redirect hop: %i to a refused page is not followed', async (status) => {
    const response = await scene.page.goto(at(`/${status}`));
    expect(response?.status()).toBe(403);
    expect(reachedPaths()).toEqual([`/${status}`]);
  });

  test('redirect hop: an allowed one is followed, and the second of two is judged', async () => {
    expect((await scene.page.goto(at('/allowed-hop')))?.url()).toBe(at('/page'));
    expect((await scene.page.goto(at('/two-hops')))?.status()).toBe(403);
    expect(reachedPaths()).toEqual(['/allowed-hop', '/page', '/two-hops', '/302']);
  });

  test.each(['/meta', '/script', '/refresh'])('redirect hop: by %s', async (path) => {
    await scene.page.goto(at(path)).catch(() => {});
    await expectRefused('/denied');
    await expect.poll(() => scene.page.textContent('h1')).toBe('Refused by pagegate');
  });

  test('subresource: images, scripts, styles, fonts, frames, prefetches of a page', async () => {
    await scene.page.goto(at('/page'));
    const base = at('', 'other.example');
    const body = `<img src="${base}/denied-img"><link rel=stylesheet href="${base}/denied-css">
      <link rel=prefetch href="${base}/denied-prefetch"><link rel=preload as=font crossorigin href="${base}/denied-font">
      <iframe src="${base}/denied-frame"></iframe><video src="${base}/denied-video"></video>
      <object data="${base}/denied-object"></object>`;
    await scene.page.evaluate(`{
      document.body.innerHTML = ${JSON.stringify(body)};
      const script = document.createElement('script');
      script.src = '${base}/denied-js';
      document.body.append(script);
    }`);
    const kinds = ['img', 'css', 'prefetch', 'font', 'frame', 'video', 'object', 'js'];
    await expectRefused(...kinds.map((kind) => `/denied-${kind}`));
  });

  test('subresource: of a frame from another site, which has a process of its own', async () => {
    await scene.page.goto(at('/page'));
    const frame = `<iframe src="${at('/frame', 'other.example')}"></iframe>`;
    await scene.page.evaluate(`document.body.innerHTML = '${frame}'`);
    await expect.poll(() => scene.page.frames().length).toBe(2);
    await scene.page.frames()[1]!.waitForLoadState();
    await scene.page.frames()[1]!.evaluate(`{ new Image().src = '/denied-in-frame' }`);
    await expectRefused('/denied-in-frame');
  });

  test('fetch/XHR: a refused one gets 403, an allowed one its answer', async () => {
    await scene.page.goto(at('/page'));
    const statuses = await scene.page.evaluate(`(async () => {
      const status = (path) => fetch(path).then((response) => response.status);
      const xhr = (path) =>
        new Promise((resolve) => {
          const request = new XMLHttpRequest();
          request.open('GET', path);
          request.onloadend = () => resolve(request.status);
          request.send();
        });
      return [await status('/api'), await status('/denied-api'), await xhr('/api2'), await xhr('/denied-xhr'), await status('/302')];
    })()`);
    expect(statuses).toEqual([200, 403, 200, 403, 403]);
    expect(reachedPaths()).toEqual(['/page', '/api', '/api2', '/302']);
  });

  test('fetch/XHR: of a worker, a shared worker and an event source', async () => {
    await scene.page.goto(at('/page'));
    const statuses = await scene.page.evaluate(`(async () => {
      const ask = (path) =>
        new Promise((resolve) => {
          const worker = new Worker('/worker.js');
          worker.onmessage = (event) => resolve(event.data);
          worker.postMessage(path);
        });
      new SharedWorker('/denied-shared.js');
      new EventSource('/denied-events');
      return [await ask('/from-worker'), await ask('/denied-from-worker')];
    })()`);
    expect(statuses).toEqual([200, 403]);
    await expectRefused('/denied-shared.js', '/denied-events');
  });

  test('WebSocket: an allowed one speaks, a refused one is closed', async () => {
    await scene.page.goto(at('/page'));
    const talk = (path: string, place = 'window') =>
      scene.page.evaluate(`new Promise((resolve) => {
        const frame = document.createElement('iframe');
        document.body.append(frame);
        const socket = new (${place}).WebSocket('${at(path).replace('https', 'wss')}');
        socket.onmessage = (event) => resolve(event.data);
        socket.onclose = (event) => resolve(event.code);
      })`);
    expect(await talk('/chat')).toBe('hello');
    expect(await talk('/denied-chat')).toBe(1008);
    // A fresh frame brings a constructor of its own.
    expect(await talk('/denied-in-frame', 'frame.contentWindow')).toBe(1008);
    expect(site.reached.filter((line) => line.startsWith('OPEN'))).toEqual(['OPEN site.example /chat']);
  });

  test('WebSocket: an allowed one speaks without TLS, too', async () => {
    await scene.page.goto(plainAt('/page'));
    const said = scene.page.evaluate(`new Promise((resolve) => {
      const socket = new WebSocket('${plainAt('/chat').replace('http', 'ws')}');
      socket.onmessage = (event) => resolve(event.data);
      socket.onclose = (event) => resolve(event.code);
    })`);
    expect(await said).toBe('hello');
    expect(judge.asked).toContain(`POST ${plainAt('/chat')}`);
  });

  test('WebSocket: pages, frames and popups have no WebSocketStream, which nothing shows to the guard', async () => {
    await scene.page.goto(at('/page'));
    const kinds = await scene.page.evaluate(`(() => {
      const frame = document.createElement('iframe');
      document.body.append(frame);
      return [window, frame.contentWindow, window.open('about:blank')].map((one) => typeof one.WebSocketStream);
    })()`);
    expect(kinds).toEqual(['undefined', 'undefined', 'undefined']);
  });

  test('popup: by a link, by a script, and with no opener', async () => {
    await scene.page.goto(at('/links'));
    const popups: Page[] = [];
    scene.context.on('page', (page) => popups.push(page));
    await scene.page.click('#popup');
    await scene.page.evaluate(`{ window.open('/denied-opened', '_blank', 'noopener') }`);
    await expect.poll(() => popups.length).toBe(2);
    await expectRefused('/denied', '/denied-opened');
    await expect.poll(() => popups[0]!.textContent('h1')).toBe('Refused by pagegate');
  });

  test('service worker: none is registered, so no page is fetched ahead of its verdict', async () => {
    await scene.page.goto(at('/page'));
    const outcome = await scene.page.evaluate(`(async () => {
      const register = (path, options) =>
        navigator.serviceWorker.register(path, options).then(() => 'registered', () => 'refused');
      const outcome = [await register('/sw-preload.js'), await register('/sw-race.js', { scope: '/denied-race/', type: 'module' })];
      if (outcome.includes('registered')) await navigator.serviceWorker.ready;
      return outcome;
    })()`);
    expect(outcome).toEqual(['refused', 'refused']);
    for (const path of ['/denied', '/denied-race/', '/page2']) await scene.page.goto(at(path));
    const ids = seen.filter(({ url }) => url.includes('/sw-')).map(({ id, verdict: given }) => `${given} ${id}`);
    expect(ids).toEqual(['deny service_worker', 'deny service_worker']);
    expect(reachedPaths()).toEqual(['/page', '/page2']);
  });

  test('download: an allowed one arrives, a refused one does not', async () => {
    await scene.page.goto(at('/links'));
    const [download] = await Promise.all([scene.page.waitForEvent('download'), scene.page.click('#file')]);
    expect(await download.failure()).toBeNull();
    await scene.page.evaluate(`document.querySelector('#download').setAttribute('download', '')`);
    await scene.page.click('#download');
    await expectRefused('/denied-file');
  });

  test('method of a POST: forms, fetch, beacons and overriding headers', async () => {
    await scene.page.goto(at('/page'));
    const statuses = await scene.page.evaluate(`(async () => {
      navigator.sendBeacon('/post-beacon', 'x');
      const status = (path, init) => fetch(path, init).then((response) => response.status);
      return [
        await status('/post-fetch', { method: 'POST', body: 'x' }),
        await status('/put-fetch', { method: 'PUT', body: 'x' }),
        await status('/overridden', { headers: { 'X-HTTP-Method-Override': 'DELETE' } }),
        await status('/rewritten', { headers: { 'X-Original-URL': '/denied' } }),
      ];
    })()`);
    expect(statuses).toEqual([403, 403, 403, 403]);
    await scene.page.evaluate(`{
      document.body.innerHTML = '<form method=post action="/post-form"><input name=a></form>';
      document.forms[0].submit();
    }`);
    await expectRefused('/post-beacon', '/post-fetch', '/post-form', '/overridden', '/rewritten');
    expect(judge.asked).toContain(`POST ${at('/post-form')}`);
  });

  test('without pagegate nothing is shown', async () => {
    const { port } = judge;
    await judge.close();
    expect((await scene.page.goto(at('/page')))?.status()).toBe(403);
    expect(await scene.page.textContent('body')).toContain('guard/unreachable');
    judge = await createJudge(judgeSite, port);
    expect((await scene.page.goto(at('/page')))?.status()).toBe(200);
    expect(reachedPaths()).toEqual(['/page']);
  });
});

describe('a browser that was open before', () => {
  const guards: Guard[] = [];
  let browser: Browser;
  const createGuard = (): Guard => {
    const server = `http://127.0.0.1:${judge.port}`;
    guards.push(new Guard({ server, key: 'pg_test', onDecision: (decision) => void seen.push(decision) }));
    return guards.at(-1)!;
  };
  beforeEach(async () => {
    browser = await launch();
  });
  afterEach(async () => {
    await browser.close();
    for (const guard of guards.splice(0)) guard.close();
  });

  test('has its pages emptied, and its other contexts are judged, too', async () => {
    const [first, second] = [await browser.newContext(), await browser.newContext()];
    const early = await first.newPage();
    await early.goto(at('/early'));
    await guardContext(first, createGuard());
    expect(early.url()).toBe('about:blank');
    await early.setContent(`<img src="${at('/denied-early')}">`);
    await expectRefused('/denied-early');
    const other = await second.newPage();
    expect((await other.goto(at('/denied-other')))?.status()).toBe(403);
  });

  test('takes one guard, for as many contexts as there are', async () => {
    const guard = createGuard();
    for (let i = 0; i < 2; i++) await guardContext(await browser.newContext(), guard);
    const another = guardContext(await browser.newContext(), createGuard());
    await expect(another).rejects.toThrow(/another guard/);
  });

  test('is refused while a service worker runs in it', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(at('/page'));
    await Promise.all([
      context.waitForEvent('serviceworker'),
      page.evaluate(`navigator.serviceWorker.register('/sw.js')`),
    ]);
    const guard = createGuard();
    await expect(guardContext(context, guard)).rejects.toThrow(/service worker/);
    // Nor by trying again, or for another context of this browser.
    await expect(guardContext(context, guard)).rejects.toThrow(/service worker/);
    await expect(guardContext(await browser.newContext(), guard)).rejects.toThrow(/service worker/);
  });

  test('is refused while a service worker is registered in it, also one that does not run', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pagegate-profile-'));
    const start = () =>
      chromium.launchPersistentContext(folder, { executablePath: '/usr/bin/chromium', args: LAUNCHED });
    try {
      const before = await start();
      await before.pages()[0]!.goto(at('/page'));
      await before
        .pages()[0]!
        .evaluate(`navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready)`);
      await before.close();
      const after = await start();
      expect(after.serviceWorkers()).toEqual([]);
      await expect(guardContext(after, createGuard())).rejects.toThrow(`service worker of ${at('/')}`);
      await after.close();
      // What the message says to do.
      rmSync(join(folder, 'Default/Service Worker'), { recursive: true });
      const cleaned = await start();
      await guardContext(cleaned, createGuard());
      expect((await cleaned.pages()[0]!.goto(at('/denied')))?.status()).toBe(403);
      await cleaned.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('its proxy', () => {
  beforeEach(async () => {
    scene = await open(true);
  });
  afterEach(() => close(scene));

  test('rebinding name: a host that leads inside is not connected to, whatever its verdict', async () => {
    const secure = await scene.page.goto(at('/page', 'rebind.example')).catch((error: Error) => error.message);
    expect(secure).toContain('ERR_TUNNEL_CONNECTION_FAILED');
    const page = await scene.context.newPage();
    expect((await page.goto(plainAt('/page', 'rebind.example')))?.status()).toBe(403);
    expect(await page.textContent('body')).toContain('rebind.example is 127.0.0.1');
    expect(seen.filter(({ id }) => id === 'inside_address').length).toBeGreaterThanOrEqual(2);
    expect(site.reached).toEqual([]);
  });

  test('rebinding name: one that leads outside first and to loopback then', async () => {
    // The first address is excepted and stands for the outside. The icon of the page would take a turn of its own.
    turns.splice(0, turns.length, '127.0.0.1', '127.0.0.2', '127.0.0.2', '127.0.0.2');
    expect((await scene.page.goto(plainAt('/page', 'turning.example')))?.status()).toBe(200);
    expect((await scene.page.goto(plainAt('/page2', 'turning.example')))?.status()).toBe(403);
    expect(reachedPaths()).toEqual(['/page']);
  });

  test('WebSocket: a worker’s reaches no place that none was allowed to, also where requests were', async () => {
    await scene.page.goto(plainAt('/page'));
    await (await scene.context.newPage()).goto(at('/page'));
    const program =
      'onmessage = (e) => { const s = new WebSocket(e.data); s.onopen = () => postMessage("open"); s.onerror = () => postMessage("error") }';
    const talk = (url: string) =>
      scene.page.evaluate(`new Promise((resolve) => {
        const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(program)}])));
        worker.onmessage = (event) => resolve(event.data);
        worker.postMessage('${url}');
      })`);
    for (const host of ['site.example', 'denied.example', 'other.example']) {
      expect(await talk(at('/chat', host).replace('https', 'wss'))).toBe('error');
      expect(await talk(plainAt('/chat', host).replace('http', 'ws'))).toBe('error');
    }
    expect(site.reached.filter((line) => line.startsWith('OPEN'))).toEqual([]);
  });

  test('WebSocket: the first script of a sandboxed frame without a URL opens none', async () => {
    await scene.page.goto(at('/frames'));
    await aWhile();
    expect(site.reached.filter((line) => line.startsWith('OPEN'))).toEqual([]);
  });

  test('fetch/XHR: what makes requests unseen is off: FedCM, and WebSocketStream in workers, too', async () => {
    await scene.page.goto(at('/page'));
    const program = 'postMessage(typeof WebSocketStream)';
    const kinds = await scene.page.evaluate(`new Promise((resolve) => {
      const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(program)}])));
      worker.onmessage = ({ data }) => resolve([data, typeof WebSocketStream, typeof IdentityCredential]);
    })`);
    expect(kinds).toEqual(['undefined', 'undefined', 'undefined']);
  });

  test('subresource: speculation rules reach no site that nothing was allowed to', async () => {
    await scene.page.goto(at('/page'));
    await scene.page.evaluate(speculate(at('/elsewhere', 'denied.example')));
    await aWhile();
    expect(site.reached.filter((line) => line.includes('denied.example'))).toEqual([]);
  });

  test('plain HTTP passes whole, and what the browser showed is not asked about twice', async () => {
    const response = await scene.page.goto(plainAt('/allowed-hop'));
    expect([response?.status(), response?.url()]).toEqual([200, plainAt('/page')]);
    expect(await scene.page.textContent('h1')).toBe('/page');
    const asked = judge.asked.filter((line) => line.includes('//site.example') && !line.endsWith('/favicon.ico'));
    expect(asked).toEqual(['/allowed-hop', '/page'].map((path) => `GET ${plainAt(path)}`));
  });

  test('another program that uses it is judged as well', async () => {
    const { port } = new URL(scene.proxy!.server);
    expect((await through(Number(port), 'GET', plainAt('/denied'))).status).toBe(403);
    expect((await through(Number(port), 'POST', plainAt('/page'))).status).toBe(403);
    expect((await through(Number(port), 'GET', plainAt('/page'))).body).toContain('/page');
    expect((await through(Number(port), 'CONNECT', `site.example:${site.securePort}`)).status).toBe(403);
    expect((await through(Number(port), 'GET', '/page')).status).toBe(502);
    expect((await through(Number(port), 'GET', 'ftp://site.example/page')).body).toContain('guard/request_target');
    expect(reachedPaths()).toEqual(['/page']);
  });
});

const CANNOT_UNSHARE = spawnSync('unshare', ['--mount', 'true']).status !== 0;

describe.skipIf(CANNOT_UNSHARE)('its Chromium policy', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pagegate-chromium-'));
    const policy = new URL('../../tools/integrations/playwright/chromium-policy.json', import.meta.url).pathname;
    // The browser gets a folder of its own in the place of /etc/chromium; the machine's stays as it is.
    const mount = `mount -t tmpfs none /etc/chromium && mkdir -p /etc/chromium/policies/managed && cp ${policy} /etc/chromium/policies/managed/`;
    const program = `#!/bin/sh\nexec unshare --mount sh -c '${mount} && exec /usr/bin/chromium "$@"' chromium "$@"\n`;
    writeFileSync(join(folder, 'chromium'), program, { mode: 0o755 });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each([
    ['without it a page prefetches unseen', '/usr/bin/chromium', true],
    ['with it it does not', undefined, false],
  ])('%s', async (_name, program, arrives) => {
    scene = await open(true, program ?? join(folder, 'chromium'));
    await scene.page.goto(at('/page'));
    await scene.page.evaluate(speculate(at('/speculated')));
    if (arrives) await expect.poll(reachedPaths).toContain('/speculated');
    await aWhile();
    expect(reachedPaths().includes('/speculated')).toBe(arrives);
    await close(scene);
  });
});
