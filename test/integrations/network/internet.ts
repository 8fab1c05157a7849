/** All sites of a test's world. They listen on every address of the separate network and record the requests. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';

/** Whether the tests run in the separate network that run.sh creates, which some of them need. */
export const hasNetwork = process.env['PAGEGATE_TEST_NETWORK'] === 'yes';

/** Addresses from run.sh: two public ones, and others that must never be reached. */
export const PUBLIC = '93.184.215.14';
export const PUBLIC_TOO = '93.184.215.15';
export const PUBLIC_V6 = '2606:2800:21f::1';
export const INSIDE = ['127.0.0.1', '10.0.0.5', '169.254.169.254', '::1', 'fd00::5', '::ffff:10.0.0.5'] as const;

export type Page = (request: IncomingMessage, response: ServerResponse) => void;

export interface Internet {
  /** The certificate authority that signed all certificates, PEM. */
  readonly caFile: string;
  /** Received requests, as `METHOD https://host/path`; opened WebSockets as `OPEN …`. */
  readonly reached: string[];
  /** Requests received at an address that is not public. */
  readonly inside: string[];
  /** Number of connections so far, to any site. */
  connections(): number;
  /** Headers of the last request for a path. */
  headersOf(path: string): http.IncomingHttpHeaders | undefined;
  close(): Promise<void>;
}

/** Opens ports 80 and 443. A path without a page is answered with its name. */
export async function createInternet(folder: string, pages: Readonly<Record<string, Page>> = {}): Promise<Internet> {
  const { caFile, key, cert } = createCertificates(folder);
  const reached: string[] = [];
  const inside: string[] = [];
  const headers = new Map<string, http.IncomingHttpHeaders>();
  let connections = 0;
  const note = (request: IncomingMessage, word = request.method): void => {
    const scheme = 'encrypted' in request.socket ? 'https' : 'http';
    const line = `${word} ${scheme}://${request.headers.host}${request.url}`;
    headers.set(request.url!.split('?')[0]!, request.headers);
    reached.push(line);
    const address = request.socket.localAddress!.replace(/^::ffff:/, '');
    if (![PUBLIC, PUBLIC_TOO, PUBLIC_V6].includes(address)) inside.push(`${line} at ${address}`);
  };
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    note(request);
    request.resume();
    // The browser must not use this service; nothing else announces it.
    response.setHeader('alt-svc', 'h3=":8443"; ma=86400, h2=":8443"; ma=86400');
    const page = pages[new URL(request.url!, 'http://x').pathname];
    if (page !== undefined) page(request, response);
    else request.on('end', () => response.setHeader('content-type', 'text/html').end(`<h1>${request.url}</h1>`));
  };
  const sockets = new Set<Socket>();
  const listen = (server: Server, port: number): Promise<void> => {
    server.on('connection', (socket: Socket) => {
      connections += 1;
      sockets.add(socket.on('error', () => {}));
      socket.once('close', () => sockets.delete(socket));
    });
    server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
      note(request, 'OPEN');
      acceptWebSocket(request, socket);
    });
    return new Promise((resolve) => server.listen(port, '::', resolve));
  };
  const servers = [http.createServer(serve), https.createServer({ key, cert }, serve)] as const;
  await listen(servers[0], 80);
  await listen(servers[1], 443);
  return {
    caFile,
    reached,
    inside,
    connections: () => connections,
    headersOf: (path) => headers.get(path),
    async close() {
      for (const server of servers) {
        const closed = new Promise((resolve) => server.close(resolve));
        for (const socket of sockets) socket.destroy();
        await closed;
      }
    },
  };
}

/** One certificate authority, and one certificate for all names in the tests. */
function createCertificates(folder: string): { caFile: string; key: Buffer; cert: Buffer } {
  const file = (name: string): string => join(folder, name);
  const openssl = (...words: string[]): unknown => execFileSync('openssl', words, { stdio: 'pipe' });
  const fresh = ['-newkey', 'rsa:2048', '-nodes', '-days', '3'];
  openssl('req', '-x509', ...fresh, '-subj', '/CN=Test authority', '-keyout', file('ca.key'), '-out', file('ca.pem'));
  openssl('req', ...fresh.slice(0, 3), '-subj', '/CN=sites', '-keyout', file('site.key'), '-out', file('site.csr'));
  const names = ['DNS:*.example.com', 'DNS:*.example.org', ...INSIDE.map((address) => `IP:${address}`)];
  writeFileSync(file('site.ext'), `subjectAltName=${names.join(',')}\n`);
  const signed = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '2'];
  openssl('x509', '-req', '-in', file('site.csr'), ...signed, '-extfile', file('site.ext'), '-out', file('site.pem'));
  return { caFile: file('ca.pem'), key: readFileSync(file('site.key')), cert: readFileSync(file('site.pem')) };
}

/** The GUID of RFC 6455. */
const WEBSOCKET_ID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Completes the handshake, sends one text frame, `hello`, and leaves the rest to the client. */
function acceptWebSocket(request: IncomingMessage, socket: Socket): void {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${WEBSOCKET_ID}`).digest('base64');
  const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  socket.write(`${head.join('\r\n')}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.write(Buffer.concat([Buffer.from([0x81, 5]), Buffer.from('hello')]));
}
