/**
 * One worker: it listens, answers, and swaps what it serves. Several share the port, the mapped index, the ledger and the
 * table of the burst guard; each lives in a process of its own, or the only one in the primary's.
 */
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import { PagegateError } from '../../errors.ts';
import type { Index } from '../../index/read.ts';
import { type Meter, openMeter } from '../../ledger/meter.ts';
import { parseNetworks } from '../../network/address.ts';
import type { SocketRange } from '../../platform/sockets.ts';
import { compilePolicy, type Policy } from '../../policy/policy.ts';
import { type MetricsSnapshot, WorkerMetrics } from '../admin/metrics.ts';
import { type Certificate, configuredCertificate } from '../certificate.ts';
import { fileIdentity, hasSameUnicode, openCurrentIndex, openGivenIndex, openPolicy, warm } from '../data-loader.ts';
import { failureFields, type Log } from '../log.ts';
import { BurstGuard } from '../request/burst.ts';
import { CheckHandler } from '../request/check-handler.ts';
import { DecisionLog } from '../request/decision-log.ts';
import { CONTENT_HEADERS } from '../request/refusal.ts';
import { RefusalLog } from '../request/refusal-log.ts';
import { ActiveData } from './active-data.ts';
import { ConnectionCount } from './connections.ts';
import { DataNotices } from './data-notices.ts';
import { type KnownGoodPart, type KnownGoodParts, loadOrFallBack } from './last-known-good.ts';
import { Listener } from './listener.ts';
import type { DecisionLogStatus, Part, ReloadReport, WorkerStatus } from './worker-status.ts';

export interface WorkerOptions {
  readonly config: Config;
  /** From 0. */
  readonly number: number;
  /** How many workers there are: they share the connections among them. */
  readonly workers: number;
  readonly burstMemory: ArrayBufferLike;
  readonly log: Log;
  /** What the other workers serve, for where the files do not serve any more. */
  readonly knownGood?: KnownGoodParts;
  /** Called when this worker has taken a part into use. */
  readonly onKnownGood?: (acceptance: KnownGoodPart) => void;
}

/** Without new requests for this long, a stopping worker takes its open connections for idle. */
const QUIET_MS = 250;
const DRAIN_STEP_MS = 25;

/** The transport looks for idle connections every four seconds; so much longer than allowed one may be left. */
const IDLE_GRACE_SECONDS = 6;

/** How long draining takes at most, in milliseconds; idle connections that are kept end by the transport's own timeout. */
export const drainMs = ({ drain_seconds, idle_seconds }: Config['server'], keepsIdle: boolean): number =>
  Math.max(drain_seconds, keepsIdle ? idle_seconds + IDLE_GRACE_SECONDS : 0) * 1_000;

/** One worker process: its listener, its data, its share of the connections, from the start to the drain. */
export class Worker {
  readonly #config: Config;
  readonly #log: Log;
  readonly #metrics = new WorkerMetrics();
  readonly #meter: Meter;
  readonly #handler: CheckHandler;
  readonly #decisions: DecisionLog | undefined;
  readonly #refusals: RefusalLog;
  readonly #notices: DataNotices;
  readonly #connections: ConnectionCount;
  readonly #onKnownGood: (acceptance: KnownGoodPart) => void;
  readonly #problems: Partial<Record<Part, string>> = {};
  readonly #identities: Record<Part, string> = { policy: '', index: '', certificate: '' };
  /** Only until the worker listens. */
  #knownGood: KnownGoodParts;
  #served: ActiveData | undefined;
  /** Why lookups fail, or why there is nothing that could be looked into: the index that is served, or was, is damaged or was changed. */
  #indexFailure: string | undefined;
  #policy: Policy;
  #listener: Listener | undefined;
  #isDraining = false;
  #loading: Promise<unknown> = Promise.resolve();
  #poll: NodeJS.Timeout | undefined;

