/** Counters and latency histograms of one worker, how they are added up over workers, and the Prometheus text of the sum. */

/** Upper bounds of the latency buckets, in seconds. */
const LATENCY_BOUNDS_SECONDS = [
  0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1,
  0.5, 1, 5,
] as const;

export interface HistogramSnapshot {
  /** One count for each bound, and the last for everything above. Not cumulative. */
  readonly counts: readonly number[];
  readonly sumSeconds: number;
}

/** What a worker hands to the primary process: numbers under fixed names, never a domain, an address or a key. */
export interface MetricsSnapshot {
  readonly counters: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Record<string, number>>;
  readonly histograms: Readonly<Record<string, HistogramSnapshot>>;
}

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

  /** Adds to a counter. `name` is a metric with its labels, for example `requests_total{status="200"}`. */
  count(name: string): void {
    this.counter(name).value += 1;
  }

  /** The counter of a name, for places that count often. */
  counter(name: string): Counter {
    let counter = this.#counters.get(name);
    if (counter === undefined) {
      counter = new Counter();
      this.#counters.set(name, counter);
    }
    return counter;
  }

  snapshot(gauges: Readonly<Record<string, number>>): MetricsSnapshot {
    return {
      counters: Object.fromEntries([...this.#counters].map(([name, { value }]) => [name, value])),
      gauges,
      histograms: { lookup_seconds: this.lookup.snapshot(), wait_seconds: this.wait.snapshot() },
    };
  }
}

/** Adds snapshots: counters, gauges and buckets by name. */
export function addSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const counters: Record<string, number> = {};
  const gauges: Record<string, number> = {};
  const histograms: Record<string, { counts: number[]; sumSeconds: number }> = {};
  for (const snapshot of snapshots) {
    for (const [name, value] of Object.entries(snapshot.counters)) counters[name] = (counters[name] ?? 0) + value;
    for (const [name, value] of Object.entries(snapshot.gauges)) gauges[name] = (gauges[name] ?? 0) + value;
    for (const [name, { counts, sumSeconds }] of Object.entries(snapshot.histograms)) {
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

const HELP: Readonly<Record<string, string>> = {
  requests_total: 'Answered requests by HTTP status.',
  verdicts_total: 'Verdicts served, by verdict and by the layer that decided.',
  aborted_total: 'Requests whose client went away before the answer.',
  connections_refused_total: 'Connections closed at once because too many were open.',
  record_failures_total: 'Look-ups that met a damaged record.',
  internal_failures_total: 'Requests that met an unexpected failure; each is a defect.',
  decision_log_lines_total: 'Lines written to the decision log.',
  decision_log_dropped_total: 'Lines of the decision log dropped because its queue was full or its disk failed.',
  swaps_total: 'Swaps of index, policy or certificate by outcome, over all workers.',
  connections: 'Open connections.',
  in_flight: 'Requests that wait for a reservation.',
  lookup_seconds: 'Time from the request to its verdict.',
  wait_seconds: 'Time that requests waited because a burst had used all that was reserved.',
  index_generation: 'The generation of the index that is served.',
  index_age_seconds: 'Age of the index that is served, since its drop was made.',
  index_records: 'Records in the index that is served.',
  workers: 'Workers that answer.',
  workers_configured: 'Workers that there should be.',
  worker_restarts_total: 'Workers that ended or hung and were replaced.',
  certificate_expiry_seconds: 'Seconds until the certificate expires.',
  ledger_ready: 'Whether charges are possible: 1 or 0.',
  ledger_commits_total: 'Commits of the ledger writer.',
  ledger_commit_seconds: 'How long the latest commit of the ledger took.',
  ledger_wal_bytes: "Size of the ledger's write-ahead log.",
  build_info: 'The version of the program.',
};

/** The text format of Prometheus, version 0.0.4. */
export function prometheusText({ counters, gauges, histograms }: MetricsSnapshot): string {
  const lines: string[] = [];
  const heading = (name: string, type: string): void => {
    lines.push(`# HELP pagegate_${name} ${HELP[name] ?? name}`, `# TYPE pagegate_${name} ${type}`);
  };
  const family = (entries: Readonly<Record<string, number>>, type: string): void => {
    let last = '';
    for (const key of Object.keys(entries).sort()) {
      const name = key.replace(/\{.*$/, '');
      if (name !== last) heading(name, type);
      last = name;
      lines.push(`pagegate_${key} ${entries[key]}`);
    }
  };
  family(counters, 'counter');
  family(gauges, 'gauge');
  for (const name of Object.keys(histograms).sort()) {
    heading(name, 'histogram');
    lines.push(...histogramLines(name, histograms[name]!));
  }
  return `${lines.join('\n')}\n`;
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
