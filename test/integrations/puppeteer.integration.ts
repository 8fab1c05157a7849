/** The guard around Debian's Chromium, driven by Puppeteer. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, connect, launch, type Page } from 'puppeteer-core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Guard } from '../../src/guard/guard.ts';
import type { BrowserProxy } from '../../tools/integrations/browser/browser-proxy.ts';
import { guardBrowser } from '../../tools/integrations/puppeteer/guard-browser.ts';
import {
  ARGS,
  at,
  aWhile,
  createGuard,
  createProxy,
  expectRefused,
  pastTheProxy,
  plainAt,
  type Scene,
  site,
  testBehindProxy,
  testPages,
} from './browser-tests.ts';

let guard: Guard;
let proxy: BrowserProxy;
let folder: string;

const start = (args: readonly string[] = proxy.args, userDataDir?: string): Promise<Browser> =>
  launch({
    executablePath: '/usr/bin/chromium',
    args: [...ARGS, ...args],
    downloadBehavior: { policy: 'allow', downloadPath: folder },
    ...(userDataDir !== undefined && { userDataDir }),
  });

beforeEach(async () => {
  guard = createGuard();
  proxy = await createProxy(guard);
  folder = mkdtempSync(join(tmpdir(), 'pagegate-puppeteer-'));
});
afterEach(() => {
  proxy.close();
  guard.close();
  rmSync(folder, { recursive: true });
});

async function open(): Promise<Scene> {
  const browser = await start();
  await guardBrowser(browser, guard, { proxy });
  const page = await browser.newPage();
  return {
    page,
    newPage: () => browser.newPage(),
    pages: () => browser.pages(),
    async download(selector) {
      const path = join(folder, 'a.bin');
      await page.click(selector);
      await expect.poll(() => existsSync(path)).toBe(true);
      return readFileSync(path, 'utf8');
    },
    close: () => browser.close(),
  };
}

describe('guardBrowser', () => {
  testPages(open);
});

describe('its proxy', () => {
  testBehindProxy(open);

  test('a request that the program itself intercepts is judged as the program forwards it', async () => {
    const scene = await open();
    try {
      const page = scene.page as Page;
      await page.setRequestInterception(true);
      page.on('request', (request) => {
        const { pathname } = new URL(request.url());
        if (pathname === '/turned') request.continue({ url: at('/denied') });
        else if (pathname === '/posted') request.continue({ method: 'POST', postData: 'x' });
        else request.continue();
      });
      expect((await page.goto(at('/page')))?.status()).toBe(200);
      expect((await page.goto(at('/turned')))?.status()).toBe(403);
      expect((await page.goto(at('/posted')))?.status()).toBe(403);
      expect(site.reached).toEqual(['GET site.example /page']);
    } finally {
      await scene.close();
    }
  });

  test('WebSocket: none opens, in a page, a frame, a popup or a worker, even if requests were allowed', async () => {
    const scene = await open();
    try {
      await scene.page.goto(at('/page'));
      await scene.page.goto(plainAt('/page'));
      const [secure, plain] = [at('/chat').replace('https', 'wss'), plainAt('/chat').replace('http', 'ws')];
      const talk = `(url, place) => new Promise((resolve) => {
        const socket = new place.WebSocket(url);
        socket.onopen = () => resolve('open');
        socket.onerror = () => resolve('error');
      })`;
      const worker = `onmessage = (e) => (${talk})(e.data, globalThis).then(postMessage)`;
      const said = await scene.page.evaluate(`(async () => {
        const frame = document.createElement('iframe');
        document.body.append(frame);
        const talk = ${talk};
        const program = URL.createObjectURL(new Blob([${JSON.stringify(worker)}]));
        const work = (url) => new Promise((resolve) => {
          const one = new Worker(program);
          one.onmessage = (event) => resolve(event.data);
          one.postMessage(url);
        });
        const said = [];
        for (const url of ['${secure}', '${plain}']) {
          for (const place of [window, frame.contentWindow, window.open('about:blank')]) said.push(await talk(url, place));
          said.push(await work(url));
        }
        return said;
      })()`);
      expect(said).toEqual(Array(8).fill('error'));
      await scene.page.goto(at('/frames'));
      await aWhile();
      expect(site.reached.filter((line) => line.startsWith('OPEN'))).toEqual([]);
      await scene.page.goto(plainAt('/page'));
      // The proxy is what refuses them.
      for (const url of [secure, plain]) {
        proxy.admitWebSocket(url);
        expect(await scene.page.evaluate(`(${talk})('${url}', window)`)).toBe('open');
      }
    } finally {
      await scene.close();
    }
  });
});

describe('a browser that was open before', () => {
  let browser: Browser;
  afterEach(() => browser.close());

  test('gets its pages emptied, and all of its contexts are judged, including later ones', async () => {
    browser = await start();
    const before = await browser.createBrowserContext();
    const early = await before.newPage();
    // The proxy passes nothing on that was not allowed.
    proxy.admit(at('/early'), 'GET');
    await early.goto(at('/early'));
    await guardBrowser(browser, guard, { proxy });
    expect(early.url()).toBe('about:blank');
    await early.setContent(`<img src="${at('/denied-early')}">`, { waitUntil: [] });
    await expectRefused('/denied-early');
    for (const context of [before, await browser.createBrowserContext()]) {
      const page = await context.newPage();
      expect((await page.goto(at('/denied-other')))?.status()).toBe(403);
    }
  });

  test('accepts one guard, and is refused if it bypasses the proxy', async () => {
    for (const args of pastTheProxy(proxy)) {
      browser = await start(args);
      await expect(guardBrowser(browser, guard, { proxy }), args.join(' ')).rejects.toThrow('args: proxy.args');
      // Nor if it runs elsewhere.
      const elsewhere = await connect({ browserWSEndpoint: browser.wsEndpoint() });
      await expect(guardBrowser(elsewhere, guard, { proxy })).rejects.toThrow('args: proxy.args');
      await browser.close();
    }
    browser = await start();
    for (let i = 0; i < 2; i++) await guardBrowser(browser, guard, { proxy });
    const another = createGuard();
    await expect(guardBrowser(browser, another, { proxy })).rejects.toThrow(/another guard/);
    another.close();
  });

  test('is refused while a service worker is registered in it, even one that is not running', async () => {
    const profile = join(folder, 'profile');
    browser = await start(proxy.args, profile);
    proxy.admit(at('/page'), 'GET');
    const page = await browser.newPage();
    await page.goto(at('/page'));
    await page.evaluate(`navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready)`);
    await expect(guardBrowser(browser, guard, { proxy })).rejects.toThrow(`service worker of ${at('/')}`);
    // Nor by another attempt.
    await expect(guardBrowser(browser, guard, { proxy })).rejects.toThrow(/service worker/);
    await browser.close();
    browser = await start(proxy.args, profile);
    await expect(guardBrowser(browser, guard, { proxy })).rejects.toThrow(`service worker of ${at('/')}`);
    await browser.close();
    // As the message says.
    rmSync(join(profile, 'Default/Service Worker'), { recursive: true });
    browser = await start(proxy.args, profile);
    await guardBrowser(browser, guard, { proxy });
    expect((await (await browser.newPage()).goto(at('/denied')))?.status()).toBe(403);
  });
});
