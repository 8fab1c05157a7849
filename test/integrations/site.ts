/** A site whose pages try to send a browser everywhere: with and without TLS, with several names of loopback. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { createCertificate } from '../../tools/certificate.ts';

export interface WebSite {
  readonly securePort: number;
  readonly plainPort: number;
  /** Received requests, as `METHOD host path`; WebSockets as `OPEN host path`. */
  readonly reached: string[];
  close(): Promise<void>;
}

/** Handlers by path. */
export type Pages = Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => void>>;

const hostOf = (request: IncomingMessage): string => (request.headers.host ?? '').replace(/:[0-9]+$/, '');

/** Starts the site. A path without a page is answered with its name. */
export async function createWebSite(pages: Pages, address = '127.0.0.1'): Promise<WebSite> {
  const { certificate: cert, key } = createCertificate('site.example');
  const reached: string[] = [];
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname } = new URL(request.url!, 'http://x');
    if (pathname !== '/favicon.ico') reached.push(`${request.method} ${hostOf(request)} ${request.url}`);
    request.resume();
    const page = pages[pathname];
    if (page === undefined) response.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>${pathname}</h1>`);
    else page(request, response);
  };
  const open = (request: IncomingMessage, socket: Socket): void => {
    reached.push(`OPEN ${hostOf(request)} ${request.url}`);
    acceptWebSocket(request, socket);
  };
  const servers = [createTlsServer({ cert, key }, answer), createServer(answer)];
  const ports: number[] = [];
  const sockets = new Set<Socket>();
  for (const server of servers) {
    server.on('upgrade', open).on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    ports.push((server.address() as AddressInfo).port);
  }
  return {
    securePort: ports[0]!,
    plainPort: ports[1]!,
    reached,
    async close() {
      for (const server of servers) {
        const closed = new Promise((resolve) => server.close(resolve));
        for (const socket of sockets) socket.destroy();
        await closed;
      }
    },
  };
}

/** The GUID of RFC 6455. */
const WEBSOCKET_ID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Completes the handshake and sends one text frame, `hello`. */
function acceptWebSocket(request: IncomingMessage, socket: Socket): void {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${WEBSOCKET_ID}`).digest('base64');
  const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  socket.on('error', () => {});
  socket.write(`${head.join('\r\n')}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.write(Buffer.concat([Buffer.from([0x81, 5]), Buffer.from('hello')]));
}

export const html = (body: string) => (_request: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><body>${body}`);

export const script = (text: string) => (_request: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'text/javascript' }).end(text);
