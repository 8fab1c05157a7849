/**
 * A proxy on loopback for one guarded browser: the second wall, behind the judging of its requests. It connects only to addresses that
 * the guard permits, so a name that leads inside is stopped; it opens tunnels only to origins that an allowed request was made to lately,
 * so what the browser does not show to the guard (WebSockets of workers, prefetching) reaches no other site; and it judges plain HTTP itself.
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
import { methodsOf, namesAnotherUrl } from '../../../src/guard/override-headers.ts';
import { RefusedError, refusalPage } from '../../../src/guard/refusal.ts';

/** For how long an origin may be connected to after a request to it was allowed: connections open right after. */
const ADMITTED_MS = 60_000;
const ADMITTED_MAX = 10_000;
/** Origins, and methods with URLs, and until when each is admitted. */
type Admitted = ReadonlyMap<string, number>;
/** Headers between a client and its proxy, which are not for the site. */
const HOP_HEADERS = new Set(['connection', 'keep-alive', 'proxy-authorization', 'proxy-connection', 'te', 'upgrade']);

export interface BrowserProxyOptions {
  /** Resolves names in the place of the system; what it finds is checked all the same. */
  readonly lookup?: LookupFunction;
}

export class BrowserProxy {
  /** For the option `proxy` of a launch: `http://127.0.0.1:PORT`. */
  readonly server: string;
  readonly #http: Server;
  readonly #admitted: Map<string, number>;
  readonly #sockets = new Set<Socket>();

  constructor(http: Server, admitted: Map<string, number>) {
    this.server = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    this.#http = http;
    this.#admitted = admitted;
    http.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Opens the way for a request that was allowed, and to its origin, for a minute. */
  admit(url: string, method: string): void {
    const { href, origin } = new URL(url);
    for (const key of [origin, `${method} ${href}`]) {
      this.#admitted.delete(key);
      if (this.#admitted.size >= ADMITTED_MAX) this.#admitted.delete(this.#admitted.keys().next().value!);
      this.#admitted.set(key, performance.now() + ADMITTED_MS);
    }
  }

  /** Ends the proxy and every connection through it. */
  close(): void {
    this.#http.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Starts the proxy. Give its `server` to the launch of the browser, and itself to `guardContext`. */
export async function startBrowserProxy(guard: Guard, { lookup }: BrowserProxyOptions = {}): Promise<BrowserProxy> {
  const admitted = new Map<string, number>();
  const http = createServer((request, response) => {
    forward(guard, request, response, admitted, lookup).catch((error) => refuse(response, error));
  });
  http.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    client.on('error', () => {});
    client.unshift(head);
    tunnel(guard, request.url ?? '', client, admitted, lookup).catch(() => {
      client.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    });
  });
  await new Promise<void>((resolve, reject) => {
    http.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return new BrowserProxy(http, admitted);
}

const isAdmitted = (admitted: Admitted, key: string): boolean => (admitted.get(key) ?? 0) > performance.now();

async function tunnel(
  guard: Guard,
  place: string,
  client: Socket,
  admitted: Admitted,
  lookup: LookupFunction | undefined,
): Promise<void> {
  const url = new URL(`https://${place}`);
  if (!isAdmitted(admitted, url.origin)) throw new Error('nothing was allowed there');
  const site = await guardedConnect(guard, url, lookup);
  client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  pipeline(client, site, client, () => {});
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
    for (const meant of methodsOf(method, pairs)) await guard.enforce(url, { method: meant });
  }
  const socket = await guardedConnect(guard, url, lookup);
  const sent = { ...Object.fromEntries(headers), host: url.host };
  const path = url.pathname + url.search;
  const asked = httpRequest({ method, path, headers: sent, createConnection: () => socket }, (answered) => {
    const kept = answered.rawHeaders.flatMap((text, at, all) =>
      HOP_HEADERS.has(all[at - (at % 2)]!.toLowerCase()) ? [] : [text],
    );
    response.writeHead(answered.statusCode ?? 502, kept);
    pipeline(answered, response, () => {});
  });
  asked.on('error', (error) => refuse(response, error));
  response.on('close', () => socket.destroy());
  request.pipe(asked);
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
