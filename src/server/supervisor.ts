/** The worker processes: started, asked, replaced when they die, stopped. */
import { PagegateError } from '../errors.ts';
import { failureFields, type Log } from './log.ts';
import { addSnapshots, type MetricsSnapshot } from './metrics.ts';
import type { Answers, Question, WorkerLink } from './worker-link.ts';

const ASK_TIMEOUT_MS = 5_000;
/** A reload maps and checks a file and may warm it. */
const RELOAD_TIMEOUT_MS = 120_000;
const BACK_OFF_FIRST_MS = 100;
const BACK_OFF_MOST_MS = 30_000;
/** A worker that lived this long starts the back-off anew. */
const STABLE_MS = 60_000;

export interface SupervisorOptions {
  readonly workers: number;
  /** Starts the worker with this number (from 0); resolves when it listens. */
  readonly start: (number: number) => Promise<WorkerLink>;
  readonly drainMs: number;
  readonly log: Log;
}

interface Slot {
  link: WorkerLink | undefined;
  startedMs: number;
  failures: number;
  /** What the worker counted when it was last asked: it must not be lost with the worker. */
  last: MetricsSnapshot | undefined;
  timer: NodeJS.Timeout | undefined;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #slots: Slot[];
  #past: MetricsSnapshot = { counters: {}, gauges: {}, histograms: {} };
  #isStopping = false;
  #restarts = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.workers }, () => ({
      link: undefined,
      startedMs: 0,
      failures: 0,
      last: undefined,
      timer: undefined,
    }));
  }

  /** Starts the first worker, which finds what is wrong for all, then the others at once. Throws what one failed with, and stops the others. */
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

  /** Workers that died and were replaced, or are about to be. */
  get restarts(): number {
    return this.#restarts;
  }

  get running(): number {
    return this.#slots.filter((slot) => slot.link !== undefined).length;
  }

  get pids(): readonly number[] {
    return this.#slots.flatMap((slot) => (slot.link === undefined ? [] : [slot.link.pid]));
  }

  /** Asks every running worker; one that does not answer is left out. */
  async askAll<Q extends Question>(question: Q): Promise<(Answers[Q] & { readonly worker: number })[]> {
    const timeoutMs = question === 'reload' ? RELOAD_TIMEOUT_MS : ASK_TIMEOUT_MS;
    const answers = await Promise.all(
      this.#slots.map(async ({ link }, worker) => {
        try {
          return link === undefined ? undefined : { worker, ...(await link.ask(question, timeoutMs)) };
        } catch (error) {
          this.#options.log('warn', 'worker_silent', { worker, question, ...failureFields(error) });
          return undefined;
        }
      }),
    );
    return answers.filter((answer) => answer !== undefined) as (Answers[Q] & { readonly worker: number })[];
  }

  /** The sum over all workers, those included that have ended. */
  async metrics(): Promise<MetricsSnapshot> {
    for (const { worker, ...snapshot } of await this.askAll('metrics')) this.#slots[worker]!.last = snapshot;
    return addSnapshots([this.#past, ...this.#slots.flatMap((slot) => (slot.last === undefined ? [] : [slot.last]))]);
  }

  /** Drains all workers, at most until the deadline, and ends what is left. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(
      this.#slots.map(async (slot, worker) => {
        clearTimeout(slot.timer);
        const { link } = slot;
        if (link === undefined) return;
        try {
          await link.ask('drain', this.#options.drainMs + ASK_TIMEOUT_MS);
        } catch (error) {
          this.#options.log('warn', 'worker_killed', { worker, ...failureFields(error) });
          link.kill();
        }
        await Promise.race([link.ended, new Promise((resolve) => setTimeout(resolve, ASK_TIMEOUT_MS).unref())]);
        link.kill();
      }),
    );
  }

  async #startSlot(number: number): Promise<void> {
    const slot = this.#slots[number]!;
    const link = await this.#options.start(number);
    if (this.#isStopping) {
      link.kill();
      throw new PagegateError('shutting_down');
    }
    slot.link = link;
    slot.startedMs = performance.now();
    void link.ended.then((how) => this.#onEnd(number, link, how));
  }

  #onEnd(number: number, link: WorkerLink, how: string): void {
    const slot = this.#slots[number]!;
    if (slot.link !== link) return;
    slot.link = undefined;
    if (slot.last !== undefined) this.#past = addSnapshots([this.#past, { ...slot.last, gauges: {} }]);
    slot.last = undefined;
    if (this.#isStopping) return;
    if (performance.now() - slot.startedMs > STABLE_MS) slot.failures = 0;
    this.#options.log('error', 'worker_died', { worker: number, pid: link.pid, how });
    this.#replace(number);
  }

  #replace(number: number): void {
    const slot = this.#slots[number]!;
    this.#restarts += 1;
    const waitMs = slot.failures === 0 ? 0 : Math.min(BACK_OFF_MOST_MS, BACK_OFF_FIRST_MS * 2 ** (slot.failures - 1));
    slot.failures += 1;
    slot.timer = setTimeout(() => {
      this.#startSlot(number).then(
        () => this.#options.log('info', 'worker_replaced', { worker: number, pid: slot.link?.pid ?? 0 }),
        (error: unknown) => {
          if (this.#isStopping) return;
          this.#options.log('error', 'worker_start_failed', { worker: number, ...failureFields(error) });
          this.#replace(number);
        },
      );
    }, waitMs);
  }
}
