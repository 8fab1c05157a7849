/**
 * One worker: it listens, answers lookups, and swaps its data. Each worker is a process. The workers share the port, the mapped index, the
 * ledger and the table of the burst limit.
 */
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import { Meter } from '../../ledger/meter.ts';
import { parseNetworks } from '../../network/address.ts';
import type { SocketRange } from '../../platform/sockets.ts';
import { utc } from '../../times.ts';
import { WorkerMetrics } from '../admin/metric-counters.ts';
import { hasSameUnicode } from '../data-loader.ts';
import { failureFields, type Log } from '../log.ts';
import type { MetricsSnapshot } from '../metric-definitions.ts';
import { BurstLimiter } from '../request/burst-limit.ts';
import { CheckHandler } from '../request/check-handler.ts';
import { DecisionLog } from '../request/decision-log.ts';
import { RefusalLog } from '../request/refusal-log.ts';
import { DataWatch } from '../swap/data-watch.ts';
import type { KnownGoodPart, KnownGoodParts } from '../swap/last-known-good.ts';
import { ConnectionCount } from './connections.ts';
import { Listener } from './listener.ts';
import type { DecisionLogStatus, ReloadReport, WorkerStatus } from './worker-status.ts';

export interface WorkerOptions {
  readonly config: Config;
  /** From 0. */
  readonly number: number;
  /** Number of workers. `server.max_connections` is divided among them. */
  readonly workers: number;
  readonly burstMemory: ArrayBufferLike;
  readonly log: Log;
  /** What the other workers serve; used in place of files that are no longer usable. */
  readonly knownGood?: KnownGoodParts;
  /** Called when this worker has begun to use a part. */
  readonly onKnownGood?: (part: KnownGoodPart) => void;
}

/** After this long without requests, a worker that drains considers its open connections idle. */
const QUIET_MS = 250;
const DRAIN_STEP_MS = 25;

/** How much longer than allowed an idle connection may stay open: the transport checks them every four seconds. */
const IDLE_GRACE_SECONDS = 6;

/** Returns how long a drain may take, in milliseconds. Idle connections that are kept end by the transport's timeout. */
export const drainTimeoutMs = ({ drain_seconds, idle_seconds }: Config['server'], keepsIdle: boolean): number =>
  Math.max(drain_seconds, keepsIdle ? idle_seconds + IDLE_GRACE_SECONDS : 0) * 1_000;

/** One worker: its listener, data and connections, from the start to the drain. */
export class Worker {
  readonly #config: Config;
  readonly #metrics = new WorkerMetrics();
  readonly #meter: Meter;
  readonly #handler: CheckHandler;
  readonly #decisions: DecisionLog | undefined;
  readonly #refusals: RefusalLog;
  readonly #data: DataWatch;
  readonly #connections: ConnectionCount;
  #listener: Listener | undefined;
  /** Resolves when the drain is over; undefined before it begins. */
  #drained: Promise<void> | undefined;

