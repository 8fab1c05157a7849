/**
 * What a worker serves: policy, index and certificate, loaded at its start, looked at on the disk every few seconds, and exchanged where
 * they have changed. What cannot be used is refused, and what was served goes on.
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
  /** What the other workers serve, for where the files do not serve any more. */
  readonly knownGood: KnownGoodParts;
  /** Called when a part was taken into use. */
  readonly onKnownGood: (part: KnownGoodPart) => void;
}

/** The listener, as far as it presents the certificate. */
export interface TlsListener {
  useCertificate(certificate: Certificate): void;
  /** Forgets the certificates that no connection uses any more. */
  closeUnused(): Promise<void>;
}

/** Loads, watches and exchanges what one worker serves. */
export class DataWatch {
  /** The license and the drops that were rolled back, for health. */
  readonly notices: DataNotices;
  /** Why each part is not what its files say; parts that are have no entry. */
  readonly problems: Partial<Record<DataPart, string>> = {};
  readonly #options: DataWatchOptions;
  readonly #identities: Record<DataPart, string> = { policy: '', index: '', certificate: '' };
  /** Only until the worker listens. */
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
   * @throws what is wrong with it, where the other workers have none
   */
  constructor(options: DataWatchOptions) {
    this.#options = options;
    this.#knownGood = options.knownGood;
    this.#policy = this.#firstPolicy();
    this.notices = new DataNotices(options.config);
  }

  /** Undefined while there is no index that can be looked into. */
  get served(): ActiveData | undefined {
    return this.#served;
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** Why lookups fail, or why there is nothing that could be looked into: the index that is served, or was, is damaged or was changed. */
  get indexFailure(): string | undefined {
    return this.#indexFailure;
  }

  /** Loads the index. It may come later, unless the other workers have one: then this one has it too. @throws what is wrong with it then */
  async openIndex(): Promise<void> {
    await this.#reload('index', () => this.#openCurrent());
    if (this.#served !== undefined || this.#knownGood.index === undefined) return;
    try {
      await this.#serve(openGivenIndex(this.#knownGood.index));
      this.#options.log('index_kept', { reason: this.problems.index });
    } catch (error) {
      // The others do not serve it any more either, once they have looked.
      if (!isIndexChanged(error)) throw error;
      this.#indexFailure = error.message;
      this.#options.log('index_dropped', failureFields(error));
    }
  }

  /**
   * The certificate to listen with, as the files have it, or as the other workers use it.
   *
   * @throws what is wrong with it, where they use none
   */
  chooseCertificate(): ChosenPart<Certificate | undefined> {
    this.#identities.certificate = this.#identityOf('certificate');
    const { certificate: kept } = this.#knownGood;
    const load = (): Certificate | undefined => configuredCertificate(this.#options.config.tls);
    return loadOrFallBack(load, kept === undefined ? undefined : () => kept);
  }

  /** Begins to watch the files, when the worker listens with a certificate that was chosen. */
  start(listener: TlsListener, { value, problem }: ChosenPart<Certificate | undefined>): void {
    this.#listener = listener;
    this.#knownGood = {};
    if (problem !== undefined) this.#keep('certificate', problem);
    else if (value !== undefined) this.#options.onKnownGood({ part: 'certificate', certificate: value });
    const everyMs = this.#options.config.server.poll_seconds * 1_000;
    this.#timer = setInterval(() => void this.#oneAtATime(() => this.#look()), everyMs);
    this.#timer.unref();
  }

  /** Reloads every part, the index even if its file is the same. If one is refused, the old one stays in use. */
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

  /** A lookup met damage. What came before and after it may be right, but nobody can say so of the next one. */
  onDamage(error: PagegateError): void {
    if (this.#indexFailure !== undefined) return;
    this.#indexFailure = error.message;
    void this.#oneAtATime(() => this.#look());
  }

  /** Looks at nothing any more; what is served is served on. */
  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /** No request may be open. */
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

  /** The files of a part do not serve, what the other workers serve does. */
  #keep(part: DataPart, problem: unknown): void {
    const reason = this.#refuse(part, problem);
    this.#options.log(`${part}_kept`, { reason });
  }

  #accept({ document, warnings }: Policy): void {
    for (const warning of warnings) this.#options.log('policy_warning', { warning });
    this.#options.onKnownGood({ part: 'policy', document });
  }

  /** Reloads what changed on the disk since it was last looked at. */
  async #look(): Promise<void> {
    await this.#listener?.closeUnused();
    if (this.#isStopped) return;
    const hasNews = this.notices.look();
    this.#dropChangedIndex();
    if (this.#hasChanged('policy')) await this.#reload('policy', () => this.#swapPolicy());
    // An index that was refused for its license is not when the license, or the key that it is signed with, is put back.
    const mayBeLicensed = hasNews && this.problems.index !== undefined;
    if (mayBeLicensed || this.#hasChanged('index')) await this.#reload('index', () => this.#swapIndex());
    if (this.#hasChanged('certificate')) await this.#reload('certificate', () => this.#swapCertificate());
  }

  /** Loading takes turns: two loads at once could end with the older one in use. */
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

  /** Whether the files of a part are those that are in use. */
  #isCurrent(part: DataPart): boolean {
    return this.problems[part] === undefined && !this.#hasChanged(part);
  }

  /** Tries to load a part; a failure is logged, counted and kept for health, and changes nothing. */
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

  /** Returns why, in words. */
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
    // Another file may have taken the place of the one that was looked at; it is found at the next look.
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

  /** An index whose file was written to or cut is two indexes in one, or ends the process: no answer is better. */
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

  /** Between two requests: nobody uses what was served before. */
  #use(index: Index, policy: Policy, part: 'index' | 'policy'): void {
    const old = this.#served;
    this.#served = new ActiveData(index, policy);
    if (old?.index !== index) this.#indexFailure = undefined;
    if (old !== undefined && old.index !== index) old.index.close();
    this.#options.log(`${part}_in_use`, { data: this.#served.tag, records: index.info.recordCount });
  }

  /** Open connections stay with the old certificate until they end. */
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
