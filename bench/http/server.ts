/** What the HTTP bench measures, one step of a request more in each mode; started with a port, a mode and a configuration file. */
import { createServer } from 'node:http';
import { loadConfig } from '../../src/config/config.ts';
import { statePaths } from '../../src/config/paths.ts';
import { startKeeper } from '../../src/ledger/keeper.ts';
import { openMeter } from '../../src/ledger/meter.ts';
import { BurstGuard, burstTableSizeBytes, initializeBurstTable } from '../../src/server/burst.ts';
import { CheckHandler } from '../../src/server/check.ts';
import { openCurrentIndex, openPolicy } from '../../src/server/data-loader.ts';
import { ConnectionCount, Listener } from '../../src/server/listener.ts';
import { WorkerMetrics } from '../../src/server/metrics.ts';
import { parseQuery } from '../../src/server/query.ts';
import { CONTENT_HEADERS } from '../../src/server/refusal.ts';
import { Served } from '../../src/server/served.ts';
import type { HttpRequest, HttpResponse } from '../../src/server/uws.ts';
import { openBenchMeter } from '../metering/meters.ts';

/**
 * fixed: the transport answers 600 fixed bytes. read: headers and query are read as well. check: everything but the charge.
 * guarded: the same with the burst guard. relaxed, full: with the charge. node: node:http answers the fixed bytes.
 */
export const HTTP_MODES = ['fixed', 'read', 'check', 'guarded', 'relaxed', 'full', 'node'] as const;
export type HttpMode = (typeof HTTP_MODES)[number];

type Handle = (res: HttpResponse, req: HttpRequest) => void;

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
  // The guard takes at most its largest limit; the bench stays below it.
  const burst = { limit: 100_000, max_clients: 1_024 };
  const config = loadConfig({ file: configFile, flags: mode === 'guarded' ? { burst: { exempt: [], ...burst } } : {} });
  const { ledgerFile } = statePaths(config);
  const durability = mode === 'full' ? 'full' : 'relaxed';
  await startKeeper({ file: ledgerFile, durability });
  const isCharged = mode === 'relaxed' || mode === 'full';
  const meter = isCharged ? await openMeter({ file: ledgerFile, durability }) : await openBenchMeter('off', ledgerFile);
  const burstMemory = new SharedArrayBuffer(burstTableSizeBytes(config.burst));
  initializeBurstTable(burstMemory);
  const served = new Served(openCurrentIndex(config), openPolicy(config), CONTENT_HEADERS, () => {});
  // A clock that runs fast, so that the guard's window never fills.
  const guard = new BurstGuard(burstMemory, config.burst, () => performance.now() * 1_000);
  const handler = new CheckHandler({
    config,
    meter,
    burst: guard,
    metrics: new WorkerMetrics(),
    log: () => {},
    decisions: undefined,
    served: () => served,
    connections: () => connections.open,
    closedConnections: () => connections.closed,
    isDraining: () => false,
  });
  return (res, req) => handler.handle(res, req);
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