  private constructor(options: WorkerOptions, meter: Meter) {
    const { config, number, workers, burstMemory, log, knownGood = {}, onKnownGood = () => {} } = options;
    this.#config = config;
    this.#meter = meter;
    this.#connections = new ConnectionCount({
      most: Math.ceil(config.server.max_connections / workers),
      mostUnanswered: config.server.max_unanswered_per_address,
      exempt: parseNetworks([...config.burst.exempt, ...config.burst.trusted_proxies]),
      onRefused: (reason) => this.#metrics.count('connections_refused_total', { reason }),
    });
    // Create these series at 0: rate() does not see the first count of a series that begins with it.
    for (const reason of ['all', 'address'] as const) this.#metrics.counter('connections_refused_total', { reason });
    for (const part of ['index', 'policy', 'certificate'] as const)
      for (const outcome of ['done', 'refused'] as const) this.#metrics.counter('swaps_total', { part, outcome });
    this.#data = new DataWatch({ config, log, metrics: this.#metrics, knownGood, onKnownGood });
    this.#decisions = config.decision_log.enabled ? openDecisionLog(config, number, log) : undefined;
    this.#refusals = new RefusalLog({ log, networks: config.log.client_networks });
    this.#handler = new CheckHandler({
      config,
      meter,
      burst: new BurstLimiter(burstMemory, config.burst),
      metrics: this.#metrics,
      log,
      decisions: this.#decisions,
      refusals: this.#refusals,
      served: () => this.#data.served,
      onDamage: (error) => this.#data.onDamage(error),
      closedConnections: () => this.#connections.closed,
      isDraining: () => this.#drained !== undefined,
    });
  }

  /**
   * Opens ledger, policy and index. If the index cannot be used, the worker starts without one and loads it later, unless the other workers serve
   * an index: then this worker serves it too.
   *
   * @throws PagegateError if the ledger or policy cannot be used, or if the other workers' index cannot be opened
   */
  static async open(options: WorkerOptions): Promise<Worker> {
    const { config } = options;
    const meter = new Meter({ file: statePaths(config).ledgerFile });
    try {
      const worker = new Worker(options, meter);
      await worker.#data.openIndex();
      return worker;
    } catch (error) {
      await meter.close();
      throw error;
    }
  }

  /** Listens and begins to watch files. */
  async listen(port: number): Promise<void> {
    const certificate = this.#data.chooseCertificate();
    const handle = this.#handler.handle.bind(this.#handler);
    const { tls } = this.#config;
    const { idle_seconds: idleSeconds, keep_alive_seconds: keepAliveSeconds } = this.#config.server;
    this.#listener = new Listener({
      handle,
      tls,
      certificate: certificate.value,
      connections: this.#connections,
      idleSeconds,
      keepAliveSeconds,
    });
    await this.#listener.listen(this.#config.server.host, port);
    this.#data.start(this.#listener, certificate);
  }

  /** See {@link DataWatch.reload}. */
  reload(): Promise<ReloadReport> {
    return this.#data.reload();
  }

  status(): WorkerStatus {
    const { served, policy, notices, indexFailure, problems } = this.#data;
    const info = served?.index.info;
    return {
      pid: process.pid,
      ready: served !== undefined && this.#listener !== undefined && this.#drained === undefined,
      draining: this.#drained !== undefined,
      data: served?.tag ?? null,
      generation: info?.generation ?? null,
      index_created_at: info === undefined ? null : utc(info.created),
      dataset: info?.dataset ?? null,
      revision: info?.revision ?? null,
      records: info?.recordCount ?? null,
      page_types_complete: info?.pageTypesComplete ?? null,
      unicode_agrees: served === undefined ? null : hasSameUnicode(served.index),
      policy: policy.revision,
      connections: this.#connections.open,
      in_flight: this.#handler.inFlight,
      ledger: this.#meter.health(),
      license: notices.license(info),
      withdrawn: notices.withdrawn(info),
      decision_log: this.#decisionLogStatus(),
      index_failure: indexFailure ?? null,
      problems: { ...problems },
    };
  }

  #decisionLogStatus(): DecisionLogStatus | null {
    if (this.#decisions === undefined) return null;
    const { counts, problem } = this.#decisions;
    return { ...counts, problem };
  }

  metrics(): MetricsSnapshot {
    const snapshot = this.#metrics.snapshot({
      connections: this.#connections.open,
      in_flight: this.#handler.inFlight,
    });
    if (this.#decisions === undefined) return snapshot;
    const { lines, dropped } = this.#decisions.counts;
    const counters = { ...snapshot.counters, decision_log_lines_total: lines, decision_log_dropped_total: dropped };
    return { ...snapshot, counters };
  }

  /** Gives all new connections to the sockets in this range of all that share the port; without a range, distributes them over all again. */
  steer(range: SocketRange | undefined): void {
    this.#listener?.steer(range);
  }

  /**
   * Drains the worker: accepts no new connections, answers open requests with `Connection: close`, then closes the ledger. Further calls return
   * the promise of the first.
   *
   * @param keepsIdle leaves idle connections to their clients: each ends with its next response, or with the transport's timeout. Otherwise they
   * are closed as soon as there is no activity on any connection.
   */
  drain(keepsIdle = false): Promise<void> {
    this.#drained ??= this.#drain(keepsIdle);
    return this.#drained;
  }

  async #drain(keepsIdle: boolean): Promise<void> {
    this.#data.stop();
    const limitMs = drainTimeoutMs(this.#config.server, keepsIdle);
    const deadline = performance.now() + limitMs;
    await this.#listener?.stopListening();
    let busyAt = performance.now();
    let closed = 0;
    while (this.#connections.open > 0 && performance.now() < deadline) {
      // During a drain, each response ends its connection, so a closed connection counts as activity.
      if (this.#handler.inFlight > 0 || this.#connections.closed !== closed) busyAt = performance.now();
      closed = this.#connections.closed;
      if (!keepsIdle && performance.now() - busyAt > QUIET_MS) break;
      await new Promise((resolve) => setTimeout(resolve, DRAIN_STEP_MS));
    }
    this.#listener?.close();
    this.#listener = undefined;
    await this.#meter.close();
    this.#data.close();
    await this.#decisions?.close();
    this.#refusals.close();
  }
}

function openDecisionLog(config: Config, worker: number, log: Log): DecisionLog {
  const { full_url, max_size_mb, keep_files, queue_lines } = config.decision_log;
  const decisions = new DecisionLog({
    dir: statePaths(config).logDir,
    worker,
    fullUrl: full_url,
    maxSizeBytes: max_size_mb * 1_000_000,
    keepFiles: keep_files,
    queueLines: queue_lines,
    onFailure: (error) => log('decision_log_failed', failureFields(error)),
  });
  decisions.begin();
  return decisions;
}
