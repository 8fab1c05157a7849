/** The guard around Debian's Chromium, driven by Playwright. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Guard } from '../../src/guard/guard.ts';
import type { BrowserProxy } from '../../tools/integrations/browser/browser-proxy.ts';
import { guardContext } from '../../tools/integrations/playwright/guard-context.ts';
import {
  ARGS,
  at,
  aWhile,
  createGuard,
  createProxy,
  expectRefused,
  judge,
  LAUNCHED,
  pastTheProxy,
  plainAt,
  reachedPaths,
  type Scene,
  site,
  speculate,
  testBehindProxy,
  testPages,
} from './browser-tests.ts';
import { through } from './world.ts';

interface Driven extends Scene {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly proxy: BrowserProxy | undefined;
}

const launch = (proxy?: BrowserProxy, executablePath = '/usr/bin/chromium'): Promise<Browser> =>
  chromium.launch({
    executablePath,
    args: proxy === undefined ? LAUNCHED : [...ARGS, ...proxy.args],
  });

async function open(withProxy: boolean, program?: string): Promise<Driven> {
  const guard = createGuard();
  const proxy = withProxy ? await createProxy(guard) : undefined;
  const browser = await launch(proxy, program);
  const context = await browser.newContext();
  await guardContext(context, guard, proxy && { proxy });
  const page = await context.newPage();
  return {
    context,
    page,
    proxy,
    newPage: () => context.newPage(),
    pages: async () => context.pages(),
    async download(selector) {
      const [download] = await Promise.all([page.waitForEvent('download'), page.click(selector)]);
      return readFileSync(await download.path(), 'utf8');
    },
    async close() {
      await browser.close();
      proxy?.close();
      guard.close();
    },
  };
}

let scene: Driven;

describe.each([
  ['alone', false],
  ['with its proxy', true],
])('guardContext %s', (_name, withProxy) => {
  testPages(() => open(withProxy));
});

describe.each([
  ['alone', false],
  ['with its proxy', true],
])('guardContext %s judges WebSockets', (_name, withProxy) => {
  beforeEach(async () => {
    scene = await open(withProxy);
  });
  afterEach(() => scene.close());

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
    // A new frame has its own constructor.
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

  test('WebSocket: pages, frames and popups have no WebSocketStream, which the guard could not see', async () => {
    await scene.page.goto(at('/page'));
    const kinds = await scene.page.evaluate(`(() => {
      const frame = document.createElement('iframe');
      document.body.append(frame);
      return [window, frame.contentWindow, window.open('about:blank')].map((one) => typeof one.WebSocketStream);
    })()`);
    expect(kinds).toEqual(['undefined', 'undefined', 'undefined']);
  });
});

describe('a browser that was open before', () => {
  const guards: Guard[] = [];
  let browser: Browser;
  const newGuard = (): Guard => {
    guards.push(createGuard());
    return guards.at(-1)!;
  };
  beforeEach(async () => {
    browser = await launch();
  });
  afterEach(async () => {
    await browser.close();
    for (const guard of guards.splice(0)) guard.close();
  });

  test('gets its pages emptied, and its other contexts are judged, too', async () => {
    const [first, second] = [await browser.newContext(), await browser.newContext()];
    const early = await first.newPage();
    await early.goto(at('/early'));
    await guardContext(first, newGuard());
    expect(early.url()).toBe('about:blank');
    await early.setContent(`<img src="${at('/denied-early')}">`);
    await expectRefused('/denied-early');
    const other = await second.newPage();
    expect((await other.goto(at('/denied-other')))?.status()).toBe(403);
  });

  test('accepts one guard, for any number of contexts', async () => {
    const guard = newGuard();
    for (let i = 0; i < 2; i++) await guardContext(await browser.newContext(), guard);
    const another = guardContext(await browser.newContext(), newGuard());
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
    const guard = newGuard();
    await expect(guardContext(context, guard)).rejects.toThrow(/service worker/);
    // Nor by another attempt, or for another context of this browser.
    await expect(guardContext(context, guard)).rejects.toThrow(/service worker/);
    await expect(guardContext(await browser.newContext(), guard)).rejects.toThrow(/service worker/);
  });

  test('is refused while a service worker is registered in it, even one that is not running', async () => {
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
      await expect(guardContext(after, newGuard())).rejects.toThrow(`service worker of ${at('/')}`);
      await after.close();
      // As the message says.
      rmSync(join(folder, 'Default/Service Worker'), { recursive: true });
      const cleaned = await start();
      await guardContext(cleaned, newGuard());
      expect((await cleaned.pages()[0]!.goto(at('/denied')))?.status()).toBe(403);
      await cleaned.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('its proxy', () => {
  testBehindProxy(() => open(true));
});

describe('a browser that bypasses the proxy', () => {
  test('is refused', async () => {
    const guard = createGuard();
    const proxy = await createProxy(guard);
    for (const args of pastTheProxy(proxy)) {
      const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: [...ARGS, ...args] });
      const guarded = guardContext(await browser.newContext(), guard, { proxy });
      await expect(guarded, args.join(' ')).rejects.toThrow('args: proxy.args');
      await browser.close();
    }
    proxy.close();
    guard.close();
  });
});

describe('its proxy next to the guard', () => {
  beforeEach(async () => {
    scene = await open(true);
  });
  afterEach(() => scene.close());

  test('WebSocket: one of a worker only reaches places to which a WebSocket was allowed, not those of requests', async () => {
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

  test('another program that uses it is also judged', async () => {
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
    const policy = fileURLToPath(new URL('../../tools/integrations/browser/chromium-policy.json', import.meta.url));
    // The browser gets its own folder in place of /etc/chromium; the machine's is unchanged.
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
    await scene.close();
  });
});
