/**
 * Judges the requests of Chromium, for any driver, with CDP Fetch on a session of the browser itself. This session sees the pages, frames, popups
 * and workers of every context from their first request on, every hop of a redirect and every download. There is no gap before a new page is
 * watched. It does not see WebSockets, nor what Chromium fetches on behalf of a service worker (navigation preload, races of routes, updates). So
 * service workers are refused.
 */
import type { Guard } from '../../../src/guard/guard.ts';
import { effectiveMethods, namesAnotherUrl } from '../../../src/guard/override-headers.ts';
import { RefusedError, refusalPage, refusalText } from '../../../src/guard/refusal.ts';
import type { BrowserProxy } from './browser-proxy.ts';

/** A request that Chromium holds until it is continued, failed or fulfilled. */
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

/** The common interface of Playwright's and Puppeteer's CDP sessions, which have different types for events and methods. */
interface Session {
  on(event: string, listener: (event: never) => void): unknown;
  once(event: string, listener: (event: never) => void): unknown;
  send(method: string, parameters?: object): Promise<unknown>;
}
/** A session of either library. */
export type AnySession = { readonly send: unknown; readonly on: unknown; readonly once: unknown };

/** The guarded browsers. Each has only one guard, because a second one would answer instead of the first. */
const guarded = new WeakMap<object, { readonly guard: Guard; readonly ready: Promise<unknown> }>();

/**
 * Puts a browser under a guard once. If `begin` fails, every later call for this browser fails with the same error.
 *
 * @throws Error if the browser has another guard
 */
export async function guardOnce(browser: object, guard: Guard, begin: () => Promise<unknown>): Promise<void> {
  const before = guarded.get(browser);
  if (before !== undefined && before.guard !== guard) throw new Error('this browser has another guard');
  const ready = before?.ready ?? begin();
  guarded.set(browser, { guard, ready });
  await ready;
}

/** Switches that Chromium prefers to `--proxy-server`. */
const OTHER_WAYS = ['--no-proxy-server', '--proxy-pac-url', '--proxy-auto-detect'];
const switchOf = (argument: string): string => argument.replace(/=.*/s, '');

/** @throws Error if the browser was launched in a way that bypasses the proxy. Chromium uses the last of several arguments of one name. */
async function expectProxy(session: Session, { args }: BrowserProxy): Promise<void> {
  const { commandLine } = (await session.send('SystemInfo.getInfo')) as { readonly commandLine: string };
  const launched = new Map(commandLine.split(' ').map((argument) => [switchOf(argument), argument]));
  const isTaken = args.every((argument) => launched.get(switchOf(argument)) === argument);
  if (isTaken && !OTHER_WAYS.some((name) => launched.has(name))) return;
  throw new Error('the browser goes past the proxy: launch it with args: proxy.args, after any others');
}

/**
 * Begins to judge every request on a session of the browser.
 *
 * @throws Error if the browser bypasses the given proxy
 */
export async function judgeRequests(any: AnySession, guard: Guard, proxy: BrowserProxy | undefined): Promise<void> {
  const session = any as Session;
  if (proxy !== undefined) await expectProxy(session, proxy);
  session.on('Fetch.requestPaused', (paused: PausedRequest) => {
    // If the decision cannot be sent to Chromium, the request stays paused and is not made.
    judgeRequest(session, paused, guard, proxy).catch(() => {});
  });
  await session.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
}

/** The common interface of Playwright's and Puppeteer's browser contexts. */
interface Context<P> {
  pages(): P[] | Promise<P[]>;
  newPage(): Promise<P>;
}

/**
 * Checks that a context, or the profile that it was started with, has no registered service worker, running or not.
 *
 * @throws Error if there is one
 */
export async function expectNoServiceWorker<P extends { close(): Promise<void> }>(
  context: Context<P>,
  sessionOf: (page: P) => Promise<AnySession & { detach(): Promise<void> }>,
): Promise<void> {
  const [open] = await context.pages();
  const page = open ?? (await context.newPage());
  const session = await sessionOf(page);
  try {
    await refuseServiceWorkers(session as unknown as Session);
  } finally {
    await (open === undefined ? page.close() : session.detach());
  }
}

/** @throws Error if the context of the session's page has a service worker */
async function refuseServiceWorkers(session: Session): Promise<void> {
  // This event comes directly after the session enables the domain, even if there are no service workers.
  const listed = new Promise<readonly { readonly scopeURL: string }[]>((resolve) => {
    const onUpdated = ({ registrations }: { registrations: readonly { scopeURL: string }[] }): void =>
      resolve(registrations);
    session.once('ServiceWorker.workerRegistrationUpdated', onUpdated);
  });
  await session.send('ServiceWorker.enable');
  const [registered] = await listed;
  if (registered === undefined) return;
  throw new Error(
    `the service worker of ${registered.scopeURL} could make requests unseen: start with a profile that has none, ` +
      'such as this one without its folder "Default/Service Worker"',
  );
}

async function judgeRequest(
  session: Session,
  { requestId, resourceType, request }: PausedRequest,
  guard: Guard,
  proxy: BrowserProxy | undefined,
): Promise<void> {
  const { url, urlFragment = '', method, headers } = request;
  try {
    const pairs = Object.entries(headers);
    if (pairs.some(isServiceWorker)) throw guard.refuse(url, method, 'service_worker');
    if (namesAnotherUrl(pairs)) throw guard.refuse(url, method, 'host_header');
    for (const meant of effectiveMethods(method, pairs)) await guard.enforce(url + urlFragment, { method: meant });
    proxy?.admit(url, method);
  } catch (error) {
    await session.send('Fetch.fulfillRequest', { requestId, ...refusalResponse(error, resourceType === 'Document') });
    return;
  }
  await session.send('Fetch.continueRequest', { requestId });
}

/** Whether a header marks the request for a service worker's script. Without such a request, no service worker is registered. */
const isServiceWorker = ([name, value]: readonly [string, string]): boolean =>
  name.toLowerCase() === 'service-worker' && value === 'script';

/** Returns the response for a refused request: a page for a navigation, otherwise text. */
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
