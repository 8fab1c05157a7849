/** Counts answers by status and verdict. Each series is looked up once and then cached. */
import type { ErrorCode } from '../../errors.ts';
import type { Verdict } from '../../policy/types.ts';
import type { Counter, WorkerMetrics } from '../admin/metric-counters.ts';
import { refusalStatus } from './refusal.ts';

/** The request counters of one worker. */
export class RequestCounters {
  readonly #metrics: WorkerMetrics;
  readonly #answered: Counter;
  /** A policy has few verdicts, always the same objects. */
  readonly #verdicts = new WeakMap<Verdict, Counter>();
  readonly #refusals = new Map<ErrorCode, Counter>();

  constructor(metrics: WorkerMetrics) {
    this.#metrics = metrics;
    this.#answered = metrics.counter('requests_total', { status: '200', code: 'ok' });
  }

  /** Counts a 200. */
  answered(verdict: Verdict): void {
    this.#answered.value += 1;
    let counter = this.#verdicts.get(verdict);
    if (counter === undefined) {
      const { verdict: name, layer } = verdict;
      counter = this.#metrics.counter('verdicts_total', { verdict: name, layer });
      this.#verdicts.set(verdict, counter);
    }
    counter.value += 1;
  }

  refused(code: ErrorCode): void {
    let counter = this.#refusals.get(code);
    if (counter === undefined) {
      counter = this.#metrics.counter('requests_total', { status: String(refusalStatus(code)), code });
      this.#refusals.set(code, counter);
    }
    counter.value += 1;
  }
}
