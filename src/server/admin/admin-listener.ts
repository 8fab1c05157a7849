/** The admin listener: health, metrics and status for monitoring. It only reads, knows no secrets, and has no authentication. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, isIP, type Server as NetServer } from 'node:net';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { withoutBrackets } from '../../network/address.ts';
import { hostOf } from '../../network/http-syntax.ts';
import { http } from '../../platform/http.ts';

export interface AdminSources {
  /** Ready to answer lookups; otherwise the reasons why not. */
  readonly readiness: () => Promise<{ readonly ready: boolean; readonly reasons: readonly string[] }>;
  /** Prometheus text. */
  readonly metrics: () => Promise<string>;
  readonly status: () => Promise<unknown>;
  /** Names that the listener may be called by, beside addresses and localhost. */
  readonly names: readonly string[];
}

const TIMEOUT_MS = LIMITS.adminRequestMs.value;
const HEADERS_MAX_BYTES = 8_192;

/**
 * Listens; resolves with the server and its port.
 *
 * @param given a socket that listens there already.
 * @throws PagegateError listen_failed
 */
export async function listenAdmin(
  host: string,
  port: number,
  sources: AdminSources,
  given?: NetServer,
): Promise<{ server: Server; port: number }> {
  const server = http.createServer(
    { maxHeaderSize: HEADERS_MAX_BYTES, requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS },
    (req, res) => {
      respond(req, res, sources).catch(() => {
        if (!res.headersSent) res.writeHead(500);
        res.end();
      });
    },
  );
  server.maxConnections = LIMITS.adminConnections.value;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new PagegateError(
          'listen_failed',
          `Admin address ${host}, port ${port}: ${cause.message}.`,
          { host, port },
          { cause },
        ),
      ),
    );
    if (given === undefined) server.listen(port, host, resolve);
    else server.listen(given, resolve);
  });
  return { server, port: (server.address() as AddressInfo).port };
}

async function respond(req: IncomingMessage, res: ServerResponse, sources: AdminSources): Promise<void> {
  const send = (status: number, type: string, body: string): void => {
    res.writeHead(status, {
      'content-type': type,
      'cache-control': 'no-store',
      'content-length': Buffer.byteLength(body),
    });
    res.end(req.method === 'HEAD' ? undefined : body);
  };
  const sendJson = (status: number, value: unknown): void =>
    send(status, 'application/json', `${JSON.stringify(value)}\n`);
  if (!isOwnHost(hostOf(req.headers.host), sources.names))
    return sendJson(421, {
      error: 'host_not_allowed',
      message: 'Call the admin listener by an address, as localhost, or by a name in admin.names.',
    });
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.setHeader('allow', 'GET, HEAD');
    return sendJson(405, { error: 'method_not_allowed', message: 'The admin listener only reads.' });
  }
  const path = (req.url ?? '').split('?', 1)[0];
  if (path === '/livez') return sendJson(200, { alive: true });
  if (path === '/readyz') {
    const readiness = await sources.readiness();
    return sendJson(readiness.ready ? 200 : 503, readiness);
  }
  if (path === '/metrics') return send(200, 'text/plain; version=0.0.4; charset=utf-8', await sources.metrics());
  if (path === '/status') return sendJson(200, await sources.status());
  return sendJson(404, { error: 'not_found', message: 'Here are /livez, /readyz, /metrics and /status.' });
}

/**
 * A web page that a browser on this host shows may have a name that leads to this listener, and read what it answers (DNS rebinding):
 * the browser then sends that name.
 */
function isOwnHost(host: string, names: readonly string[]): boolean {
  return host === 'localhost' || isIP(withoutBrackets(host)) !== 0 || names.some((name) => name.toLowerCase() === host);
}
