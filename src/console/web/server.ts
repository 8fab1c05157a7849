/** The console's HTTP server: every request passes the same checks before a page handles it. */
import { hash } from 'node:crypto';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { formatAddress, type Network, parseAddress, parseNetwork } from '../../network/address.ts';
import { clientAddress } from '../../network/client-address.ts';
import { http, https } from '../../platform/http.ts';
import type { ConsoleContext } from '../context.ts';
import { ShortCache } from '../short-cache.ts';
import { isCurrent } from '../sign-in.ts';
import { createToken, hashToken } from '../store/passwords.ts';
import type { Session } from '../store/sessions.ts';
import { html } from './html.ts';
import type { Frame } from './layout.ts';
import { Notices } from './notices.ts';
import { cookieOf, Fields, HttpRefusal, readForm, signedOut } from './request.ts';
import { findRoute, type Page, type Redirect, type Reply, type Route, type Visit } from './route.ts';
import { checkHost, checkOrigin, originOf, SECURITY_HEADERS } from './security.ts';
import { sendAsset, sendDownload, sendPage } from './send.ts';
import { WaitingConnections } from './waiting-connections.ts';

/** `__Host-`: browsers accept it only over TLS or from localhost, send it to this host only, and no other host can set it. */
const SESSION_COOKIE = '__Host-pagegate';
/** The cookie to which forms are bound before the sign-in. */
const FORM_COOKIE = '__Host-pagegate-form';
const COOKIE_ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Strict';

/** A form that is sent again within this time is processed once. Longer than a change takes or a browser waits for it. */
const SENT_MS = 60_000;
const URL_MAX_LENGTH = LIMITS.consoleUrlCharacters.value;
/** Maximum number of requests that are handled at a time; further ones are refused with 503. */
const BUSY_MAX = LIMITS.consoleRequests.value;
const CONNECTIONS_MAX = LIMITS.consoleConnections.value;

export interface ServerCertificate {
  readonly chain: string;
  readonly key: string;
}

/** Timeouts for a browser, in milliseconds. */
export interface Timeouts {
  readonly headersMs: number;
  readonly requestMs: number;
  /** Time without a byte in either direction. */
  readonly idleMs: number;
  /** Interval at which the first two are checked. */
  readonly checkMs: number;
}

const TIMEOUTS: Timeouts = {
  headersMs: LIMITS.consoleHeadersMs.value,
  requestMs: LIMITS.consoleRequestMs.value,
  idleMs: LIMITS.consoleIdleMs.value,
  checkMs: 1_000,
};

export interface WebOptions {
  readonly app: ConsoleContext;
  readonly routes: readonly Route[];
  readonly allowedNames: () => ReadonlySet<string>;
  readonly certificate: ServerCertificate | undefined;
  /** By default those in `LIMITS`. */
  readonly timeouts?: Timeouts;
  /** Called for every error that is a defect. */
  readonly onFailure: (error: unknown) => void;
}

/** Creates the server; it does not listen yet. */
export function createWebServer(options: WebOptions): Server {
  const web = new Web(options);
  const listener: RequestListener = (req, res) => void web.handle(req, res);
  const { certificate, timeouts = TIMEOUTS } = options;
  const limits = {
    maxHeaderSize: LIMITS.consoleHeadersBytes.value,
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    connectionsCheckingInterval: timeouts.checkMs,
  };
  const server =
    certificate === undefined
      ? http.createServer(limits, listener)
      : https.createServer(
          { ...limits, cert: certificate.chain, key: certificate.key, minVersion: 'TLSv1.2' },
          listener,
        );
  server.maxConnections = CONNECTIONS_MAX;
  server.on('connection', (socket) => web.connections.opened(socket));
  server.setTimeout(timeouts.idleMs);
  return server;
}

class Web {
  readonly #options: WebOptions;
  readonly #base: string;
  readonly #proxies: readonly Network[];
  readonly #notices = new Notices();
  /** Replies to recently sent forms. */
  readonly #sent = new ShortCache();
  /** Limited so that connections with a request in progress always fit as well. */
  readonly connections = new WaitingConnections(CONNECTIONS_MAX - BUSY_MAX);
  #busy = 0;

