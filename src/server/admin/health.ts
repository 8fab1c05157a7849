/** Readiness, status and metrics of a running server, and the result of a reload. */
import type { Config } from '../../config/config.ts';
import type { LedgerWriter } from '../../ledger/writer.ts';
import { endOfDayMs } from '../../license/license.ts';
import { withBrackets } from '../../network/address.ts';
import { PROGRAM_VERSION } from '../../version.ts';
import { type CounterName, type GaugeName, seriesOf } from '../metric-definitions.ts';
import type { Replies, Supervisor } from '../process/supervisor.ts';
import { expectedNames } from '../read-certificate.ts';
import type { Readiness, ReloadReply, ServerStatus } from '../status.ts';
import type { LastKnownGood } from '../swap/last-known-good.ts';
import type { HealthWatch } from './health-watch.ts';
import { addSnapshots, prometheusText } from './metric-counters.ts';
import {
  certificateProblems,
  dataWarnings,
  hostWarnings,
  quotaWarnings,
  WARNING_KINDS,
  type Warning,
  workerWarnings,
} from './warnings.ts';

/** The parts of a server that health is computed from. */
export interface ObservedServer {
  readonly config: Config;
  readonly port: number;
  readonly startedAt: Date;
  readonly supervisor: Supervisor;
  readonly ledgerWriter: LedgerWriter;
  readonly lastKnownGood: LastKnownGood;
  readonly watch: HealthWatch;
}

/** URL of the endpoint for clients. */
export const endpointUrl = (config: Config, port: number): string =>
  `${config.tls.certificate_file === null ? 'http' : 'https'}://${withBrackets(config.server.host)}:${port}`;

/** URL of the admin listener, for monitoring. */
export const adminUrl = (config: Config, port: number): string => `http://${withBrackets(config.admin.host)}:${port}`;

export async function reloadAll(server: ObservedServer): Promise<ReloadReply> {
  const { answers, missing } = await server.supervisor.ask('reload');
  await server.watch.look(() => currentWarnings(server));
  return { workers: answers, missing, warnings: (await currentWarnings(server)).map(({ text }) => text) };
}

export async function readiness(server: ObservedServer): Promise<Readiness> {
  const { warnings, ...judged } = judge(server, await server.supervisor.ask('status'));
  return { ...judged, warnings: warnings.map(({ text }) => text) };
}

/** Returns the current warnings. */
export async function currentWarnings(server: ObservedServer): Promise<readonly Warning[]> {
  return judge(server, await server.supervisor.ask('status')).warnings;
}

interface Judged extends Omit<Readiness, 'warnings'> {
  readonly warnings: readonly Warning[];
}

/**
 * Computes readiness and warnings from the workers' status. A worker that has ended is a warning: it gets no connections until its replacement
 * listens, and the other workers answer. A worker that hangs makes the server not ready: it still gets its share of the connections, which
 * wait.
 */
function judge(server: ObservedServer, { answers, missing }: Replies<'status'>): Judged {
  const { health, nearLimits } = server.ledgerWriter;
  const nowMs = Date.now();
  const reasons: string[] = [];
  const warnings: Warning[] = [];
  if (answers.length === 0) reasons.push('no worker answers');
  for (const { worker, pid, listens, reason } of missing) {
    const process = pid === null ? '' : ` (pid ${pid})`;
    const text = `worker ${worker}${process} ${reason}`;
    if (listens) reasons.push(text);
    else warnings.push({ kind: 'worker', text });
  }
  for (const worker of answers) {
    const { index_failure: failure } = worker;
    if (worker.generation === null)
      reasons.push(`worker ${worker.worker} serves no index${failure === null ? '' : `: ${failure}`}`);
    else if (failure !== null) reasons.push(`worker ${worker.worker}: ${failure}`);
    warnings.push(...workerWarnings(worker));
    if (worker.draining) reasons.push(`worker ${worker.worker} is stopping`);
    if (!worker.ledger.ready && health.ready) reasons.push(`worker ${worker.worker}: ${worker.ledger.reason}`);
  }
  if (!health.ready) reasons.push(health.reason);
  const [first] = answers;
  if (first !== undefined) warnings.push(...dataWarnings(first, nowMs));
  const { certificate } = server.lastKnownGood.parts;
  warnings.push(...certificateProblems(certificate, expectedNames(server.config), nowMs));
  warnings.push(...quotaWarnings(nearLimits), ...hostWarnings(server.watch.freeBytes));
  return { ready: reasons.length === 0, reasons, warnings };
}

