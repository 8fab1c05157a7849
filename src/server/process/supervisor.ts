/** Starts, monitors, replaces and stops the worker processes. */
import { messageOf, PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { SocketRange } from '../../platform/sockets.ts';
import { STABLE_MS, timeoutFactor, Watchdog } from '../../platform/watchdog.ts';
import { addSnapshots } from '../admin/metric-counters.ts';
import { failureFields, type Log } from '../log.ts';
import type { MetricsSnapshot } from '../metric-definitions.ts';
import type { WorkerAnswers, WorkerLink, WorkerQuestion } from './worker-link.ts';

const ASK_TIMEOUT_MS = 2_000;
/** A worker that has not answered for this long is reported as missing without being asked, so that the caller need not wait. */
const QUIET_WORKER_MS = 3_000;
/** Time that a worker may exceed the drain time before it is killed. */
const DRAIN_GRACE_MS = 2_000;
const END_MS = 1_000;
const BACK_OFF_FIRST_MS = 100;
const BACK_OFF_MOST_MS = 30_000;

export interface SupervisorOptions {
  readonly workers: number;
  /** Starts the worker with this number (from 0). Resolves when it listens. Ends the worker if the signal is aborted before that. */
  readonly start: (number: number, signal: AbortSignal) => Promise<WorkerLink>;
  /** How long a worker may take to drain, in milliseconds; idle connections may be kept until the transport closes them. */
  readonly drainTimeoutMs: (keepsIdle: boolean) => number;
  readonly log: Log;
  /**
   * How long a worker may not answer before it is killed and replaced, in milliseconds; by default 10,000. Doubles each time the worker is killed
   * for this in a row, up to 16 times the value: restarts must not make a slow host slower.
   */
  readonly timeoutMs?: number;
}

/** A worker that did not answer a question. */
export interface MissingWorker {
  readonly worker: number;
  /** Null if no process runs. */
  readonly pid: number | null;
  /** Whether its process may still get connections, which then wait. */
  readonly listens: boolean;
  /** Why it did not answer, as the predicate of a sentence about the worker. */
  readonly reason: string;
}

export interface Replies<Q extends WorkerQuestion> {
  readonly answers: readonly (WorkerAnswers[Q] & { readonly worker: number })[];
  readonly missing: readonly MissingWorker[];
}

interface Slot {
  link: WorkerLink | undefined;
  watch: Watchdog | undefined;
  startedMs: number;
  failures: number;
  /** How many times in a row the worker was killed because it did not answer. */
  timeouts: number;
  /** Why there is no link or soon will be none, as the predicate of a sentence. */
  why: string;
  /** The worker's latest metrics, so that they are not lost if the worker ends. */
  last: MetricsSnapshot | undefined;
  timer: NodeJS.Timeout | undefined;
}

/** Starts the workers, replaces those that end or hang, and sends the primary's questions to all of them. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #slots: Slot[];
  readonly #starts = new AbortController();
  #past: MetricsSnapshot = { counters: {}, gauges: {}, histograms: {} };
  #restarts = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.workers }, () => ({
      link: undefined,
      watch: undefined,
      startedMs: 0,
      failures: 0,
      timeouts: 0,
      why: 'is being started',
      last: undefined,
      timer: undefined,
    }));
  }

  /**
   * Starts the first worker, which detects problems that affect all of them, then the others at the same time.
   *
   * @throws the error of a worker that fails; the others are then stopped
   */
  async start(): Promise<void> {
    try {
      const [first = 0, ...others] = this.#slots.keys();
      await this.#startSlot(first);
      const started = await Promise.allSettled(others.map((number) => this.#startSlot(number)));
      for (const outcome of started) if (outcome.status === 'rejected') throw outcome.reason;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Number of workers that have ended, including those whose replacement has not started yet. */
  get restarts(): number {
    return this.#restarts;
  }

  get pids(): readonly number[] {
    return this.#slots.flatMap((slot) => (slot.link === undefined ? [] : [slot.link.pid]));
  }

  /** Asks every worker. Takes a few seconds at most; a reload takes until the slowest worker has finished or was killed. */
  async ask<Q extends WorkerQuestion>(question: Q, range?: SocketRange): Promise<Replies<Q>> {
    const replies = await Promise.all(this.#slots.map((_, worker) => this.#askSlot(worker, question, range)));
    return {
      answers: replies.flatMap((reply) => ('missing' in reply ? [] : [reply.answer])),
      missing: replies.flatMap((reply) => ('missing' in reply ? [reply.missing] : [])),
    };
  }

  /** Returns the sum of the metrics of all workers, including those that have ended. */
  async metrics(): Promise<MetricsSnapshot> {
    await this.ask('metrics');
    return addSnapshots([this.#past, ...this.#slots.flatMap((slot) => (slot.last === undefined ? [] : [slot.last]))]);
  }

  /** Drains all workers, and kills those that exceed the drain timeout. */
  async stop(how: 'drain' | 'retire' = 'drain'): Promise<void> {
    this.#starts.abort();
    await Promise.all(
      this.#slots.map(async (slot, worker) => {
        clearTimeout(slot.timer);
        const { link } = slot;
        if (link === undefined) return;
        try {
          await link.ask(how, this.#options.drainTimeoutMs(how === 'retire') + DRAIN_GRACE_MS);
        } catch (error) {
          const identity = { worker, pid: link.pid };
          // An end of its own has already removed the link.
          if (slot.link === link) this.#options.log('worker_killed', { ...identity, reason: messageOf(error) });
          else this.#options.log('worker_died', { ...identity, how: await link.ended });
          link.kill();
        }
        await Promise.race([link.ended, new Promise((resolve) => setTimeout(resolve, END_MS).unref())]);
        link.kill();
        slot.watch?.stop();
      }),
    );
  }

  async #askSlot<Q extends WorkerQuestion>(
    worker: number,
    question: Q,
    range?: SocketRange,
  ): Promise<{ answer: WorkerAnswers[Q] & { readonly worker: number } } | { missing: MissingWorker }> {
    const slot = this.#slots[worker]!;
    const { link, watch } = slot;
    if (link === undefined || watch === undefined)
      return { missing: { worker, pid: null, listens: false, reason: slot.why } };
    const missing = (reason: string): { missing: MissingWorker } => ({
      missing: { worker, pid: link.pid, listens: slot.link === link, reason },
    });
    if (question !== 'reload' && watch.quietMs > QUIET_WORKER_MS)
      return missing(`has not answered for ${watch.quietMs / 1_000} s`);
    try {
      const answer = await link.ask(question, question === 'reload' ? LIMITS.reloadMs.value : ASK_TIMEOUT_MS, range);
      watch.heard();
      if (question === 'metrics' && slot.link === link) slot.last = answer as MetricsSnapshot;
      return { answer: { worker, ...answer } };
    } catch (error) {
      const isOver = slot.link !== link || watch.quietMs > watch.timeoutMs;
      return missing(!isOver && error instanceof Error ? error.message : slot.why);
    }
  }

  async #startSlot(number: number): Promise<void> {
    const slot = this.#slots[number]!;
    const { signal } = this.#starts;
    const link = await this.#options.start(number, signal);
    if (signal.aborted) {
      link.kill();
      throw new PagegateError('shutting_down');
    }
    slot.link = link;
    slot.startedMs = performance.now();
    slot.watch = this.#watch(number, link);
    void link.ended.then((how) => this.#onEnd(number, link, how));
  }

  /** Asks a worker for its metrics every second, and kills it if it does not answer within the timeout. */
  #watch(number: number, link: WorkerLink): Watchdog {
    const slot = this.#slots[number]!;
    const { log, timeoutMs = LIMITS.hangTimeoutMs.value } = this.#options;
    let isAsked = false;
    const watch = new Watchdog({
      timeoutMs: timeoutMs * timeoutFactor(slot.timeouts),
      onTick: () => {
        if (isAsked) return;
        isAsked = true;
        const onAnswer = (answer: MetricsSnapshot): void => {
          watch.heard();
          if (performance.now() - slot.startedMs > STABLE_MS) slot.timeouts = 0;
          if (slot.link === link) slot.last = answer;
        };
        // A rejected question does not count as an answer.
        void link
          .ask('metrics', watch.timeoutMs)
          .then(onAnswer, () => {})
          .finally(() => {
            isAsked = false;
          });
      },
      onTimeout: (quietMs) => {
        slot.timeouts += 1;
        slot.why = `did not answer for ${quietMs / 1_000} s and was killed; it is being replaced`;
        log('worker_hung', { worker: number, pid: link.pid, quiet_seconds: quietMs / 1_000 });
        link.kill();
      },
    });
    return watch;
  }

  #onEnd(number: number, link: WorkerLink, how: string): void {
    const slot = this.#slots[number]!;
    if (slot.link !== link) return;
    const wasHung = slot.watch !== undefined && slot.watch.quietMs > slot.watch.timeoutMs;
    slot.watch?.stop();
    slot.link = undefined;
    slot.watch = undefined;
    if (slot.last !== undefined) this.#past = addSnapshots([this.#past, { ...slot.last, gauges: {} }]);
    slot.last = undefined;
    if (!wasHung) slot.why = `ended (${how}) and is being replaced`;
    if (this.#starts.signal.aborted) return;
    // A worker that ran this long also resets the back-off.
    if (performance.now() - slot.startedMs > STABLE_MS) slot.failures = 0;
    this.#options.log('worker_died', { worker: number, pid: link.pid, how });
    this.#replace(number);
  }

  #replace(number: number): void {
    const slot = this.#slots[number]!;
    this.#restarts += 1;
    const waitMs = slot.failures === 0 ? 0 : Math.min(BACK_OFF_MOST_MS, BACK_OFF_FIRST_MS * 2 ** (slot.failures - 1));
    slot.failures += 1;
    slot.timer = setTimeout(() => {
      this.#startSlot(number).then(
        () => this.#options.log('worker_replaced', { worker: number, pid: slot.link?.pid ?? 0 }),
        (error: unknown) => {
          if (this.#starts.signal.aborted) return;
          slot.why = `cannot be started and is tried again: ${messageOf(error)}`;
          this.#options.log('worker_start_failed', { worker: number, ...failureFields(error) });
          this.#replace(number);
        },
      );
    }, waitMs);
  }
}
