/** A guarded browser, with any driver: the site that tries to send it everywhere, and the tests. Each tests one way out of a page. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Guard } from '../../src/guard/guard.ts';
import type { Decision } from '../../src/guard/refusal.ts';
import { type BrowserProxy, startBrowserProxy } from '../../tools/integrations/browser/browser-proxy.ts';
import { createWebSite, html, type Pages, script, type WebSite } from './site.ts';
import { createJudge, type Judge, verdict } from './world.ts';

/** The methods of a page that these tests use, common to Playwright and Puppeteer. */
export interface Page {
  goto(url: string): Promise<{ status(): number; headers(): Record<string, string>; url(): string } | null>;
  evaluate(program: string): Promise<unknown>;
  click(selector: string): Promise<void>;
  frames(): readonly Pick<Page, 'evaluate'>[];
}

/** A guarded browser. */
export interface Scene {
  readonly page: Page;
  newPage(): Promise<Page>;
  pages(): Promise<readonly Page[]>;
  /** Returns what a click on a link downloads. */
  download(selector: string): Promise<string>;
  close(): Promise<void>;
}

/** Without these Chromium contacts its vendor's services. As root it needs the first one. */
export const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
].concat(['--disable-component-update', '--disable-sync', '--ignore-certificate-errors']);
/** The same for a browser without the proxy. */
export const LAUNCHED = [...ARGS, '--host-resolver-rules=MAP *.example 127.0.0.1'];
/** Arguments that make a browser bypass its proxy. */
export const pastTheProxy = ({ args, server }: BrowserProxy): readonly (readonly string[])[] => [
  [],
  [`--proxy-server=${server}`, ...args.slice(1)],
  ...['--no-proxy-server', '--proxy-server=direct://', '--proxy-pac-url=data:,x', '--disable-blink-features=X'].map(
    (later) => [...args, later],
  ),
];
export const NAMES = ['site.example', 'other.example', 'denied.example'];
/** How long a page may take after a request. There is no event for something that does not happen. */
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
  // Enough frames that one of them would probably be faster than the script put into it.
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
  // The fetches of these two start while the worker is still busy, and their results are never shown.
  '/sw-preload.js': script(`
    const ready = async () => { await registration.navigationPreload.enable(); await clients.claim(); };
    onactivate = (e) => e.waitUntil(ready());
    onfetch = (e) => e.request.mode === 'navigate' && e.respondWith(e.preloadResponse);`),
  '/sw-race.js': script(`
    oninstall = (e) => e.addRoutes({ condition: { urlPattern: '/*' }, source: 'race-network-and-fetch-handler' });
    onfetch = (e) => e.respondWith(new Response('later'));`),
};

export let site: WebSite;
export let judge: Judge;
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

export const seen: Decision[] = [];
/** The addresses of turning.example, one for each query. */
export const turns: string[] = [];

export function lookup(
  name: string,
  _options: object,
  found: (error: Error | null, address: string, family: number) => void,
): void {
  const address = name === 'turning.example' ? turns.shift() : '127.0.0.1';
  if (name.endsWith('.example') && address !== undefined) found(null, address, 4);
  else found(new Error(`no such name: ${name}`), '', 0);
}

export const createGuard = (): Guard =>
  new Guard({
    server: `http://127.0.0.1:${judge.port}`,
    key: 'pg_test',
    timeoutMs: 1_000,
    exceptions: Object.fromEntries([...NAMES, 'turning.example'].map((name) => [name, '127.0.0.1'])),
    onDecision: (decision) => void seen.push(decision),
  });

export const createProxy = (guard: Guard): Promise<BrowserProxy> => startBrowserProxy(guard, { lookup });

beforeEach(() => {
  site.reached.length = 0;
  judge.asked.length = 0;
  seen.length = 0;
});

export const at = (path: string, host = 'site.example') => `https://${host}:${site.securePort}${path}`;
export const plainAt = (path: string, host = 'site.example') => `http://${host}:${site.plainPort}${path}`;
export const reachedPaths = () => site.reached.map((line) => line.split(' ')[2]!);
export const aWhile = () => new Promise((resolve) => setTimeout(resolve, A_WHILE_MS));

/** Makes a page prefetch a URL by speculation rules, which CDP Fetch does not see. */
export const speculate = (url: string) => `{
  const script = document.createElement('script');
  script.type = 'speculationrules';
  script.text = '{"prefetch":[{"source":"list","urls":["${url}"]}]}';
  document.head.append(script);
}`;

/** Checks that these paths did not arrive, and that each was refused. */
export async function expectRefused(...paths: string[]): Promise<void> {
  const refused = () => seen.filter(({ verdict: given }) => given !== 'allow').map(({ url }) => new URL(url).pathname);
  await expect.poll(refused).toEqual(expect.arrayContaining(paths));
  await aWhile();
  expect(reachedPaths().filter((path) => paths.includes(path))).toEqual([]);
}

/** Returns the text of the first element that matches a selector. */
const textOf = (page: Page, selector: string): Promise<unknown> =>
  page.evaluate(`document.querySelector('${selector}')?.textContent`);

