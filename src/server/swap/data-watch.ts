/**
 * Loads the policy, index and certificate of a worker at its start, checks their files every few seconds, and swaps those that have changed.
 * A part that cannot be used is refused; the last known good one stays in use.
 */
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import { PagegateError } from '../../errors.ts';
import type { Index } from '../../index/read.ts';
import { compilePolicy, type Policy } from '../../policy/policy.ts';
import { runInTurns } from '../../steps.ts';
import type { WorkerMetrics } from '../admin/metric-counters.ts';
import {
  fileIdentity,
  hasSameUnicode,
  openCurrentIndex,
  openGivenIndex,
  openPolicy,
  openPolicySteps,
  warmIndex,
} from '../data-loader.ts';
import { failureFields, type Log } from '../log.ts';
import type { DataPart, ReloadReport } from '../process/worker-status.ts';
import { type Certificate, configuredCertificate } from '../read-certificate.ts';
import { ActiveData } from './active-data.ts';
import { DataNotices } from './data-notices.ts';
import { type ChosenPart, type KnownGoodPart, type KnownGoodParts, loadOrFallBack } from './last-known-good.ts';

export interface DataWatchOptions {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: WorkerMetrics;
  /** What the other workers serve; used in place of files that are no longer usable. */
  readonly knownGood: KnownGoodParts;
  /** Called when this worker has begun to use a part. */
  readonly onKnownGood: (part: KnownGoodPart) => void;
}

/** The certificate functions of the listener. */
export interface TlsListener {
  useCertificate(certificate: Certificate): void;
  /** Frees the certificates that no open connection uses. */
  closeUnused(): Promise<void>;
}

/** Loads, watches and swaps the data of one worker. */
export class DataWatch {
  /** The license and the rolled-back drops, for health. */
  readonly notices: DataNotices;
  /** Why the files of a part were refused. Parts in use as their files have them have no entry. */
  readonly problems: Partial<Record<DataPart, string>> = {};
  readonly #options: DataWatchOptions;
  readonly #identities: Record<DataPart, string> = { policy: '', index: '', certificate: '' };
  /** Needed only until the worker listens; empty afterwards. */
  #knownGood: KnownGoodParts;
  #served: ActiveData | undefined;
  #indexFailure: string | undefined;
  #policy: Policy;
  #listener: TlsListener | undefined;
  #loading: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /**
   * Loads the policy.
   *
   * @throws PagegateError if it cannot be used and the other workers have none
   */
  constructor(options: DataWatchOptions) {
    this.#options = options;
    this.#knownGood = options.knownGood;
    this.#policy = this.#firstPolicy();
    this.notices = new DataNotices(options.config);
  }

