/**
 * Puts a browser driven by Puppeteer under the guard. Puppeteer cannot hold a WebSocket until it is judged, so WebSockets are blocked: the port
 * of the browser's proxy for them connects to no host.
 */
import type { Browser, CDPSession } from 'puppeteer-core';
import type { Guard } from '../../../src/guard/guard.ts';
import type { BrowserProxy } from '../browser/browser-proxy.ts';
import { expectNoServiceWorker, guardOnce, judgeRequests } from '../browser/judge-requests.ts';

export interface GuardBrowserOptions {
  /** The proxy that the browser was launched with, see `startBrowserProxy`. */
  readonly proxy: BrowserProxy;
}

/**
 * Begins to judge all requests of a browser, in all of its contexts. Open pages are emptied, because their requests would not be seen.
 *
 * @throws Error for a browser that bypasses the proxy or is not Chromium driven by CDP, a second guard, or a service worker that is
 * already registered. That browser can then not be guarded.
 */
export async function guardBrowser(browser: Browser, guard: Guard, { proxy }: GuardBrowserOptions): Promise<void> {
  await guardOnce(browser, guard, async () => {
    const session = await sessionOf(browser);
    await judgeRequests(session, guard, proxy);
    await Promise.all((await browser.pages(true)).map((page) => page.goto('about:blank')));
    const contexts = browser.browserContexts();
    await Promise.all(contexts.map((one) => expectNoServiceWorker(one, (page) => page.createCDPSession())));
  });
}

/** Creates a CDP session of the browser itself. */
async function sessionOf(browser: Browser): Promise<CDPSession> {
  try {
    return await browser.target().createCDPSession();
  } catch (cause) {
    const text =
      'guardBrowser: only Chromium driven by CDP can be guarded, not Firefox nor what is driven by WebDriver BiDi';
    throw new Error(text, { cause });
  }
}
