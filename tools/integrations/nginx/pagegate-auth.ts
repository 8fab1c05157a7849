/**
 * Adapter for nginx's `auth_request`, which uses only the status: 204 for the verdict allow, 403 for any other verdict or none. nginx sends the
 * request to judge in the headers X-Original-URL and X-Original-Method. See README.md in this folder.
 */
import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { parseArgs } from 'node:util';
import { ASK_OPTIONS, type Asker, askerOf, type HelperDecision } from '../ask-guard.ts';
import { startHelper } from '../start-helper.ts';

/** Enough for the longest value that pagegate accepts, percent-encoded. */
const HEADERS_MAX_BYTES = 48 * 1024;

const header = (request: IncomingMessage, name: string): string | undefined => {
  const values = request.headersDistinct[name];
  return values?.length === 1 && values[0] !== '' ? values[0] : undefined;
};

/** Returns the decision about the request in nginx's headers. If these are missing or ambiguous, the request is denied. */
async function decide(request: IncomingMessage, asker: Asker): Promise<HelperDecision> {
  const url = header(request, 'x-original-url');
  const method = header(request, 'x-original-method');
  if (url !== undefined && method !== undefined) return asker.ask(url, method);
  const reason = 'helper/headers';
  return {
    allowed: false,
    verdict: 'error',
    reason,
    note: 'X-Original-URL and X-Original-Method are needed, once each',
  };
}

/** Creates the adapter as a server that does not listen yet. */
function createAdapter(asker: Asker): Server {
  return createServer({ maxHeaderSize: HEADERS_MAX_BYTES, requestTimeout: 10_000 }, (request, response) => {
    // Discard a body: nginx forwards none (proxy_pass_request_body off).
    request.resume();
    decide(request, asker).then(({ allowed, verdict, reason, note }) => {
      response.writeHead(allowed ? 204 : 403, {
        'Cache-Control': 'no-store',
        'X-Pagegate-Verdict': verdict,
        'X-Pagegate-Reason': reason,
        'X-Pagegate-Note': note,
      });
      response.end();
    });
  });
}

function main(fail: (error: Error) => never): void {
  const { values } = parseArgs({
    options: { ...ASK_OPTIONS, listen: { type: 'string', default: '127.0.0.1:9191' } },
  });
  const asker = askerOf(values);
  const server = createAdapter(asker);
  const { listen } = values;
  if (listen.startsWith('/')) {
    const existing = lstatSync(listen, { throwIfNoEntry: false });
    if (existing !== undefined && !existing.isSocket()) throw new Error(`${listen} is in the way; it is no socket`);
    rmSync(listen, { force: true });
    server.listen(listen, () => chmodSync(listen, 0o660));
  } else {
    const colon = listen.lastIndexOf(':');
    const [host, port] = [listen.slice(0, colon).replaceAll(/[[\]]/g, ''), Number(listen.slice(colon + 1))];
    if (colon < 1 || !Number.isInteger(port)) throw new Error('--listen is HOST:PORT or the path of a Unix socket');
    server.listen(port, host);
  }
  server.on('error', fail);
  server.on('listening', () => process.stderr.write(`pagegate-auth listens on ${JSON.stringify(server.address())}\n`));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      server.close();
      server.closeIdleConnections();
      asker.close();
    });
  }
}

if (import.meta.main) startHelper('pagegate-auth', main);