  private constructor(options: WorkerOptions, meter: Meter) {
    const { config, number, workers, burstMemory, log, knownGood = {}, onKnownGood = () => {} } = options;
    this.#config = config;
    this.#log = log;
    this.#knownGood = knownGood;
    this.#onKnownGood = onKnownGood;
    this.#meter = meter;
    this.#connections = new ConnectionCount({
      most: Math.ceil(config.server.max_connections / workers),
      mostUnanswered: config.server.max_unanswered_per_address,
      exempt: parseNetworks([...config.burst.exempt, ...config.burst.trusted_proxies]),
      onRefused: (reason) => this.#metrics.count('connections_refused_total', { reason }),
    });
    for (const reason of ['all', 'address'] as const) this.#metrics.counter('connections_refused_total', { reason });
    this.#policy = this.#firstPolicy();
    this.#decisions = config.decision_log.enabled ? openDecisionLog(config, number, log) : undefined;
    this.#refusals = new RefusalLog({ log, networks: config.log.client_networks });
    this.#notices = new DataNotices(config);
    this.#handler = new CheckHandler({
      config,
      meter,
      burst: new BurstGuard(burstMemory, config.burst),
      metrics: this.#metrics,
      log,
      decisions: this.#decisions,
      refusals: this.#refusals,
      served: () => this.#served,
      onDamage: (error) => this.#onDamage(error),
      closedConnections: () => this.#connections.closed,
      isDraining: () => this.#isDraining,
    });
  }

  /**
   * Opens ledger, policy and index. A policy or ledger that cannot be used stops the start. An index can come later, unless the other
   * workers have one: then this one has it too, or does not start.
   */
  static async open(options: WorkerOptions): Promise<Worker> {
    const { config } = options;
    const meter = await openMeter({ file: statePaths(config).ledgerFile });
    try {
      const worker = new Worker(options, meter);
      await worker.#firstIndex();
      return worker;
    } catch (error) {
      await meter.close();
      throw error;
    }
  }

  /** Listens and begins to watch files. */
  async listen(port: number): Promise<void> {
    this.#identities.certificate = this.#identityOf('certificate');
    const { certificate: kept } = this.#knownGood;
    const load = (): Certificate | undefined => configuredCertificate(this.#config.tls);
    const { value, problem } = loadOrFallBack(load, kept === undefined ? undefined : () => kept);
    this.#knownGood = {};
    const handle = this.#handler.handle.bind(this.#handler);
    const { tls } = this.#config;
    const { idle_seconds: idleSeconds, keep_alive_seconds: keepAliveSeconds } = this.#config.server;
    this.#listener = new Listener({
      handle,
      tls,
      certificate: value,
      connections: this.#connections,
      idleSeconds,
      keepAliveSeconds,
    });
    await this.#listener.listen(this.#config.server.host, port);
    if (problem !== undefined) this.#keep('certificate', problem);
    else if (value !== undefined) this.#onKnownGood({ part: 'certificate', certificate: value });
    this.#poll = setInterval(() => void this.#oneAtATime(() => this.#look()), this.#config.server.poll_seconds * 1_000);
    this.#poll.unref();
  }

  /** Loads every part anew, the index even where its file is the same. What is refused leaves the old one in use. */
  reload(): Promise<ReloadReport> {
    this.#notices.look();
    return this.#oneAtATime(async () => {
      this.#dropChangedIndex();
      return this.#reloadAll();
    });
  }

  async #reloadAll(): Promise<ReloadReport> {
    return {
      policy: this.#isCurrent('policy')
        ? `unchanged (${this.#policy.revision})`
        : await this.#reload('policy', () => this.#swapPolicy()),
      index: await this.#reload('index', () => this.#swapIndex()),
      certificate: this.#isCurrent('certificate')
        ? 'unchanged'
        : await this.#reload('certificate', () => this.#swapCertificate()),
    };
  }

  status(): WorkerStatus {
    const info = this.#served?.index.info;
    return {
      pid: process.pid,
      ready: this.#served !== undefined && this.#listener !== undefined && !this.#isDraining,
      draining: this.#isDraining,
      data: this.#served?.tag ?? null,
      generation: info?.generation ?? null,
      index_created: info?.created ?? null,
      dataset: info?.dataset ?? null,
      revision: info?.revision ?? null,
      records: info?.recordCount ?? null,
      page_types_complete: info?.pageTypesComplete ?? null,
      unicode_agrees: this.#served === undefined ? null : hasSameUnicode(this.#served.index),
      policy: this.#policy.revision,
      connections: this.#connections.open,
      in_flight: this.#handler.inFlight,
      ledger: this.#meter.health(),
      license: this.#notices.license,
      withdrawn: this.#notices.withdrawn(info?.generation),
      decision_log: this.#decisionLogStatus(),
      index_failure: this.#indexFailure ?? null,
      problems: { ...this.#problems },
    };
  }

  #decisionLogStatus(): DecisionLogStatus | null {
    if (this.#decisions === undefined) return null;
    const { counts, problem } = this.#decisions;
    return { lines: counts.written, dropped: counts.dropped, problem };
  }

  metrics(): MetricsSnapshot {
    const snapshot = this.#metrics.snapshot({
      connections: this.#connections.open,
      in_flight: this.#handler.inFlight,
    });
    if (this.#decisions === undefined) return snapshot;
    const { written, dropped } = this.#decisions.counts;
    const counters = { ...snapshot.counters, decision_log_lines_total: written, decision_log_dropped_total: dropped };
    return { ...snapshot, counters };
  }

  /** Gives all new connections to the workers whose sockets are in this range of all that share the port, or again to each its share. */
  steer(range: SocketRange | undefined): boolean {
    return this.#listener?.steer(range) ?? false;
  }

  /**
   * Stops: no new connections, open requests answered with `Connection: close`, then the ledger.
   *
   * @param keepsIdle leaves idle connections to their clients: each ends with its next answer, or with the transport's timeout. Otherwise
   * they are closed as soon as nothing happens on any.
   */
  async drain(keepsIdle = false): Promise<void> {
    if (this.#isDraining) return;
    this.#isDraining = true;
    clearInterval(this.#poll);
    const limitMs = drainMs(this.#config.server, keepsIdle);
    const deadline = performance.now() + limitMs;
    await this.#listener?.stopListening();
    let busyAt = performance.now();
    let closed = 0;
    while (this.#connections.open > 0 && performance.now() < deadline) {
      // Each answer ends its connection now.
      if (this.#handler.inFlight > 0 || this.#connections.closed !== closed) busyAt = performance.now();
      closed = this.#connections.closed;
      if (!keepsIdle && performance.now() - busyAt > QUIET_MS) break;
      await new Promise((resolve) => setTimeout(resolve, DRAIN_STEP_MS));
    }
    this.#listener?.close();
    this.#listener = undefined;
    await this.#meter.close();
    this.#served?.index.close();
    this.#served = undefined;
    await this.#decisions?.close();
    this.#refusals.close();
  }

  #firstPolicy(): Policy {
    this.#identities.policy = this.#identityOf('policy');
    const { policy: kept } = this.#knownGood;
    const keep = kept === undefined ? undefined : () => compilePolicy(kept);
    const { value, problem } = loadOrFallBack(() => openPolicy(this.#config), keep);
    if (problem === undefined) this.#accept(value);
    else this.#keep('policy', problem);
    return value;
  }

  async #firstIndex(): Promise<void> {
    await this.#reload('index', () => this.#swapIndex());
    if (this.#served !== undefined || this.#knownGood.index === undefined) return;
    try {
      await this.#serve(openGivenIndex(this.#knownGood.index));
      this.#log('index_kept', { reason: this.#problems.index });
    } catch (error) {
      // The others do not serve it any more either, once they have looked.
      if (!isIndexChanged(error)) throw error;
      this.#indexFailure = error.message;
      this.#log('index_dropped', failureFields(error));
    }
  }

  /** The files of a part do not serve, what the other workers serve does. */
  #keep(part: Part, problem: unknown): void {
    const reason = this.#refuse(part, problem);
    this.#log(`${part}_kept`, { reason });
  }

  #accept({ document, warnings }: Policy): void {
    for (const warning of warnings) this.#log('policy_warning', { warning });
    this.#onKnownGood({ part: 'policy', document });
  }

  /** Reloads what changed on the disk since it was last looked at. */
  async #look(): Promise<void> {
    await this.#listener?.closeUnused();
    if (this.#isDraining) return;
    this.#notices.look();
    this.#dropChangedIndex();
    if (this.#hasChanged('policy')) await this.#reload('policy', () => this.#swapPolicy());
    if (this.#hasChanged('index')) await this.#reload('index', () => this.#swapIndex());
    if (this.#hasChanged('certificate')) await this.#reload('certificate', () => this.#swapCertificate());
  }

  /** Loading takes turns: two loads at once could end with the older one in use. */
  #oneAtATime<T>(task: () => Promise<T>): Promise<T> {
    const run = this.#loading.then(task);
    this.#loading = run.catch(() => {});
    return run;
  }

  #identityOf(part: Part): string {
    if (part === 'index') return fileIdentity(statePaths(this.#config).indexFile);
    if (part === 'policy') return fileIdentity(this.#config.policy.file);
    return `${fileIdentity(this.#config.tls.certificate_file)} ${fileIdentity(this.#config.tls.key_file)}`;
  }

  #hasChanged(part: Part): boolean {
    return this.#identityOf(part) !== this.#identities[part];
  }

  /** Whether the files of a part are those that are in use. */
  #isCurrent(part: Part): boolean {
    return this.#problems[part] === undefined && !this.#hasChanged(part);
  }

  /** Tries to load a part; a failure is logged, counted and kept for health, and changes nothing. */
  async #reload(part: Part, load: () => Promise<string>): Promise<string> {
    this.#identities[part] = this.#identityOf(part);
    try {
      const outcome = await load();
      delete this.#problems[part];
      return outcome;
    } catch (error) {
      return `refused: ${this.#refuse(part, error)}`;
    }
  }

  /** Returns why, in words. */
  #refuse(part: Part, error: unknown): string {
    const reason = error instanceof PagegateError ? error.message : String(error);
    this.#problems[part] = reason;
    this.#metrics.count('swaps_total', { part, outcome: 'refused' });
    this.#log(`${part}_refused`, failureFields(error));
    return reason;
  }

  async #swapIndex(): Promise<string> {
    const identity = this.#identityOf('index');
    const index = openCurrentIndex(this.#config);
    // Another file may have taken the place of the one that was looked at; it is found at the next look.
    const isSame = identity === this.#identityOf('index');
    await this.#serve(index);
    if (isSame) this.#onKnownGood({ part: 'index', identity });
    return `generation ${index.info.generation}`;
  }

  async #serve(index: Index): Promise<void> {
    if (!hasSameUnicode(index)) this.#log('unicode_differs', { index: index.info.unicodeVersion });
    if (this.#config.index.warm) await warm(index, this.#log);
    this.#use(index, this.#policy, 'index');
  }

  /** An index whose file was written to or cut is two indexes in one, or ends the process: no answer is better. */
  #dropChangedIndex(): void {
    const problem = this.#served?.index.fileProblem();
    if (problem === undefined) return;
    this.#served?.index.close();
    this.#served = undefined;
    this.#indexFailure = problem.message;
    this.#log('index_dropped', failureFields(problem));
  }

  /** A lookup met damage. What came before and after it may be right, but nobody can say so of the next one. */
  #onDamage(error: PagegateError): void {
    if (this.#indexFailure !== undefined) return;
    this.#indexFailure = error.message;
    void this.#oneAtATime(() => this.#look());
  }

  async #swapPolicy(): Promise<string> {
    const policy = openPolicy(this.#config);
    this.#accept(policy);
    if (policy.revision === this.#policy.revision) return `unchanged (${policy.revision})`;
    this.#policy = policy;
    if (this.#served !== undefined) this.#use(this.#served.index, policy, 'policy');
    return policy.revision;
  }

  /** Between two requests: nobody uses what was served before. */
  #use(index: Index, policy: Policy, part: 'index' | 'policy'): void {
    const old = this.#served;
    this.#served = new ActiveData(index, policy, CONTENT_HEADERS);
    if (old?.index !== index) this.#indexFailure = undefined;
    if (old !== undefined && old.index !== index) old.index.close();
    this.#metrics.count('swaps_total', { part, outcome: 'done' });
    this.#log(`${part}_in_use`, { data: this.#served.tag, records: index.info.recordCount });
  }

  /** Open connections stay with the old certificate until they end. */
  async #swapCertificate(): Promise<string> {
    const certificate = configuredCertificate(this.#config.tls);
    if (certificate === undefined || this.#listener === undefined) return 'none';
    this.#listener.useCertificate(certificate);
    this.#onKnownGood({ part: 'certificate', certificate });
    this.#metrics.count('swaps_total', { part: 'certificate', outcome: 'done' });
    this.#log('certificate_in_use');
    return 'in use';
  }
}

const isIndexChanged = (error: unknown): error is PagegateError =>
  error instanceof PagegateError && error.code === 'index_changed';

function openDecisionLog(config: Config, worker: number, log: Log): DecisionLog {
  const { full_url, max_size_mb, keep_files, queue_lines } = config.decision_log;
  return new DecisionLog({
    dir: statePaths(config).logDir,
    worker,
    fullUrl: full_url,
    maxSizeBytes: max_size_mb * 1_000_000,
    keepFiles: keep_files,
    queueLines: queue_lines,
    onFailure: (error) => log('decision_log_failed', failureFields(error)),
  });
}
