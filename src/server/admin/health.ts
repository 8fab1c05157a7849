/** What a running server says about itself: readiness, status, metrics, and what came out of a reload. */
import type { Config } from '../../config/config.ts';
import type { LedgerWriter } from '../../ledger/writer.ts';
import { PROGRAM_VERSION } from '../../version.ts';
import { type CounterName, type GaugeName, seriesOf } from '../metric-table.ts';
import type { LastKnownGood } from '../process/last-known-good.ts';
import type { Replies, Supervisor } from '../process/supervisor.ts';
import type { Readiness, ReloadReply, ServerStatus } from '../status.ts';
import { addSnapshots, prometheusText } from './metrics.ts';

/** The parts of a server that are looked at. */
export interface Observed {
  readonly config: Config;
  readonly port: number;
  readonly startedAt: Date;
  readonly supervisor: Supervisor;
  readonly ledgerWriter: LedgerWriter;
  readonly lastKnownGood: LastKnownGood;
}

export const addressOf = (config: Config, port: number): string => {
  const host = config.server.host.includes(':') ? `[${config.server.host}]` : config.server.host;
  return `${config.tls.certificate_file === null ? 'http' : 'https'}://${host}:${port}`;
};

export async function reloadAll(supervisor: Supervisor): Promise<ReloadReply> {
  const { answers, missing } = await supervisor.ask('reload');
  return { workers: answers, missing };
}

export async function readiness(server: Observed): Promise<Readiness> {
  return judge(server.ledgerWriter, await server.supervisor.ask('status'));
}

/**
 * A worker that ended takes no connections until its replacement listens: the others answer, so that is a warning. One that hangs
 * still is given its share of them, which waits: that is a reason.
 */
function judge({ health }: LedgerWriter, { answers, missing }: Replies<'status'>): Readiness {
  const reasons: string[] = [];
  const warnings: string[] = [];
  if (answers.length === 0) reasons.push('no worker answers');
  for (const { worker, pid, listens, reason } of missing) {
    const process = pid === null ? '' : ` (pid ${pid})`;
    (listens ? reasons : warnings).push(`worker ${worker}${process} ${reason}`);
  }
  for (const worker of answers) {
    const { index_failure: failure } = worker;
    if (worker.generation === null)
      reasons.push(`worker ${worker.worker} serves no index${failure === null ? '' : `: ${failure}`}`);
    else if (failure !== null) reasons.push(`worker ${worker.worker}: ${failure}`);
    for (const [part, problem] of Object.entries(worker.problems))
      warnings.push(`worker ${worker.worker}, ${part}: ${problem}`);
    if (worker.unicode_agrees === false)
      warnings.push(`worker ${worker.worker}: the index was built with another Unicode version`);
    if (worker.draining) reasons.push(`worker ${worker.worker} is stopping`);
    if (!worker.ledger.ready && health.ready) reasons.push(`worker ${worker.worker}: ${worker.ledger.reason}`);
  }
  if (!health.ready) reasons.push(health.reason);
  return { ready: reasons.length === 0, reasons, warnings };
}

export async function serverStatus(server: Observed): Promise<Omit<ServerStatus, 'stopping'>> {
  const { config, supervisor, ledgerWriter, port, startedAt } = server;
  const replies = await supervisor.ask('status');
  return {
    version: PROGRAM_VERSION,
    pid: process.pid,
    started: startedAt.toISOString(),
    address: addressOf(config, port),
    tls: config.tls.certificate_file !== null,
    ...judge(ledgerWriter, replies),
    worker_restarts: supervisor.restarts,
    workers: replies.answers,
    missing: replies.missing,
  };
}

/** Prometheus text. */
export async function metricsText({ supervisor, ledgerWriter, lastKnownGood }: Observed): Promise<string> {
  const replies = await supervisor.ask('status');
  const { answers, missing } = replies;
  const { ready, warnings } = judge(ledgerWriter, replies);
  const gauges: Partial<Record<GaugeName, number>> = {
    ready: ready ? 1 : 0,
    warnings: warnings.length,
    workers: answers.length,
    workers_configured: answers.length + missing.length,
  };
  const served = answers.find((worker) => worker.generation !== null);
  if (served?.index_created) {
    gauges.index_generation = served.generation ?? 0;
    gauges.index_age_seconds = Math.max(0, (Date.now() - Date.parse(served.index_created)) / 1_000);
    gauges.index_records = served.records ?? 0;
  }
  const { certificate } = lastKnownGood.parts;
  if (certificate !== undefined) gauges.certificate_expiry_seconds = (certificate.expiresMs - Date.now()) / 1_000;
  const counters: Partial<Record<CounterName, number>> = { worker_restarts_total: supervisor.restarts };
  const ledger = answers[0]?.ledger;
  if (ledger !== undefined) {
    gauges.ledger_ready = ledger.ready && ledgerWriter.health.ready ? 1 : 0;
    gauges.ledger_wal_bytes = ledger.walBytes;
    gauges.ledger_commit_seconds = ledger.commitMs / 1_000;
    counters.ledger_commits_total = ledger.commits;
  }
  const labeled = { [seriesOf('build_info', { version: PROGRAM_VERSION, node: process.versions.node })]: 1 };
  const own = { counters, gauges: { ...gauges, ...labeled }, histograms: {} };
  return prometheusText(addSnapshots([await supervisor.metrics(), own]));
}
