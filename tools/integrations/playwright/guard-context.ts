/**
 * Puts a browser that Playwright drives under the guard. Requests are judged by CDP Fetch on a session of the browser itself: it sees
 * the pages, frames, popups and workers of every context from their first request on, every hop of a redirect and every download, and
 * there is no moment in which a new page is not watched yet. It does not see WebSockets: those are judged page by page. Nor does it see
 * what Chromium fetches on behalf of a service worker (navigation preload, races of routes, updates), so there are no service workers.
 */
import type { Browser, BrowserContext, CDPSession, WebSocketRoute } from 'playwright-core';
import type { Guard } from '../../../src/guard/guard.ts';
import { methodsOf, namesAnotherUrl, WEBSOCKET_METHOD } from '../../../src/guard/override-headers.ts';
import { RefusedError, refusalPage, refusalText } from '../../../src/guard/refusal.ts';
import type { BrowserProxy } from './browser-proxy.ts';

export interface GuardContextOptions {
  /** The proxy that the browser was launched with, see `startBrowserProxy`: without it addresses are not checked. */
  readonly proxy?: BrowserProxy | undefined;
}

/** A request that Chromium holds until it is told what to do with it. */
interface PausedRequest {
  readonly requestId: string;
  readonly resourceType: string;
  readonly request: {
    readonly url: string;
    readonly urlFragment?: string;
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
  };
}

/** What was put under a guard; a second guard on the same browser would answer in the place of the first. */
const guarded = new WeakMap<Browser, { readonly guard: Guard; readonly ready: Promise<unknown> }>();

/**
 * Judges everything that a context's browser requests from now on, also in other contexts: Chromium does not tell them apart before a
 * request is made. WebSockets are judged in the contexts that it is called for. Pages that are open are emptied, because what they
 * request would not be seen.
 *
 * @throws Error for another browser than Chromium, a second guard, or a service worker that is registered already: that browser is never
 * guarded then
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
  const before = guarded.get(browser);
  if (before !== undefined && before.guard !== guard) throw new Error('guardContext: this browser has another guard');
  const ready = before?.ready ?? guardBrowser(browser, guard, proxy);
  guarded.set(browser, { guard, ready });
  await ready;
  await context.routeWebSocket(/.*/, (socket) => judgeWebSocket(socket, guard, proxy));
  // Nothing shows what it opens; pages that miss it take a WebSocket.
  await context.addInitScript('delete globalThis.WebSocketStream');
  // A page has what was set up before it was loaded.
  await emptyPages([context]);
}

const emptyPages = (contexts: readonly BrowserContext[]): Promise<unknown> =>
  Promise.all(contexts.flatMap((one) => one.pages()).map((page) => page.goto('about:blank')));

/** Fails where a context, or the profile that it was started with, has a service worker, also one that does not run yet. */
async function expectNoServiceWorker(context: BrowserContext): Promise<void> {
  const [open] = context.pages();
  const page = open ?? (await context.newPage());
  const session = await context.newCDPSession(page);
  // Told right after the session asks for them, also where there are none.
  const listed = new Promise<readonly { readonly scopeURL: string }[]>((resolve) => {
    session.once('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => resolve(registrations));
  });
  await session.send('ServiceWorker.enable');
  const [registered] = await listed;
  if (open === undefined) await page.close();
  else await session.detach();
  if (registered === undefined) return;
  throw new Error(
    `guardContext: the service worker of ${registered.scopeURL} could make requests unseen: start with a profile that has none, ` +
      'such as this one without its folder "Default/Service Worker"',
  );
}

/** For a browser once: what fails here fails for all of its contexts, also when it is tried again. */
async function guardBrowser(browser: Browser, guard: Guard, proxy: BrowserProxy | undefined): Promise<void> {
  const session = await browser.newBrowserCDPSession();
  session.on('Fetch.requestPaused', (paused: PausedRequest) => {
    // What cannot be told to Chromium stays held: the request is not made.
    judgeRequest(session, paused, guard, proxy).catch(() => {});
  });
  await session.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
  const contexts = browser.contexts();
  await emptyPages(contexts);
  await Promise.all(contexts.map(expectNoServiceWorker));
}

async function judgeRequest(
  session: CDPSession,
  { requestId, resourceType, request }: PausedRequest,
  guard: Guard,
  proxy: BrowserProxy | undefined,
): Promise<void> {
  const { url, urlFragment = '', method, headers } = request;
  try {
    const given = Object.entries(headers);
    if (given.some(isServiceWorker)) throw guard.refuse(url, method, 'service_worker');
    if (namesAnotherUrl(given)) throw guard.refuse(url, method, 'host_header');
    for (const meant of methodsOf(method, given)) await guard.enforce(url + urlFragment, { method: meant });
    proxy?.admit(url, method);
  } catch (error) {
    await session.send('Fetch.fulfillRequest', { requestId, ...refusalResponse(error, resourceType === 'Document') });
    return;
  }
  await session.send('Fetch.continueRequest', { requestId });
}

/** Whether a header is the one by which a browser asks for the script of a service worker, and without which there is none. */
const isServiceWorker = ([name, value]: readonly [string, string]): boolean =>
  name.toLowerCase() === 'service-worker' && value === 'script';

/** A refusal in the place of a response: as a page where a page is shown, else as text. */
function refusalResponse(error: unknown, isPage: boolean) {
  const { verdict, text } =
    error instanceof RefusedError
      ? { verdict: error.verdict, text: isPage ? refusalPage(error.decision) : refusalText(error.decision) }
      : { verdict: 'error', text: 'The guard failed, so this request is refused.' };
  return {
    responseCode: 403,
    responseHeaders: [
      { name: 'content-type', value: `text/${isPage ? 'html' : 'plain'}; charset=utf-8` },
      { name: 'cache-control', value: 'no-store' },
      { name: 'x-pagegate-verdict', value: verdict },
    ],
    body: Buffer.from(text).toString('base64'),
  };
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
