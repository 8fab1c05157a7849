/** Puts a browser driven by Playwright under the guard. Chromium does not show WebSockets as requests, so they are judged in each page. */
import type { Browser, BrowserContext, WebSocketRoute } from 'playwright-core';
import type { Guard } from '../../../src/guard/guard.ts';
import { WEBSOCKET_METHOD } from '../../../src/guard/override-headers.ts';
import type { BrowserProxy } from '../browser/browser-proxy.ts';
import { expectNoServiceWorker, guardOnce, judgeRequests } from '../browser/judge-requests.ts';

export interface GuardContextOptions {
  /** The proxy that the browser was launched with, see `startBrowserProxy`. Without it, addresses are not checked. */
  readonly proxy?: BrowserProxy | undefined;
}

/**
 * Begins to judge all requests of a context's browser, including its other contexts: Chromium does not distinguish contexts before a request is
 * made. WebSockets are judged only in the contexts passed to this function. Open pages are emptied, because their requests would not be seen.
 *
 * @throws Error for a browser other than Chromium, one that bypasses the proxy, a second guard, or a service worker that is already registered.
 * That browser can then not be guarded.
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
  // Connections of WebSocketStream cannot be observed. Without it, pages use a WebSocket.
  await context.addInitScript('delete globalThis.WebSocketStream');
  // Routes and init scripts apply only to pages loaded afterwards.
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

/** Judges a WebSocket as a write. The page's connection is made only if that is allowed. */
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
