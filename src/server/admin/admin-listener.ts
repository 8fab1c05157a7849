/** The admin listener: health, metrics and status for monitoring. It is read-only, shows no secrets, and has no authentication. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, isIP, type Server as NetServer } from 'node:net';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { withoutBrackets } from '../../network/address.ts';
import { hostOf } from '../../network/http-syntax.ts';
import { http } from '../../platform/http.ts';

export interface AdminSources {
  /** Returns whether lookups are answered, and the reasons if they are not. */
  readonly readiness: () => Promise<{ readonly ready: boolean; readonly reasons: readonly string[] }>;
  /** Returns all metrics in the Prometheus text format. */
  readonly metrics: () => Promise<string>;
  readonly status: () => Promise<unknown>;
  /** Host names that are accepted besides IP addresses and localhost. */
  readonly names: readonly string[];
}

const TIMEOUT_MS = LIMITS.adminRequestMs.value;
const HEADERS_MAX_BYTES = 8_192;

/**
 * Listens. Resolves with the server and its port.
 *
 * @param inherited a socket that already listens on this address, to use instead of a new one.
 * @throws PagegateError listen_failed
 */
export async function listenAdmin(
  host: string,
  port: number,
  sources: AdminSources,
  inherited?: NetServer,
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
    if (inherited === undefined) server.listen(port, host, resolve);
    else server.listen(inherited, resolve);
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
 * Whether a Host header is accepted. This stops DNS rebinding: a web page in a browser on this host could let its own name resolve to this
 * listener and read the responses. The browser then sends that name.
 */
function isOwnHost(host: string, names: readonly string[]): boolean {
  return host === 'localhost' || isIP(withoutBrackets(host)) !== 0 || names.some((name) => name.toLowerCase() === host);
}
