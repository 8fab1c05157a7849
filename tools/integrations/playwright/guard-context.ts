/** Puts a browser that Playwright drives under the guard. What Chromium does not show as requests, WebSockets, is judged page by page. */
import type { Browser, BrowserContext, WebSocketRoute } from 'playwright-core';
import type { Guard } from '../../../src/guard/guard.ts';
import { WEBSOCKET_METHOD } from '../../../src/guard/override-headers.ts';
import type { BrowserProxy } from '../browser/browser-proxy.ts';
import { expectNoServiceWorker, guardOnce, judgeRequests } from '../browser/judge-requests.ts';

export interface GuardContextOptions {
  /** The proxy that the browser was launched with, see `startBrowserProxy`: without it addresses are not checked. */
  readonly proxy?: BrowserProxy | undefined;
}

/**
 * Judges everything that a context's browser requests from now on, also in other contexts: Chromium does not tell them apart before a
 * request is made. WebSockets are judged in the contexts that it is called for. Pages that are open are emptied, because what they
 * request would not be seen.
 *
 * @throws Error for another browser than Chromium, one that goes past the proxy, a second guard, or a service worker that is registered
 * already: that browser is never guarded then
 */
export async function guardContext(
  context: BrowserContext,
  guard: Guard,
  { proxy }: GuardContextOptions = {},
): Promise<void> {
  const browser = context.browser();
  if (browser === null || browser.browserType().name() !== 'chromium') {
    throw new Error('guardContext: only Chromium can be guarded, it alone has CDP Fetch');
  }
  await guardOnce(browser, guard, () => guardBrowser(browser, guard, proxy));
  await context.routeWebSocket(/.*/, (socket) => judgeWebSocket(socket, guard, proxy));
  // Nothing shows what it opens; pages that miss it take a WebSocket.
  await context.addInitScript('delete globalThis.WebSocketStream');
  // A page has what was set up before it was loaded.
  await emptyPages([context]);
}

const emptyPages = (contexts: readonly BrowserContext[]): Promise<unknown> =>
  Promise.all(contexts.flatMap((one) => one.pages()).map((page) => page.goto('about:blank')));

async function guardBrowser(browser: Browser, guard: Guard, proxy: BrowserProxy | undefined): Promise<void> {
  await judgeRequests(await browser.newBrowserCDPSession(), guard, proxy);
  const contexts = browser.contexts();
  await emptyPages(contexts);
  await Promise.all(contexts.map((one) => expectNoServiceWorker(one, (page) => one.newCDPSession(page))));
}

/** A WebSocket is judged as a write; only then the page's own connection is made. */
async function judgeWebSocket(socket: WebSocketRoute, guard: Guard, proxy: BrowserProxy | undefined): Promise<void> {
  const url = socket.url().replace(/^ws/, 'http');
  try {
    await guard.enforce(url, { method: WEBSOCKET_METHOD });
    proxy?.admitWebSocket(socket.url());
    socket.connectToServer();
  } catch {
    await socket.close({ code: 1008, reason: 'refused by pagegate' });
  }
}
