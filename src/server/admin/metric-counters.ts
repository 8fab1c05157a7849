/** Counters and latency histograms of one worker, their sum over all workers, and its Prometheus text. */
import {
  type CounterName,
  type GaugeName,
  type HistogramName,
  type HistogramSnapshot,
  LATENCY_BOUNDS_SECONDS,
  type LabelArguments,
  METRICS,
  type MetricName,
  type MetricsSnapshot,
  seriesOf,
} from '../metric-definitions.ts';

class Histogram {
  readonly #counts = new Array<number>(LATENCY_BOUNDS_SECONDS.length + 1).fill(0);
  #sum = 0;

  observe(seconds: number): void {
    let bucket = 0;
    while (bucket < LATENCY_BOUNDS_SECONDS.length && seconds > LATENCY_BOUNDS_SECONDS[bucket]!) bucket += 1;
    this.#counts[bucket]! += 1;
    this.#sum += seconds;
  }

  snapshot(): HistogramSnapshot {
    return { counts: [...this.#counts], sumSeconds: this.#sum };
  }
}

/** A number that only grows. */
export class Counter {
  value = 0;
}

/** The metrics of one worker. */
export class WorkerMetrics {
  readonly #counters = new Map<string, Counter>();
  readonly lookup = new Histogram();
  readonly wait = new Histogram();

  /** Adds to a counter. */
  count<N extends CounterName>(name: N, ...labels: LabelArguments<N>): void {
    this.counter(name, ...labels).value += 1;
  }

  /** Returns the counter of a series, so that code that counts often looks it up only once. */
  counter<N extends CounterName>(name: N, ...labels: LabelArguments<N>): Counter {
    const series = seriesOf(name, ...labels);
    let counter = this.#counters.get(series);
    if (counter === undefined) {
      counter = new Counter();
      this.#counters.set(series, counter);
    }
    return counter;
  }

  snapshot(gauges: Readonly<Partial<Record<GaugeName, number>>>): MetricsSnapshot {
    return {
      counters: Object.fromEntries([...this.#counters].map(([series, { value }]) => [series, value])),
      gauges,
      histograms: { lookup_seconds: this.lookup.snapshot(), wait_seconds: this.wait.snapshot() },
    };
  }
}

/** Adds up snapshots series by series: counters, gauges and histogram buckets. */
export function addSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const counters: Record<string, number> = {};
  const gauges: Record<string, number> = {};
  const histograms: Partial<Record<HistogramName, { counts: number[]; sumSeconds: number }>> = {};
  for (const snapshot of snapshots) {
    for (const [series, value] of Object.entries(snapshot.counters)) counters[series] = (counters[series] ?? 0) + value;
    for (const [series, value] of Object.entries(snapshot.gauges)) gauges[series] = (gauges[series] ?? 0) + value;
    for (const name of Object.keys(snapshot.histograms) as HistogramName[]) {
      const { counts, sumSeconds } = snapshot.histograms[name]!;
      histograms[name] ??= { counts: counts.map(() => 0), sumSeconds: 0 };
      const sum = histograms[name];
      counts.forEach((count, i) => {
        sum.counts[i] = (sum.counts[i] ?? 0) + count;
      });
      sum.sumSeconds += sumSeconds;
    }
  }
  return { counters, gauges, histograms };
}

/** Renders a snapshot in the Prometheus text format, version 0.0.4, in the order of {@link METRICS}. */
export function prometheusText({ counters, gauges, histograms }: MetricsSnapshot): string {
  const series = new Map<string, string[]>();
  for (const [key, value] of Object.entries({ ...counters, ...gauges }).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const name = key.replace(/\{.*$/s, '');
    const lines = series.get(name) ?? [];
    lines.push(`pagegate_${key} ${value}`);
    series.set(name, lines);
  }
  const text: string[] = [];
  for (const name of Object.keys(METRICS) as MetricName[]) {
    const { type, meaning, labels } = METRICS[name];
    const histogram = histograms[name as HistogramName];
    // A counter is shown from the start, as 0: rate() needs a first value.
    const none = type === 'counter' && Object.keys(labels).length === 0 ? [`pagegate_${name} 0`] : undefined;
    const lines = histogram === undefined ? (series.get(name) ?? none) : histogramLines(name, histogram);
    if (lines !== undefined)
      text.push(`# HELP pagegate_${name} ${meaning}`, `# TYPE pagegate_${name} ${type}`, ...lines);
  }
  return `${text.join('\n')}\n`;
}

function histogramLines(name: string, { counts, sumSeconds }: HistogramSnapshot): string[] {
  const lines: string[] = [];
  let total = 0;
  counts.forEach((count, i) => {
    total += count;
    const bound = LATENCY_BOUNDS_SECONDS[i];
    lines.push(`pagegate_${name}_bucket{le="${bound === undefined ? '+Inf' : bound}"} ${total}`);
  });
  lines.push(`pagegate_${name}_sum ${sumSeconds}`, `pagegate_${name}_count ${total}`);
  return lines;
}
