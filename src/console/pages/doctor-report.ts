/** The results of doctor for the page of health. The checks run in the background when the page is viewed. */
import type { CheckResult, Status } from '../../doctor/check.ts';
import type { JobRunner } from '../jobs/runner.ts';
import { type Html, html } from '../web/html.ts';
import { emptyState, mark, moment, type Tone, table } from '../web/widgets.ts';

/** A report older than this is made again when the page is viewed. */
const FRESH_MS = 60_000;

const TONES: Readonly<Record<Status, Tone>> = { ok: 'good', warning: 'warn', problem: 'bad', skipped: 'plain' };
const ORDER: readonly Status[] = ['problem', 'warning', 'ok', 'skipped'];

/** The latest report of doctor. */
export class DoctorReport {
  #results: readonly CheckResult[] | undefined;
  #madeMs = Number.NEGATIVE_INFINITY;
  /** Milliseconds of the monotonic clock. */
  #freshUntilMs = Number.NEGATIVE_INFINITY;
  #failure: string | undefined;
  #isRunning = false;

  /** Returns the current report. If it is old, starts a new one for the next view. */
  look(jobs: JobRunner): {
    readonly results: readonly CheckResult[] | undefined;
    readonly madeMs: number;
    readonly failure: string | undefined;
  } {
    if (!this.#isRunning && performance.now() > this.#freshUntilMs) {
      this.#isRunning = true;
      jobs.doctor().then(
        (results) => this.#end(results, undefined),
        (error: Error) => this.#end(this.#results, error.message),
      );
    }
    return { results: this.#results, madeMs: this.#madeMs, failure: this.#failure };
  }

  #end(results: readonly CheckResult[] | undefined, failure: string | undefined): void {
    this.#results = results;
    this.#failure = failure;
    this.#madeMs = Date.now();
    this.#freshUntilMs = performance.now() + FRESH_MS;
    this.#isRunning = false;
  }
}

export function doctorReport(doctor: DoctorReport, jobs: JobRunner): Html {
  const { results, madeMs, failure } = doctor.look(jobs);
  if (results === undefined) {
    const text =
      failure ??
      'The checks are running. The page shows their results as soon as they are there; without scripts, load the page again.';
    return html`<div data-live id="doctor-report">${emptyState(text)}</div>`;
  }
  const sorted = [...results].sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status));
  const counted = ORDER.slice(0, 2).map((status) => results.filter((one) => one.status === status).length);
  const rows = sorted.map(({ id, status, found, advice }) => [
    mark(TONES[status], status),
    id,
    html`${found}${advice !== undefined && html`<div class="advice">${advice}</div>`}`,
  ]);
  return html`<div data-live id="doctor-report"><p class="hint">Problems: ${counted[0]}, warnings: ${counted[1]}. Examined ${moment(madeMs / 1000)}${
    failure !== undefined && `; the latest attempt failed: ${failure}`
  }</p>
${table('Every check', ['Result', 'Check', 'Found, and what to do'], rows)}</div>`;
}