export async function serverStatus(server: ObservedServer): Promise<Omit<ServerStatus, 'stopping'>> {
  const { config, supervisor, port, startedAt } = server;
  const replies = await supervisor.ask('status');
  const { warnings, ...judged } = judge(server, replies);
  return {
    version: PROGRAM_VERSION,
    pid: process.pid,
    started_at: startedAt.toISOString(),
    address: endpointUrl(config, port),
    tls: config.tls.certificate_file !== null,
    ...judged,
    warnings: warnings.map(({ text }) => text),
    worker_restarts: supervisor.restarts,
    workers: replies.answers,
    missing: replies.missing,
  };
}

/** Returns all metrics in the Prometheus text format. */
export async function metricsText(server: ObservedServer): Promise<string> {
  const { supervisor, ledgerWriter, lastKnownGood } = server;
  const replies = await supervisor.ask('status');
  const { answers, missing } = replies;
  const { ready, warnings } = judge(server, replies);
  const gauges: Partial<Record<GaugeName, number>> = {
    ready: ready ? 1 : 0,
    workers: answers.length,
    workers_configured: answers.length + missing.length,
  };
  const served = answers.find((worker) => worker.generation !== null);
  if (served?.index_created_at) {
    gauges.index_generation = served.generation ?? 0;
    gauges.index_age_seconds = Math.max(0, (Date.now() - Date.parse(served.index_created_at)) / 1_000);
    gauges.index_records = served.records ?? 0;
  }
  const { certificate } = lastKnownGood.parts;
  if (certificate !== undefined) gauges.certificate_expiry_seconds = (certificate.expiresMs - Date.now()) / 1_000;
  const until = answers[0]?.license.until;
  if (until !== undefined && until !== null) gauges.license_expiry_seconds = (endOfDayMs(until) - Date.now()) / 1_000;
  const counters: Partial<Record<CounterName, number>> = { worker_restarts_total: supervisor.restarts };
  const ledger = answers[0]?.ledger;
  if (ledger !== undefined) {
    gauges.ledger_ready = ledger.ready && ledgerWriter.health.ready ? 1 : 0;
    gauges.ledger_wal_bytes = ledger.wal_bytes;
    gauges.ledger_commit_seconds = ledger.commit_ms / 1_000;
    counters.ledger_commits_total = ledger.commits;
    if (ledger.fleet !== undefined) {
      gauges.fleet_staleness_seconds = ledger.fleet.stale_seconds;
      gauges.fleet_held_lookups = ledger.fleet.held;
      gauges.fleet_learning = ledger.fleet.learning ? 1 : 0;
    }
  }
  const labeled = {
    [seriesOf('build_info', { version: PROGRAM_VERSION, node: process.versions.node })]: 1,
    ...warningCounts(warnings),
    ...hostGauges(server),
  };
  const primary = { counters, gauges: { ...gauges, ...labeled }, histograms: {} };
  return prometheusText(addSnapshots([await supervisor.metrics(), primary]));
}

/** Returns the number of warnings of each kind, including kinds with none. */
function warningCounts(warnings: readonly Warning[]): Record<string, number> {
  const counts = WARNING_KINDS.map((kind) => [
    seriesOf('warnings', { kind }),
    warnings.filter((warning) => warning.kind === kind).length,
  ]);
  return Object.fromEntries(counts) as Record<string, number>;
}

function hostGauges({ watch, ledgerWriter }: ObservedServer): Record<string, number> {
  const gauges: Record<string, number> = {};
  for (const [place, bytes] of Object.entries(watch.freeBytes)) gauges[seriesOf('disk_free_bytes', { place })] = bytes;
  for (const { account, used, limit } of ledgerWriter.nearLimits)
    gauges[seriesOf('account_quota_used_ratio', { account })] = used / limit;
  return gauges;
}
