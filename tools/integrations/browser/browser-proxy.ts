/**
 * A proxy on loopback for one guarded browser: the second wall, after the judging of its requests. It connects only to addresses that
 * the guard permits, so a name that leads inside is stopped; it opens tunnels only to origins that an allowed request was made to lately,
 * so what the browser does not show to the guard (prefetching) reaches no other site; and it judges plain HTTP itself. WebSockets have a
 * port of their own, with tunnels only to where a WebSocket was allowed: inside TLS nobody could tell one that was not judged from a request.
 */
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, LookupFunction, Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { guardedConnect } from '../../../src/guard/connections.ts';
import type { Guard } from '../../../src/guard/guard.ts';
import { effectiveMethods, namesAnotherUrl } from '../../../src/guard/override-headers.ts';
import { RefusedError, refusalPage } from '../../../src/guard/refusal.ts';

/** For how long an origin may be connected to after a request to it was allowed: connections open right after. */
const ADMITTED_MS = 60_000;
const ADMITTED_MAX = 10_000;
/** Origins, places of WebSockets, and methods with URLs, and until when each is admitted. */
type Admitted = ReadonlyMap<string, number>;
/** Headers of one connection, which are not for the other side of the proxy. */
const HOP_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
]);
/** What a page could make requests with that are shown to nobody. */
const UNSEEN_FEATURES = ['FedCm', 'WebSocketStream'];

export interface BrowserProxyOptions {
  /** Resolves names in the place of the system; what it finds is checked all the same. */
  readonly lookup?: LookupFunction | undefined;
}

export class BrowserProxy {
  /**
   * For the option `args` of a launch, after any others: WebSockets go to a port of their own, everything else, loopback included, to the
   * other, and what pages could make unseen requests with is turned off.
   */
  readonly args: string[];
  /** Where everything but WebSockets goes: `http://127.0.0.1:PORT`. */
  readonly server: string;
  readonly #servers: readonly Server[];
  readonly #admitted: Map<string, number>;
  readonly #sockets = new Set<Socket>();

  constructor(http: Server, webSockets: Server, admitted: Map<string, number>) {
    const [server, socketServer] = [http, webSockets].map(
      (one) => `http://127.0.0.1:${(one.address() as AddressInfo).port}`,
    );
    this.server = server!;
    // Chromium takes the fallback, which `socks=` names, for WebSockets (RFC 6455, 4.1), and for what is neither of the two.
    this.args = [
      `--proxy-server=http=${server};https=${server};socks=${socketServer}`,
      '--proxy-bypass-list=<-loopback>',
      `--disable-blink-features=${UNSEEN_FEATURES.join()}`,
    ];
    this.#servers = [http, webSockets];
    this.#admitted = admitted;
    for (const one of this.#servers) {
      one.on('connection', (socket: Socket) => {
        this.#sockets.add(socket);
        socket.once('close', () => this.#sockets.delete(socket));
      });
    }
  }

  /** Opens the way for a request that was allowed, and to its origin, for a minute. */
  admit(url: string, method: string): void {
    const { href, origin } = new URL(url);
    this.#admit(origin);
    this.#admit(`${method} ${href}`);
  }

  /** Opens the way for a WebSocket that was allowed, `ws:` or `wss:`, for a minute. */
  admitWebSocket(url: string): void {
    const { protocol, hostname, port } = new URL(url);
    this.#admit(webSocketTo(`${hostname}:${port || (protocol === 'wss:' ? 443 : 80)}`));
  }

  #admit(key: string): void {
    this.#admitted.delete(key);
    if (this.#admitted.size >= ADMITTED_MAX) this.#admitted.delete(this.#admitted.keys().next().value!);
    this.#admitted.set(key, performance.now() + ADMITTED_MS);
  }

  /** Ends the proxy and every connection through it. */
  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Starts the proxy. Give its `args` to the launch of the browser, and itself to `guardContext`. */
export async function startBrowserProxy(guard: Guard, { lookup }: BrowserProxyOptions = {}): Promise<BrowserProxy> {
  const admitted = new Map<string, number>();
  const http = createServer((request, response) => {
    forward(guard, request, response, admitted, lookup).catch((error) => refuse(response, error));
  });
  const webSockets = createServer((_request, response) => refuse(response, undefined));
  const opens = (server: Server, keyOf: (place: string) => string): void => {
    server.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
      client.on('error', () => {});
      client.unshift(head);
      tunnel(guard, request.url ?? '', client, (place) => isAdmitted(admitted, keyOf(place)), lookup).catch(() => {
        client.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
      });
    });
  };
  opens(http, (place) => new URL(`https://${place}`).origin);
  opens(webSockets, webSocketTo);
  for (const server of [http, webSockets]) {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
  }
  return new BrowserProxy(http, webSockets, admitted);
}

