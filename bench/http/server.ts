/** What the HTTP bench measures, one step of a request more in each mode; started with a port, a mode and a configuration file. */
import { createServer } from 'node:http';
import { ConnectionCount, Listener } from '../../src/server/process/listener.ts';
import { parseQuery } from '../../src/server/request/query.ts';
import { type Handle, openBenchHandler } from '../handler.ts';

/**
 * fixed: the transport answers 600 fixed bytes. read: headers and query are read as well. check: everything but the charge.
 * guarded: the same with the burst guard. charged: with the charge. node: node:http answers the fixed bytes.
 */
export const HTTP_MODES = ['fixed', 'read', 'check', 'guarded', 'charged', 'node'] as const;
export type HttpMode = (typeof HTTP_MODES)[number];

const BODY = Buffer.from(JSON.stringify({ fixed: 'x'.repeat(588) }));
const connections = new ConnectionCount(100_000, () => {});

function fixed(): Handle {
  return (res) => {
    res.writeHeader('content-type', 'application/json').end(BODY);
  };
}

function read(): Handle {
  let key = '';
  const onHeader = (name: string, value: string): void => {
    if (name === 'x-api-key') key = value;
  };
  return (res, req) => {
    req.forEach(onHeader);
    const query = parseQuery(req.getQuery() ?? '');
    if (key === '' || query.url === undefined) throw new Error('The load generator sends a key and a URL.');
    res.writeHeader('content-type', 'application/json').end(BODY);
  };
}

async function check(mode: HttpMode, configFile: string): Promise<Handle> {
  const meterMode = mode === 'charged' ? 'charged' : 'off';
  // The guard takes at most its largest limit; the bench stays below it.
  const flags = mode === 'guarded' ? { burst: { exempt: [], limit: 100_000, max_clients: 1_024 } } : {};
  return (await openBenchHandler(meterMode, configFile, connections, flags)).handle;
}

async function start(port: number, mode: HttpMode, configFile: string): Promise<void> {
  if (mode === 'node') {
    const server = createServer((_, res) => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': BODY.length }).end(BODY);
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return;
  }
  const handle = mode === 'fixed' ? fixed() : mode === 'read' ? read() : await check(mode, configFile);
  const listener = new Listener({
    handle,
    tls: { certificate_file: null, key_file: null, ciphers: null },
    connections,
  });
  await listener.listen('127.0.0.1', port);
}

if (import.meta.main) {
  const [port, mode, configFile] = process.argv.slice(2) as [string, HttpMode, string];
  process.on('message', () => process.send?.(process.cpuUsage()));
  process.on('disconnect', () => process.exit(0));
  await start(Number(port), mode, configFile);
  process.send?.('listening');
}
