/** One worker of the real server with the meter of a mode; started by the bench with a port, a mode and a configuration file. */
import { loadConfig } from '../../src/config/config.ts';
import { statePaths } from '../../src/config/paths.ts';
import { startKeeper } from '../../src/ledger/keeper.ts';
import { BurstGuard, burstTableSizeBytes, initializeBurstTable } from '../../src/server/burst.ts';
import { CheckHandler } from '../../src/server/check.ts';
import { openCurrentIndex, openPolicy } from '../../src/server/data-loader.ts';
import { ConnectionCount, Listener } from '../../src/server/listener.ts';
import { WorkerMetrics } from '../../src/server/metrics.ts';
import { CONTENT_HEADERS } from '../../src/server/refusal.ts';
import { Served } from '../../src/server/served.ts';
import { type Mode, openBenchMeter } from './meters.ts';

const [port, mode, configFile] = process.argv.slice(2) as [string, Mode, string];
const config = loadConfig({ file: configFile });
const { ledgerFile } = statePaths(config);
const keeper = await startKeeper({ file: ledgerFile, durability: mode === 'relaxed' ? 'relaxed' : 'full' });
const meter = await openBenchMeter(mode, ledgerFile);
const burstMemory = new SharedArrayBuffer(burstTableSizeBytes(config.burst));
initializeBurstTable(burstMemory);
const served = new Served(openCurrentIndex(config), openPolicy(config), CONTENT_HEADERS, () => {});
const connections = new ConnectionCount(10_000, () => {});
const handler = new CheckHandler({
  config,
  meter,
  burst: new BurstGuard(burstMemory, config.burst),
  metrics: new WorkerMetrics(),
  log: () => {},
  decisions: undefined,
  served: () => served,
  connections: () => connections.open,
  closedConnections: () => connections.closed,
  isDraining: () => false,
});
const listener = new Listener({ handle: (res, req) => handler.handle(res, req), tls: config.tls, connections });
await listener.listen('127.0.0.1', Number(port));
process.on('message', (message) => {
  if (message === 'health') process.send?.({ ...meter.health(), keeper: keeper.pid });
});
process.on('disconnect', () => process.exit(0));
process.send?.({ listening: true, keeper: keeper.pid });