/** The key of a WebSocket to a host and port. */
const webSocketTo = (place: string): string => `WebSocket ${place}`;
const isAdmitted = (admitted: Admitted, key: string): boolean => (admitted.get(key) ?? 0) > performance.now();

async function tunnel(
  guard: Guard,
  place: string,
  client: Socket,
  isOpen: (place: string) => boolean,
  lookup: LookupFunction | undefined,
): Promise<void> {
  if (!isOpen(place)) throw new Error('nothing was allowed there');
  const site = await guardedConnect(guard, new URL(`https://${place}`), lookup);
  endWith(client, site);
  // A site may keep its side open for ever.
  client.once('end', () => site.destroySoon());
  client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  pipeline(client, site, client, () => {});
}

/** Ends a connection to a site with what it was opened for, which may have ended while it came about. */
function endWith(asked: Socket | ServerResponse, site: Socket): void {
  if (asked.destroyed) site.destroy();
  asked.once('close', () => site.destroy());
}

/** Plain HTTP, for which a proxy is given the whole URL. */
async function forward(
  guard: Guard,
  request: IncomingMessage,
  response: ServerResponse,
  admitted: Admitted,
  lookup: LookupFunction | undefined,
): Promise<void> {
  const url = new URL(request.url ?? '');
  const method = request.method ?? '';
  // What is asked for this way is plain http; https comes through a tunnel.
  if (url.protocol !== 'http:') throw guard.refuse(url.href, method, 'request_target');
  const headers = Object.entries(request.headersDistinct).filter(([name]) => !HOP_HEADERS.has(name));
  const pairs = headers.flatMap(([name, values = []]) => values.map((value) => [name, value] as const));
  if (namesAnotherUrl(pairs)) throw guard.refuse(url.href, method, 'host_header');
  // What the browser showed before is not asked about again; what it did not show is judged here.
  if (!isAdmitted(admitted, `${method} ${url.href}`)) {
    for (const meant of effectiveMethods(method, pairs)) await guard.enforce(url, { method: meant });
  }
  const socket = await guardedConnect(guard, url, lookup);
  const sent = { ...Object.fromEntries(headers), host: url.host };
  const path = url.pathname + url.search;
  endWith(response, socket);
  // Awaited, so that whatever the site or the client sends, and Node.js takes for wrong, is a failure of this request alone.
  const answered = await new Promise<IncomingMessage>((resolve, reject) => {
    const asked = httpRequest({ method, path, headers: sent, createConnection: () => socket }, resolve);
    asked.on('error', reject).on('close', () => reject(new Error('no answer')));
    asked.flushHeaders();
    request.pipe(asked);
  });
  const kept = answered.rawHeaders.flatMap((text, at, all) =>
    HOP_HEADERS.has(all[at - (at % 2)]!.toLowerCase()) ? [] : [text],
  );
  response.writeHead(answered.statusCode ?? 0, kept);
  pipeline(answered, response, () => {});
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const isRefused = error instanceof RefusedError;
  response.writeHead(isRefused ? 403 : 502, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
  });
  response.end(isRefused ? refusalPage(error.decision) : '');
}
