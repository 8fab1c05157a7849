/**
 * Puts a browser that Puppeteer drives under the guard. Puppeteer cannot hold a WebSocket until it is judged, so there are none: the
 * browser's proxy has a port for them that leads nowhere.
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
 * Judges everything that a browser requests from now on, in all of its contexts. Pages that are open are emptied, because what they request
 * would not be seen.
 *
 * @throws Error for a browser that was launched without the proxy or is not Chromium driven by CDP, a second guard, or a service worker that
 * is registered already: that browser is never guarded then
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

/** A session of the browser itself. */
async function sessionOf(browser: Browser): Promise<CDPSession> {
  try {
    return await browser.target().createCDPSession();
  } catch (cause) {
    const text =
      'guardBrowser: only Chromium driven by CDP can be guarded, not Firefox nor what is driven by WebDriver BiDi';
    throw new Error(text, { cause });
  }
}