/** Tests for every guarded browser. */
export function testPages(open: () => Promise<Scene>): void {
  let scene: Scene;
  beforeEach(async () => {
    scene = await open();
  });
  afterEach(() => scene.close());

  test('page: an allowed one is shown, a refused one is a page that says why', async () => {
    const { page } = scene;
    expect((await page.goto(at('/page')))?.status()).toBe(200);
    expect(await textOf(page, 'h1')).toBe('/page');
    const refused = await page.goto(at('/denied'));
    expect([refused?.status(), refused?.headers()['x-pagegate-verdict']]).toEqual([403, 'deny']);
    expect(await textOf(page, 'body')).toContain('pagegate refused GET https://site.example');
    expect(await textOf(page, 'body')).toContain('deny (rules/login). note of login');
    // Playwright still works after a refusal.
    expect((await page.goto(at('/page2')))?.status()).toBe(200);
    expect(reachedPaths()).toEqual(['/page', '/page2']);
  });

  test('page: flagged, unjudged and other schemes are refused, fragments are judged', async () => {
    const { page } = scene;
    expect((await page.goto(at('/flagged')))?.status()).toBe(403);
    expect((await page.goto(at('/broken')))?.status()).toBe(403);
    expect(await textOf(page, 'body')).toContain('status_503');
    expect((await page.goto('file:///etc/hostname'))?.status()).toBe(403);
    expect(await textOf(page, 'body')).toContain('guard/request_target');
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
    await expect.poll(() => textOf(scene.page, 'h1')).toBe('Refused by pagegate');
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
    await expect.poll(reachedPaths).toContain('/frame');
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

  test('popup: by a link, by a script, and with no opener', async () => {
    await scene.page.goto(at('/links'));
    const before = (await scene.pages()).length;
    await scene.page.click('#popup');
    await scene.page.evaluate(`{ window.open('/denied-opened', '_blank', 'noopener') }`);
    await expect.poll(async () => (await scene.pages()).length).toBe(before + 2);
    await expectRefused('/denied', '/denied-opened');
    const shown = async () => Promise.all((await scene.pages()).map((page) => textOf(page, 'h1')));
    await expect.poll(shown).toEqual(expect.arrayContaining(['Refused by pagegate', 'Refused by pagegate']));
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
    expect(await scene.download('#file')).toBe('data');
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
    expect(await textOf(scene.page, 'body')).toContain('guard/unreachable');
    judge = await createJudge(judgeSite, port);
    expect((await scene.page.goto(at('/page')))?.status()).toBe(200);
    expect(reachedPaths()).toEqual(['/page']);
  });
}

/** Tests for a browser behind its proxy. */
export function testBehindProxy(open: () => Promise<Scene>): void {
  let scene: Scene;
  beforeEach(async () => {
    scene = await open();
  });
  afterEach(() => scene.close());

  test('rebinding name: a host with an internal address is not connected to, whatever its verdict', async () => {
    const secure = await scene.page.goto(at('/page', 'rebind.example')).catch((error: Error) => error.message);
    expect(secure).toContain('ERR_TUNNEL_CONNECTION_FAILED');
    const page = await scene.newPage();
    expect((await page.goto(plainAt('/page', 'rebind.example')))?.status()).toBe(403);
    expect(await textOf(page, 'body')).toContain('rebind.example is 127.0.0.1');
    expect(seen.filter(({ id }) => id === 'inside_address').length).toBeGreaterThanOrEqual(2);
    expect(site.reached).toEqual([]);
  });

  test('rebinding name: one that is public first and loopback later', async () => {
    // The first address is excepted and stands for a public one. A request for the page's icon would use up an address.
    turns.splice(0, turns.length, '127.0.0.1', '127.0.0.2', '127.0.0.2', '127.0.0.2');
    expect((await scene.page.goto(plainAt('/page', 'turning.example')))?.status()).toBe(200);
    expect((await scene.page.goto(plainAt('/page2', 'turning.example')))?.status()).toBe(403);
    expect(reachedPaths()).toEqual(['/page']);
  });

  test('fetch/XHR: features with invisible requests are off: FedCM, and WebSocketStream, in workers, too', async () => {
    await scene.page.goto(at('/page'));
    const program = 'postMessage(typeof WebSocketStream)';
    const kinds = await scene.page.evaluate(`new Promise((resolve) => {
      const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(program)}])));
      worker.onmessage = ({ data }) => resolve([data, typeof WebSocketStream, typeof IdentityCredential]);
    })`);
    expect(kinds).toEqual(['undefined', 'undefined', 'undefined']);
  });

  test('subresource: speculation rules reach only sites to which a request was allowed', async () => {
    await scene.page.goto(at('/page'));
    await scene.page.evaluate(speculate(at('/elsewhere', 'denied.example')));
    await aWhile();
    expect(site.reached.filter((line) => line.includes('denied.example'))).toEqual([]);
  });

  test('plain HTTP passes unchanged, and requests from the browser are not judged twice', async () => {
    const response = await scene.page.goto(plainAt('/allowed-hop'));
    expect([response?.status(), response?.url()]).toEqual([200, plainAt('/page')]);
    expect(await textOf(scene.page, 'h1')).toBe('/page');
    const asked = judge.asked.filter((line) => line.includes('//site.example') && !line.endsWith('/favicon.ico'));
    expect(asked).toEqual(['/allowed-hop', '/page'].map((path) => `GET ${plainAt(path)}`));
  });
}
