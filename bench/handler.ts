/** The check handler of one worker for the servers of the benches, assembled as in the program, but with the meter of a bench mode. */
import { loadConfig } from '../src/config/config.ts';
import { statePaths } from '../src/config/paths.ts';
import type { Meter } from '../src/ledger/meter.ts';
import { startLedgerWriter } from '../src/ledger/writer.ts';
import { WorkerMetrics } from '../src/server/admin/metric-counters.ts';
import { openCurrentIndex, openPolicy } from '../src/server/data-loader.ts';
import type { ConnectionCount } from '../src/server/process/connections.ts';
import { BurstLimiter, burstTableSizeBytes, initializeBurstTable } from '../src/server/request/burst-limit.ts';
import { CheckHandler } from '../src/server/request/check-handler.ts';
import { ActiveData } from '../src/server/swap/active-data.ts';
import type { HttpRequest, HttpResponse } from '../src/server/uws.ts';
import { type Mode, openBenchMeter } from './metering/meters.ts';

export type Handle = (res: HttpResponse, req: HttpRequest) => void;

export interface BenchHandler {
  readonly handle: Handle;
  readonly meter: Meter;
  /** Process id of the ledger writer, which is started for the handler. */
  readonly ledgerWriter: number | undefined;
}

export async function openBenchHandler(
  mode: Mode,
  configFile: string,
  connections: ConnectionCount,
): Promise<BenchHandler> {
  const config = loadConfig({ file: configFile });
  const { ledgerFile } = statePaths(config);
  const ledgerWriter = await startLedgerWriter({ file: ledgerFile });
  const meter = openBenchMeter(mode, ledgerFile);
  const burstMemory = new SharedArrayBuffer(burstTableSizeBytes(config.burst));
  initializeBurstTable(burstMemory);
  const served = new ActiveData(openCurrentIndex(config), openPolicy(config));
  const handler = new CheckHandler({
    config,
    meter,
    // This clock runs fast, so that the window of the burst limit never fills.
    burst: new BurstLimiter(burstMemory, config.burst, () => performance.now() * 1_000),
    metrics: new WorkerMetrics(),
    log: () => {},
    decisions: undefined,
    served: () => served,
    onDamage: () => {},
    closedConnections: () => connections.closed,
    isDraining: () => false,
  });
  return { handle: (res, req) => handler.handle(res, req), meter, ledgerWriter: ledgerWriter.pid };
}
