/**
 * Judges what Chromium requests, whatever drives it, by CDP Fetch on a session of the browser itself: it sees the pages, frames, popups and
 * workers of every context from their first request on, every hop of a redirect and every download, and there is no moment in which a new
 * page is not watched yet. It does not see WebSockets. Nor does it see what Chromium fetches on behalf of a service worker (navigation
 * preload, races of routes, updates), so there are no service workers.
 */
import type { Guard } from '../../../src/guard/guard.ts';
import { effectiveMethods, namesAnotherUrl } from '../../../src/guard/override-headers.ts';
import { RefusedError, refusalPage, refusalText } from '../../../src/guard/refusal.ts';
import type { BrowserProxy } from './browser-proxy.ts';

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

/** A CDP session, as Playwright and Puppeteer both have it; each types its events and methods in its own way. */
interface Session {
  on(event: string, listener: (told: never) => void): unknown;
  once(event: string, listener: (told: never) => void): unknown;
  send(method: string, parameters?: object): Promise<unknown>;
}
/** Either's session. */
export type AnySession = { readonly send: unknown; readonly on: unknown; readonly once: unknown };

/** What was put under a guard; a second guard on the same browser would answer in the place of the first. */
const guarded = new WeakMap<object, { readonly guard: Guard; readonly ready: Promise<unknown> }>();

/**
 * Puts a browser under a guard once: what fails in `begin` fails for good, also when it is tried again.
 *
 * @throws Error for a second guard
 */
export async function guardOnce(browser: object, guard: Guard, begin: () => Promise<unknown>): Promise<void> {
  const before = guarded.get(browser);
  if (before !== undefined && before.guard !== guard) throw new Error('this browser has another guard');
  const ready = before?.ready ?? begin();
  guarded.set(browser, { guard, ready });
  await ready;
}

/** What Chromium follows in the place of `--proxy-server`. */
const OTHER_WAYS = ['--no-proxy-server', '--proxy-pac-url', '--proxy-auto-detect'];
const switchOf = (argument: string): string => argument.replace(/=.*/s, '');

/** @throws Error where the browser was launched so that it goes past the proxy: of several arguments of one name it takes the last */
async function expectProxy(session: Session, { args }: BrowserProxy): Promise<void> {
  const { commandLine } = (await session.send('SystemInfo.getInfo')) as { readonly commandLine: string };
  const launched = new Map(commandLine.split(' ').map((argument) => [switchOf(argument), argument]));
  const isTaken = args.every((argument) => launched.get(switchOf(argument)) === argument);
  if (isTaken && !OTHER_WAYS.some((name) => launched.has(name))) return;
  throw new Error('the browser goes past the proxy: launch it with args: proxy.args, after any others');
}

/**
 * Judges every request from now on, on a session of the browser.
 *
 * @throws Error where the browser goes past the proxy that it is to have
 */
export async function judgeRequests(any: AnySession, guard: Guard, proxy: BrowserProxy | undefined): Promise<void> {
  const session = any as Session;
  if (proxy !== undefined) await expectProxy(session, proxy);
  session.on('Fetch.requestPaused', (paused: PausedRequest) => {
    // What cannot be told to Chromium stays held: the request is not made.
    judgeRequest(session, paused, guard, proxy).catch(() => {});
  });
  await session.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
}

/** A context of a browser, as Playwright and Puppeteer both have it. */
interface Context<P> {
  pages(): P[] | Promise<P[]>;
  newPage(): Promise<P>;
}

/**
 * Looks for service workers of a context, or of the profile that it was started with, also for one that does not run yet.
 *
 * @throws Error where there is one
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

/** @throws Error where the context of a session's page has a service worker */
async function refuseServiceWorkers(session: Session): Promise<void> {
  // Told right after the session asks for them, also where there are none.
  const listed = new Promise<readonly { readonly scopeURL: string }[]>((resolve) => {
    const tell = ({ registrations }: { registrations: readonly { scopeURL: string }[] }): void =>
      resolve(registrations);
    session.once('ServiceWorker.workerRegistrationUpdated', tell);
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
    const given = Object.entries(headers);
    if (given.some(isServiceWorker)) throw guard.refuse(url, method, 'service_worker');
    if (namesAnotherUrl(given)) throw guard.refuse(url, method, 'host_header');
    for (const meant of effectiveMethods(method, given)) await guard.enforce(url + urlFragment, { method: meant });
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