  /** The data in use; undefined while there is no usable index. */
  get served(): ActiveData | undefined {
    return this.#served;
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** Why lookups fail or no index is served: the index is damaged, or its file was written to or truncated. Undefined if neither is known. */
  get indexFailure(): string | undefined {
    return this.#indexFailure;
  }

  /**
   * Loads the index. If that fails, the worker starts without an index, unless the other workers serve one: then this worker serves it too.
   *
   * @throws PagegateError if the index of the other workers cannot be opened
   */
  async openIndex(): Promise<void> {
    await this.#reload('index', () => this.#openCurrent());
    if (this.#served !== undefined || this.#knownGood.index === undefined) return;
    try {
      await this.#serve(openGivenIndex(this.#knownGood.index));
      this.#options.log('index_kept', { reason: this.problems.index });
    } catch (error) {
      // The other workers drop it too when they next check the file.
      if (!isIndexChanged(error)) throw error;
      this.#indexFailure = error.message;
      this.#options.log('index_dropped', failureFields(error));
    }
  }

  /**
   * Returns the certificate to listen with: from the files, or, if they are unusable, the one of the other workers.
   *
   * @throws PagegateError tls_unusable if the files are unusable and the other workers have none
   */
  chooseCertificate(): ChosenPart<Certificate | undefined> {
    this.#identities.certificate = this.#identityOf('certificate');
    const { certificate: kept } = this.#knownGood;
    const load = (): Certificate | undefined => configuredCertificate(this.#options.config.tls);
    return loadOrFallBack(load, kept === undefined ? undefined : () => kept);
  }

  /** Begins to watch the files. Call it when the worker listens with the chosen certificate. */
  start(listener: TlsListener, { value, problem }: ChosenPart<Certificate | undefined>): void {
    this.#listener = listener;
    this.#knownGood = {};
    if (problem !== undefined) this.#keep('certificate', problem);
    else if (value !== undefined) this.#options.onKnownGood({ part: 'certificate', certificate: value });
    const everyMs = this.#options.config.server.poll_seconds * 1_000;
    this.#timer = setInterval(() => void this.#oneAtATime(() => this.#look()), everyMs);
    this.#timer.unref();
  }

  /** Reloads every part, and the index even if its file is unchanged. If a part is refused, the old one stays in use. */
  reload(): Promise<ReloadReport> {
    this.notices.look();
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

  /** Called when a lookup finds corruption. The worker is then not ready: other lookups may be right, but that cannot be known. */
  onDamage(error: PagegateError): void {
    if (this.#indexFailure !== undefined) return;
    this.#indexFailure = error.message;
    void this.#oneAtATime(() => this.#look());
  }

  /** Stops watching the files. The data stays in use. */
  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /** Closes the index. No request may be open. */
  close(): void {
    this.#listener = undefined;
    this.#served?.index.close();
    this.#served = undefined;
  }

  #firstPolicy(): Policy {
    this.#identities.policy = this.#identityOf('policy');
    const { policy: kept } = this.#knownGood;
    const keep = kept === undefined ? undefined : () => compilePolicy(kept);
    const { value, problem } = loadOrFallBack(() => openPolicy(this.#options.config), keep);
    if (problem === undefined) this.#accept(value);
    else this.#keep('policy', problem);
    return value;
  }

  /** Records that the files of a part were refused and that the data of the other workers is used instead. */
  #keep(part: DataPart, problem: unknown): void {
    const reason = this.#refuse(part, problem);
    this.#options.log(`${part}_kept`, { reason });
  }

  #accept({ document, warnings }: Policy): void {
    for (const warning of warnings) this.#options.log('policy_warning', { warning });
    this.#options.onKnownGood({ part: 'policy', document });
  }

  /** Reloads the parts whose files have changed since the last check. */
  async #look(): Promise<void> {
    await this.#listener?.closeUnused();
    if (this.#isStopped) return;
    const hasNews = this.notices.look();
    this.#dropChangedIndex();
    if (this.#hasChanged('policy')) await this.#reload('policy', () => this.#swapPolicy());
    // An index that was refused for its license is accepted when the license, or the key that it is signed with, is put back.
    const mayBeLicensed = hasNews && this.problems.index !== undefined;
    if (mayBeLicensed || this.#hasChanged('index')) await this.#reload('index', () => this.#swapIndex());
    if (this.#hasChanged('certificate')) await this.#reload('certificate', () => this.#swapCertificate());
  }

  /** Runs one load after another: of two at once, the older one could finish last and stay in use. */
  #oneAtATime<T>(task: () => Promise<T>): Promise<T> {
    const run = this.#loading.then(task);
    this.#loading = run.catch(() => {});
    return run;
  }

  #identityOf(part: DataPart): string {
    if (part === 'index') return fileIdentity(statePaths(this.#options.config).indexFile);
    if (part === 'policy') return fileIdentity(this.#options.config.policy.file);
    return `${fileIdentity(this.#options.config.tls.certificate_file)} ${fileIdentity(this.#options.config.tls.key_file)}`;
  }

  #hasChanged(part: DataPart): boolean {
    return this.#identityOf(part) !== this.#identities[part];
  }

  /** Whether the files of a part are unchanged since they were taken into use. */
  #isCurrent(part: DataPart): boolean {
    return this.problems[part] === undefined && !this.#hasChanged(part);
  }

  /** Tries to load a part. Returns the outcome. If it fails, the failure is logged, counted and kept for health, and the old part stays in use. */
  async #reload(part: DataPart, load: () => Promise<string>): Promise<string> {
    this.#identities[part] = this.#identityOf(part);
    try {
      const outcome = await load();
      delete this.problems[part];
      return outcome;
    } catch (error) {
      return `refused: ${this.#refuse(part, error)}`;
    }
  }

  /** Logs, counts and stores the reason why a part was refused. Returns the reason. */
  #refuse(part: DataPart, error: unknown): string {
    const reason = error instanceof PagegateError ? error.message : String(error);
    this.problems[part] = reason;
    this.#options.metrics.count('swaps_total', { part, outcome: 'refused' });
    this.#options.log(`${part}_refused`, failureFields(error));
    return reason;
  }

  async #swapIndex(): Promise<string> {
    const outcome = await this.#openCurrent();
    this.#options.metrics.count('swaps_total', { part: 'index', outcome: 'done' });
    return outcome;
  }

  async #openCurrent(): Promise<string> {
    const identity = this.#identityOf('index');
    const index = openCurrentIndex(this.#options.config);
    // The file may have been replaced between the two steps. Then the next check finds the new one.
    const isSame = identity === this.#identityOf('index');
    await this.#serve(index);
    if (isSame) this.#options.onKnownGood({ part: 'index', identity });
    return `generation ${index.info.generation}`;
  }

  async #serve(index: Index): Promise<void> {
    if (!hasSameUnicode(index)) this.#options.log('unicode_differs', { index: index.info.unicodeVersion });
    if (this.#options.config.index.warm) await warmIndex(index, this.#options.log);
    this.#use(index, this.#policy, 'index');
  }

  /**
   * Drops an index whose file was written to or truncated: a modified file mixes two indexes, and reading beyond the end of a truncated one
   * kills the process. No answer is better.
   */
  #dropChangedIndex(): void {
    const problem = this.#served?.index.fileProblem();
    if (problem === undefined) return;
    this.#served?.index.close();
    this.#served = undefined;
    this.#indexFailure = problem.message;
    this.#options.log('index_dropped', failureFields(problem));
  }

  async #swapPolicy(): Promise<string> {
    const policy = await runInTurns(openPolicySteps(this.#options.config));
    this.#accept(policy);
    if (policy.revision === this.#policy.revision) return `unchanged (${policy.revision})`;
    this.#policy = policy;
    if (this.#served !== undefined) this.#use(this.#served.index, policy, 'policy');
    this.#options.metrics.count('swaps_total', { part: 'policy', outcome: 'done' });
    return policy.revision;
  }

  /** Swaps the data in use. This runs between two requests, so no request uses the old data. */
  #use(index: Index, policy: Policy, part: 'index' | 'policy'): void {
    const old = this.#served;
    this.#served = new ActiveData(index, policy);
    if (old?.index !== index) this.#indexFailure = undefined;
    if (old !== undefined && old.index !== index) old.index.close();
    this.#options.log(`${part}_in_use`, { data: this.#served.tag, records: index.info.recordCount });
  }

  /** Swaps the certificate for new connections. Open connections keep the old one. */
  async #swapCertificate(): Promise<string> {
    const certificate = configuredCertificate(this.#options.config.tls);
    if (certificate === undefined || this.#listener === undefined) return 'none';
    this.#listener.useCertificate(certificate);
    this.#options.onKnownGood({ part: 'certificate', certificate });
    this.#options.metrics.count('swaps_total', { part: 'certificate', outcome: 'done' });
    this.#options.log('certificate_in_use');
    return 'in use';
  }
}

const isIndexChanged = (error: unknown): error is PagegateError =>
  error instanceof PagegateError && error.code === 'index_changed';