  constructor(options: WebOptions) {
    this.#options = options;
    this.#base = options.app.config.console.base_path;
    this.#proxies = options.app.config.burst.trusted_proxies.map((text) => parseNetwork(text)!);
  }

  async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    // Taken now: a request whose connection has closed has no socket any more.
    const { socket } = req;
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) res.setHeader(name, value);
    res.setHeader('cache-control', 'no-store');
    try {
      checkHost(req, this.#options.allowedNames());
      await this.#answer(req, res, socket);
    } catch (error) {
      await this.#fail(req, res, error);
    } finally {
      this.connections.answered(socket);
    }
  }

  async #answer(req: IncomingMessage, res: ServerResponse, socket: Socket): Promise<void> {
    const url = req.url ?? '';
    if (url.length > URL_MAX_LENGTH)
      throw new HttpRefusal(414, `Expected an address of at most ${URL_MAX_LENGTH} characters.`);
    const [, full = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(url) ?? [];
    if (!full.startsWith(this.#base)) {
      if (`${full}/` === this.#base) return this.#redirect(res, { kind: 'redirect', to: '/' }, undefined);
      throw new HttpRefusal(404, 'There is nothing here.');
    }
    const path = `/${full.slice(this.#base.length)}`;
    const method = req.method === 'HEAD' ? 'GET' : (req.method ?? '');
    if (path.startsWith('/assets/')) return sendAsset(req, res, path.slice('/assets/'.length));
    const { route, params, methods } = findRoute(this.#options.routes, method, path);
    if (route === undefined) {
      if (methods.length === 0) throw new HttpRefusal(404, 'There is nothing here.');
      res.setHeader('allow', methods.join(', '));
      if (method === 'GET') throw new HttpRefusal(405, 'Only the form of a page leads here: begin at that page.');
      throw new HttpRefusal(405, `Expected ${methods.join(' or ')}.`);
    }
    if (isFromElsewhere(req)) return sendPage(req, res, openedAgain(url), { ...NOBODY, base: this.#base });
    const [secret, ...earlier] = this.#formSecrets(req, res);
    let form = new Fields('');
    if (method === 'POST') {
      checkOrigin(req);
      form = await readForm(req);
      // A sign-in form that is sent twice may come with the session cookie that the first one has set.
      const secrets = route.roles === 'anybody' ? [secret, ...earlier] : [secret];
      if (!secrets.some((one) => form.get('csrf').split('.', 1)[0] === formToken(one)))
        throw new HttpRefusal(403, 'The form is out of date: go back, load the page anew, and try again.');
    }
    const abort = new AbortController();
    res.once('close', () => abort.abort());
    const request = {
      app: this.#options.app,
      base: this.#base,
      path,
      params,
      query: new Fields(query),
      form,
      csrf: `${formToken(secret)}.${createToken()}`,
      address: visitorAddress(req, this.#proxies),
      origin: originOf(req),
      signal: abort.signal,
    };
    await this.#work(socket, async () => {
      const visit = { ...request, session: await this.#session(req) };
      try {
        await this.#send(req, res, await this.#replyOnce(route, visit), visit);
      } catch (error) {
        await this.#fail(req, res, error, { ...visit, notices: [] });
      }
    });
  }

  /** Runs a task within the limit of concurrent requests. Only complete requests count, so slow senders block nobody. @throws HttpRefusal 503 */
  async #work(socket: Socket, task: () => Promise<void>): Promise<void> {
    if (this.#busy >= BUSY_MAX)
      throw new HttpRefusal(503, 'The console has too much to do at once; try again in a moment.');
    this.#busy += 1;
    this.connections.busy(socket);
    try {
      await task();
    } finally {
      this.#busy -= 1;
    }
  }

  /**
   * Processes a form once even if it is sent twice, for example by a double click, and gives both the same reply. Forms differ because
   * every page has its own token.
   */
  #replyOnce(route: Route, visit: Visit): Promise<Reply> {
    if (route.method !== 'POST') return this.#reply(route, visit);
    const name = hash('sha256', `${visit.path} ${visit.form}`, 'base64url');
    return this.#sent.get(name, SENT_MS, () => this.#reply(route, visit));
  }

  async #reply(route: Route, visit: Visit): Promise<Reply> {
    if (route.roles === 'anybody') return route.handle(visit);
    const { session } = visit;
    if (session === undefined) {
      if (route.method === 'POST') throw signedOut();
      return { kind: 'redirect', to: signInBefore(this.#base, askedFor(visit)) };
    }
    if (!route.roles.includes(session.role)) {
      if (visit.path === '/' && session.role === 'account') return { kind: 'redirect', to: '/account' };
      throw new HttpRefusal(403, `This is for the role ${route.roles.join(' or ')}; yours is ${session.role}.`);
    }
    return route.handle({ ...visit, session });
  }

  async #session(req: IncomingMessage): Promise<Session | undefined> {
    const token = cookieOf(req, this.#cookieName(SESSION_COOKIE, req));
    if (token === undefined) return undefined;
    const session = this.#options.app.store.sessions.find(token, !isRenewal(req));
    return session !== undefined && (await isCurrent(this.#options.app, session)) ? session : undefined;
  }

  /** Returns the secrets to which this browser's forms are bound, that of new forms first. Sets a cookie if there is none. */
  #formSecrets(req: IncomingMessage, res: ServerResponse): readonly [string, ...string[]] {
    const names = [SESSION_COOKIE, FORM_COOKIE].map((name) => this.#cookieName(name, req));
    const [secret, ...earlier] = names.flatMap((name) => cookieOf(req, name) ?? []);
    if (secret !== undefined) return [secret, ...earlier];
    const made = createToken();
    res.appendHeader('set-cookie', `${this.#cookieName(FORM_COOKIE, req)}=${made}; ${COOKIE_ATTRIBUTES}`);
    return [made];
  }

  /** Browsers store cookies by host only, so the name includes port and base path: several consoles on one host (tunnels) stay apart. */
  #cookieName(name: string, { headers: { host = '' } }: IncomingMessage): string {
    const [, port = ''] = /:(\d+)$/.exec(host) ?? [];
    return [name, port, ...this.#base.split('/')].filter((part) => part !== '').join('-');
  }

  #send(req: IncomingMessage, res: ServerResponse, reply: Reply, visit: Visit): Promise<void> | void {
    if (reply.kind === 'redirect') return this.#redirect(res, reply, visit.session);
    if (reply.kind === 'download') return sendDownload(req, res, reply, visit.signal);
    const { session, path, csrf } = visit;
    // A renewal by the script or a HEAD request must not consume notices that the user has not seen.
    const isSeen = session !== undefined && req.method !== 'HEAD' && !isRenewal(req);
    const notices = isSeen ? this.#notices.take(session.hash, path) : [];
    return sendPage(req, res, reply, { base: this.#base, path, session, csrf, notices }, visit.signal);
  }

  #redirect(res: ServerResponse, { to, notice, session: token }: Redirect, session: Session | undefined): void {
    if (token !== undefined) {
      const end = token === '' ? '; Max-Age=0' : '';
      res.appendHeader(
        'set-cookie',
        `${this.#cookieName(SESSION_COOKIE, res.req)}=${token}; ${COOKIE_ATTRIBUTES}${end}`,
      );
    }
    const hashed = token === undefined || token === '' ? session?.hash : hashToken(token);
    if (notice !== undefined && hashed !== undefined) this.#notices.put(hashed, to, notice);
    res.writeHead(303, { location: `${this.#base}${to.slice(1)}`, 'content-length': 0 });
    res.end();
  }

  /** @param frame the frame of the session, if the session is known */
  async #fail(
    req: IncomingMessage,
    res: ServerResponse,
    error: unknown,
    frame: Omit<Frame, 'base'> = NOBODY,
  ): Promise<void> {
    const { status, message, waitSeconds } = failure(error);
    // If the browser has disconnected, the error is its consequence and is not reported.
    if (status === 500 && !req.destroyed) this.#options.onFailure(error);
    if (res.headersSent || res.destroyed) {
      res.destroy();
      return;
    }
    // The unread rest of a body must not be parsed as the next request.
    if (!req.complete) res.setHeader('connection', 'close');
    if (waitSeconds !== undefined) res.setHeader('retry-after', waitSeconds);
    const onward =
      status === 401
        ? html`<a href="${this.#base}${signInBefore(this.#base, formPage(req, this.#base)).slice(1)}">To the sign-in</a>`
        : html`<a href="${this.#base}">To the first page</a>`;
    const body = html`<p>${message}</p><p>${onward}</p>`;
    const page: Page = {
      kind: 'page',
      title: status === 404 ? 'Not found' : status === 403 ? 'Not allowed' : 'This did not work',
      body,
      status,
    };
    await sendPage(req, res, page, { ...frame, base: this.#base });
    if (!req.complete) discard(req);
  }
}

/** Returns the first part of a form's token, which binds it to a secret of its browser. The second part is random. */
const formToken = (secret: string): string => hash('sha256', `form ${secret}`, 'base64url');

/** Returns the address of the peer, or of the browser that a trusted proxy names. */
function visitorAddress(req: IncomingMessage, proxies: readonly Network[]): string {
  const peer = req.socket.remoteAddress ?? '';
  const address = parseAddress(peer);
  if (address === undefined) return peer;
  const client = clientAddress(address, String(req.headers['x-forwarded-for'] ?? ''), proxies);
  return client === address ? peer : formatAddress(client);
}

/** The frame of a page without a session. */
const NOBODY = { path: '', session: undefined, csrf: '', notices: [] } as const;

/** Whether a link on another site led here. Browsers then send no `SameSite=Strict` cookies, even if the user is signed in. */
const isFromElsewhere = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' && headers['sec-fetch-site'] === 'cross-site' && headers['sec-fetch-mode'] === 'navigate';

/** Returns a page that makes the browser request the URL again, this time from the console itself and so with its cookies. */
const openedAgain = (url: string): Page => ({
  kind: 'page',
  title: 'One moment',
  body: html`<p><a href="${url}">Open the page</a></p>`,
  isOpenedAgain: true,
});

/** Returns the requested path and query, below the base path. */
const askedFor = ({ path, query }: Visit): string => (query.isEmpty ? path : `${path}?${query}`);

/** Returns the page whose form was sent, from the `Referer`; the first page if the browser sends none. */
function formPage({ headers: { referer = '' } }: IncomingMessage, base: string): string {
  const [, full = ''] = /^https?:\/\/[^/]+(\/[^#]*)$/.exec(referer) ?? [];
  return full.startsWith(base) ? `/${full.slice(base.length)}` : '/';
}

/** Returns the path of the sign-in that leads back to `next`. Without the query of `next` if the result would be too long. */
function signInBefore(base: string, next: string): string {
  if (next === '/') return '/sign-in';
  const leadingTo = (address: string): string => `/sign-in?${new URLSearchParams({ next: address })}`;
  const complete = leadingTo(next);
  return base.length + complete.length <= URL_MAX_LENGTH ? complete : leadingTo(next.split('?', 1)[0]!);
}

/** Whether the page's script sent the request to renew the page. */
const isRenewal = (req: IncomingMessage): boolean => req.headers['x-pagegate-renew'] !== undefined;

interface Failure {
  readonly status: number;
  readonly message: string;
  readonly waitSeconds?: number | undefined;
}

function failure(error: unknown): Failure {
  if (error instanceof HttpRefusal) return error;
  if (!(error instanceof PagegateError)) return { status: 500, message: 'An unexpected failure; the log says more.' };
  const status = /_not_found$|^generation_missing$/.test(error.code) ? 404 : /_busy$/.test(error.code) ? 503 : 500;
  return { status: status === 500 ? 503 : status, message: error.message };
}

/** Reads and discards some of a refused body, so that the browser reads the response before the connection closes. */
function discard(req: IncomingMessage): void {
  let sizeBytes = 0;
  req.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes > 4 * LIMITS.consoleFormBytes.value) req.destroy();
  });
  req.on('error', () => {});
  void sleep(TIMEOUTS.headersMs, undefined, { ref: false }).then(() => req.destroy());
}
