/** The check handler of one worker as the program assembles it, but with the meter of a mode; for the servers of the benches. */
import { type ConfigOverrides, loadConfig } from '../src/config/config.ts';
import { statePaths } from '../src/config/paths.ts';
import { startKeeper } from '../src/ledger/keeper.ts';
import type { Meter } from '../src/ledger/meter.ts';
import { BurstGuard, burstTableSizeBytes, initializeBurstTable } from '../src/server/burst.ts';
import { CheckHandler } from '../src/server/check.ts';
import { openCurrentIndex, openPolicy } from '../src/server/data-loader.ts';
import type { ConnectionCount } from '../src/server/listener.ts';
import { WorkerMetrics } from '../src/server/metrics.ts';
import { CONTENT_HEADERS } from '../src/server/refusal.ts';
import { Served } from '../src/server/served.ts';
import type { HttpRequest, HttpResponse } from '../src/server/uws.ts';
import { type Mode, openBenchMeter } from './metering/meters.ts';

export type Handle = (res: HttpResponse, req: HttpRequest) => void;

export interface BenchHandler {
  readonly handle: Handle;
  readonly meter: Meter;
  /** Process id of the ledger's keeper, which is started for it. */
  readonly keeper: number | undefined;
}

export async function openBenchHandler(
  mode: Mode,
  configFile: string,
  connections: ConnectionCount,
  flags: ConfigOverrides = {},
): Promise<BenchHandler> {
  const config = loadConfig({ file: configFile, flags });
  const { ledgerFile } = statePaths(config);
  const keeper = await startKeeper({ file: ledgerFile, durability: mode === 'relaxed' ? 'relaxed' : 'full' });
  const meter = await openBenchMeter(mode, ledgerFile);
  const burstMemory = new SharedArrayBuffer(burstTableSizeBytes(config.burst));
  initializeBurstTable(burstMemory);
  const served = new Served(openCurrentIndex(config), openPolicy(config), CONTENT_HEADERS, () => {});
  const handler = new CheckHandler({
    config,
    meter,
    // A clock that runs fast, so that the guard's window never fills.
    burst: new BurstGuard(burstMemory, config.burst, () => performance.now() * 1_000),
    metrics: new WorkerMetrics(),
    log: () => {},
    decisions: undefined,
    served: () => served,
    connections: () => connections.open,
    closedConnections: () => connections.closed,
    isDraining: () => false,
  });
  return { handle: (res, req) => handler.handle(res, req), meter, keeper: keeper.pid };
}
