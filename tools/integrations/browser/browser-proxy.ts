/**
 * A proxy on loopback for one guarded browser: the second barrier after the judging of its requests. It connects only to addresses that the
 * guard permits, so a name that resolves to an internal address is refused. It opens tunnels only to origins to which a request was allowed
 * recently, so requests that the browser does not show to the guard (prefetching) reach no other site. It judges plain HTTP itself. WebSockets
 * use a separate port, with tunnels only to hosts to which a WebSocket was allowed: inside TLS, a WebSocket that was not judged could not be
 * distinguished from a request.
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

/** How long connections to an origin are permitted after a request to it was allowed. Browsers connect immediately afterwards. */
const ADMITTED_MS = 60_000;
const ADMITTED_MAX = 10_000;
/** Admitted origins, WebSocket hosts, and methods with URLs, each with the time until which it is admitted. */
type Admitted = ReadonlyMap<string, number>;
/** Hop-by-hop headers, which a proxy does not forward. */
const HOP_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
]);
/** Browser features by which a page could make requests that are not shown to the guard. */
const UNSEEN_FEATURES = ['FedCm', 'WebSocketStream'];

export interface BrowserProxyOptions {
  /** Resolves names instead of the system's resolver. Its results are checked, too. */
  readonly lookup?: LookupFunction | undefined;
}

export class BrowserProxy {
  /**
   * Arguments for the option `args` of a launch, after any others. They send WebSockets to their own port and everything else, including loopback,
   * to the other one. They turn off the features by which pages could make unseen requests.
   */
  readonly args: string[];
  /** URL of the proxy for everything except WebSockets: `http://127.0.0.1:PORT`. */
  readonly server: string;
  readonly #servers: readonly Server[];
  readonly #admitted: Map<string, number>;
  readonly #sockets = new Set<Socket>();

  constructor(http: Server, webSockets: Server, admitted: Map<string, number>) {
    const [server, socketServer] = [http, webSockets].map(
      (one) => `http://127.0.0.1:${(one.address() as AddressInfo).port}`,
    );
    this.server = server!;
    // Chromium uses the fallback, which `socks=` sets, for WebSockets (RFC 6455, 4.1), and for all schemes except http and https.
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

  /** Admits an allowed request and connections to its origin for a minute. */
  admit(url: string, method: string): void {
    const { href, origin } = new URL(url);
    this.#admit(origin);
    this.#admit(`${method} ${href}`);
  }

  /** Admits connections for an allowed WebSocket, `ws:` or `wss:`, for a minute. */
  admitWebSocket(url: string): void {
    const { protocol, hostname, port } = new URL(url);
    this.#admit(webSocketTo(`${hostname}:${port || (protocol === 'wss:' ? 443 : 80)}`));
  }

  #admit(key: string): void {
    this.#admitted.delete(key);
    if (this.#admitted.size >= ADMITTED_MAX) this.#admitted.delete(this.#admitted.keys().next().value!);
    this.#admitted.set(key, performance.now() + ADMITTED_MS);
  }

  /** Closes the proxy and every connection through it. */
  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Starts the proxy. Pass its `args` to the launch of the browser, and the proxy to `guardContext`. */
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

/** Returns the admission key of a WebSocket to a host and port. */
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
  // A site may keep its side open forever.
  client.once('end', () => site.destroySoon());
  client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  pipeline(client, site, client, () => {});
}

/** Closes the connection to a site together with the client's side, which may have closed while the connection was made. */
function endWith(client: Socket | ServerResponse, site: Socket): void {
  if (client.destroyed) site.destroy();
  client.once('close', () => site.destroy());
}

/** Forwards a plain HTTP request, whose request line has the full URL. */
async function forward(
  guard: Guard,
  request: IncomingMessage,
  response: ServerResponse,
  admitted: Admitted,
  lookup: LookupFunction | undefined,
): Promise<void> {
  const url = new URL(request.url ?? '');
  const method = request.method ?? '';
  // Only plain http is requested this way; https uses a tunnel.
  if (url.protocol !== 'http:') throw guard.refuse(url.href, method, 'request_target');
  const headers = Object.entries(request.headersDistinct).filter(([name]) => !HOP_HEADERS.has(name));
  const pairs = headers.flatMap(([name, values = []]) => values.map((value) => [name, value] as const));
  if (namesAnotherUrl(pairs)) throw guard.refuse(url.href, method, 'host_header');
  // A request that the browser has shown to the guard was judged already. Others are judged here.
  if (!isAdmitted(admitted, `${method} ${url.href}`)) {
    for (const meant of effectiveMethods(method, pairs)) await guard.enforce(url, { method: meant });
  }
  const socket = await guardedConnect(guard, url, lookup);
  const forwarded = { ...Object.fromEntries(headers), host: url.host };
  const path = url.pathname + url.search;
  endWith(response, socket);
  // Awaited, so that an error in what the site or the client sends fails only this request.
  const upstream = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = httpRequest({ method, path, headers: forwarded, createConnection: () => socket }, resolve);
    sent.on('error', reject).on('close', () => reject(new Error('no answer')));
    sent.flushHeaders();
    request.pipe(sent);
  });
  const kept = upstream.rawHeaders.flatMap((text, at, all) =>
    HOP_HEADERS.has(all[at - (at % 2)]!.toLowerCase()) ? [] : [text],
  );
  response.writeHead(upstream.statusCode ?? 0, kept);
  pipeline(upstream, response, () => {});
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
