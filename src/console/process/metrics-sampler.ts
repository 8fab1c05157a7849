/** Converts the metrics that the primary has anyway into one sample per minute. This costs lookups nothing and writes nothing. */
import type { MetricsSnapshot } from '../../server/metric-definitions.ts';
import { MINUTE, type Sample } from '../store/time-series.ts';

/** Maximum number of samples that are kept for a console that is started again. */
const MINUTES_MAX = 24 * 60;
const TICK_MS = 1_000;

type Counts = Omit<Sample, 'at'>;

/** Samples a server until it is stopped. */
export class Sampler {
  readonly samples: Sample[] = [];
  readonly #snapshot: () => Promise<MetricsSnapshot>;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  #before: Counts | undefined;
  #minute: number;
  #isBusy = false;

  /** @param now seconds since 1970 */
  constructor(snapshot: () => Promise<MetricsSnapshot>, now = () => Math.floor(Date.now() / 1000)) {
    this.#snapshot = snapshot;
    this.#now = now;
    this.#minute = minuteOf(now());
    this.#timer = setInterval(() => void this.tick(), TICK_MS);
    this.#timer.unref();
    void this.#count();
  }

  /** Closes the minute that has ended, if one has. */
  async tick(): Promise<void> {
    const minute = minuteOf(this.#now());
    if (minute === this.#minute || this.#isBusy) return;
    const ended = this.#minute;
    this.#minute = minute;
    const before = this.#before;
    const after = await this.#count();
    if (before === undefined || after === undefined) return;
    this.samples.push({ at: ended, ...difference(before, after) });
    this.samples.splice(0, this.samples.length - MINUTES_MAX);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #count(): Promise<Counts | undefined> {
    this.#isBusy = true;
    try {
      this.#before = countsOf(await this.#snapshot());
      return this.#before;
    } catch {
      // The next minute includes what this one missed.
      return undefined;
    } finally {
      this.#isBusy = false;
    }
  }
}

const minuteOf = (seconds: number): number => seconds - (seconds % MINUTE);

const LABELED = /^(requests_total|verdicts_total)\{(?:status|verdict)="([^"]*)"/;

/** Extracts the counts of a sample from the metrics. */
export function countsOf({ counters, histograms }: MetricsSnapshot): Counts {
  const requests: Record<string, number> = {};
  const verdicts: Record<string, number> = {};
  for (const [name, value] of Object.entries(counters)) {
    const [, family, label] = LABELED.exec(name) ?? [];
    if (family === undefined || label === undefined) continue;
    const into = family === 'requests_total' ? requests : verdicts;
    into[label] = (into[label] ?? 0) + value;
  }
  return { requests, verdicts, latency: [...(histograms['lookup_seconds']?.counts ?? [])] };
}

/** Returns what was counted between two snapshots. The primary keeps the counts of ended workers, so no difference is negative. */
function difference(before: Counts, after: Counts): Counts {
  const minus = (a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): Record<string, number> =>
    Object.fromEntries(
      Object.entries(a).flatMap(([name, count]) => {
        const more = Math.max(0, count - (b[name] ?? 0));
        return more === 0 ? [] : [[name, more] as const];
      }),
    );
  return {
    requests: minus(after.requests, before.requests),
    verdicts: minus(after.verdicts, before.verdicts),
    latency: after.latency.map((count, i) => Math.max(0, count - (before.latency[i] ?? 0))),
  };
}
