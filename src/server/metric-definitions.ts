/**
 * The table of all metrics of a server. `/metrics` and the reference page are generated from it, and a metric that it does not list cannot be
 * counted. In `/metrics`, each name has the prefix `pagegate_`.
 */

export interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** What the metric counts or measures, and its unit, in one sentence. */
  readonly meaning: string;
  /** Its labels, each with a description of its values. */
  readonly labels: Readonly<Record<string, string>>;
  /** When an operator should act, and what to look at. Empty for a metric that is only informative. */
  readonly worry: string;
}

/** Type-checks the table without widening its names and labels. */
const table = <const T extends Readonly<Record<string, MetricEntry>>>(entries: T): T => entries;

export const METRICS = table({
  build_info: {
    type: 'gauge',
    meaning: 'Always 1; its labels say which program runs.',
    labels: { version: "the program's version", node: 'the version of Node.js' },
    worry: '',
  },
  ready: {
    type: 'gauge',
    meaning: 'Whether every lookup can be answered: 1 or 0, as /readyz says.',
    labels: {},
    worry: 'Alert on 0 for a minute: agents wait or are refused. /readyz names the reasons.',
  },
  warnings: {
    type: 'gauge',
    meaning: 'Number of problems that need attention although lookups are answered, as /readyz lists them.',
    labels: {
      kind: 'worker, index, policy, certificate, withdrawn, license, ledger, quota, decision_log or disk',
    },
    worry: 'Look at /readyz when it is above 0 for an hour.',
  },
  requests_total: {
    type: 'counter',
    meaning: 'Answered requests.',
    labels: { status: 'the HTTP status', code: 'ok, or the error code of the answer' },
    worry:
      'Status 503 at any rate; code unknown_key or missing_key in bursts (a lost or guessed key); quota_exhausted (an account is used up); rate_limited for a gateway (put it into burst.exempt).',
  },
  verdicts_total: {
    type: 'counter',
    meaning: 'Verdicts served.',
    labels: {
      verdict: 'allow, flag or deny',
      layer: 'the layer that decided: high_value_hosts, page_type_db, rules or default',
    },
    worry: 'A sudden change of the share of deny: a new policy or index, or an agent that misbehaves.',
  },
  lookup_seconds: {
    type: 'histogram',
    meaning: 'Time from the request to its verdict, without a wait for a reservation, in seconds.',
    labels: {},
    worry: 'The 99th percentile above 0.005: too few processors, or an index that does not fit into memory.',
  },
  wait_seconds: {
    type: 'histogram',
    meaning: 'Time that requests waited because a burst had used all that was reserved, in seconds.',
    labels: {},
    worry: 'The 99th percentile above 0.1: the disk of the ledger is slow.',
  },
  in_flight: {
    type: 'gauge',
    meaning: 'Requests that wait for a reservation.',
    labels: {},
    worry: 'Above 0 for several seconds: the ledger writer cannot commit.',
  },
  aborted_total: {
    type: 'counter',
    meaning: 'Requests whose client went away before the answer.',
    labels: {},
    worry: 'A steady rate: the timeout of the clients is too short for the disk of the ledger.',
  },
  connections: {
    type: 'gauge',
    meaning: 'Open connections of clients.',
    labels: {},
    worry: 'Near server.max_connections: clients open a connection for each request, or somebody holds them open.',
  },
  connections_refused_total: {
    type: 'counter',
    meaning: 'Connections closed at once because too many were open.',
    labels: { reason: 'all (server.max_connections) or address (server.max_unanswered_per_address)' },
    worry:
      'Any rate. all: raise server.max_connections, or find who holds connections open. address: somebody opens connections and sends nothing; a gateway that does belongs in burst.exempt.',
  },
  record_failures_total: {
    type: 'counter',
    meaning: 'Lookups that met a damaged record.',
    labels: {},
    worry: 'Any: run "pagegate verify" and replace the index.',
  },
  internal_failures_total: {
    type: 'counter',
    meaning: 'Requests that met an unexpected failure.',
    labels: {},
    worry: 'Any: each is a defect; the log line request_failed has its place in the program.',
  },
  decision_log_lines_total: {
    type: 'counter',
    meaning: 'Lines written to the decision log.',
    labels: {},
    worry: '',
  },
  decision_log_dropped_total: {
    type: 'counter',
    meaning: 'Lines of the decision log dropped because its queue was full or its disk failed.',
    labels: {},
    worry: 'Any rate: verdicts are served that are not in the log. Look at the disk of the decision log.',
  },
  swaps_total: {
    type: 'counter',
    meaning: 'Swaps of index, policy or certificate over all workers. What a worker starts with does not count.',
    labels: { part: 'index, policy or certificate', outcome: 'done or refused' },
    worry: 'Outcome refused: what was delivered is not served; the log line says why.',
  },
  index_generation: {
    type: 'gauge',
    meaning: 'Generation of the index that is served; absent without one.',
    labels: {},
    worry: '',
  },
  index_age_seconds: {
    type: 'gauge',
    meaning: 'Age of the index that is served since its drop was made, in seconds; absent without one.',
    labels: {},
    worry: 'Above the interval of your drops and a day: refreshes fail or are not run.',
  },
  index_records: {
    type: 'gauge',
    meaning: 'Records in the index that is served; absent without one.',
    labels: {},
    worry: 'A drop by more than a few percent between two generations.',
  },
  workers: {
    type: 'gauge',
    meaning: 'Workers that answer.',
    labels: {},
    worry: 'Less than workers_configured for a minute.',
  },
  workers_configured: {
    type: 'gauge',
    meaning: 'Configured number of workers.',
    labels: {},
    worry: '',
  },
  worker_restarts_total: {
    type: 'counter',
    meaning: 'Workers that ended or hung and were replaced.',
    labels: {},
    worry: 'Any: the log lines worker_died and worker_hung say how.',
  },
  certificate_expiry_seconds: {
    type: 'gauge',
    meaning: 'Seconds until the certificate in use expires, negative afterwards; absent without TLS.',
    labels: {},
    worry: 'Below 14 days (1209600): renew it. Clients refuse one that has expired.',
  },
  license_expiry_seconds: {
    type: 'gauge',
    meaning:
      'Seconds until the license covers no newer data, negative afterwards; absent where it names drops instead of a day.',
    labels: {},
    worry: 'Below 30 days (2592000): ask for a new one. Lookups go on afterwards, refreshes do not.',
  },
  disk_free_bytes: {
    type: 'gauge',
    meaning: 'Free space for pagegate, in bytes.',
    labels: { place: 'state (state_dir) or decision_log' },
    worry: 'state: below twice the size of the index, or 1 GiB. decision_log: below an hour of lines.',
  },
  account_quota_used_ratio: {
    type: 'gauge',
    meaning:
      'Share of its quota that an account has used in its cycle, from 0.8 on; the 100 accounts with the largest share.',
    labels: { account: "the account's name" },
    worry: 'From 0.95 on: a larger plan, or its agents are refused until the next cycle.',
  },
  ledger_ready: {
    type: 'gauge',
    meaning: 'Whether charges are possible: 1 or 0.',
    labels: {},
    worry: 'Alert on 0: lookups are answered 503 as soon as the reservations are used up.',
  },
  ledger_commits_total: {
    type: 'counter',
    meaning: 'Commits of the ledger writer.',
    labels: {},
    worry: '',
  },
  ledger_commit_seconds: {
    type: 'gauge',
    meaning: 'How long the latest commit of the ledger took, in seconds.',
    labels: {},
    worry: 'Above 1: the disk of the ledger is slow; bursts then wait for reservations.',
  },
  ledger_wal_bytes: {
    type: 'gauge',
    meaning: "Size of the ledger's write-ahead log, in bytes.",
    labels: {},
    worry: 'Growing for hours: a program holds the ledger open for reading, such as a backup that hangs.',
  },
  fleet_staleness_seconds: {
    type: 'gauge',
    meaning: "Seconds since this node heard from the fleet's database; absent outside a fleet.",
    labels: {},
    worry: 'Above 10: the database cannot be reached. At `fleet.max_staleness_seconds` the node answers 503.',
  },
  fleet_held_lookups: {
    type: 'gauge',
    meaning: 'Lookups that this node may spend without asking the database; absent outside a fleet.',
    labels: {},
    worry: '',
  },
  fleet_learning: {
    type: 'gauge',
    meaning: 'Whether nothing is granted because the database has lost commits: 1 or 0; absent outside a fleet.',
    labels: {},
    worry: 'Alert on 1: acknowledged commits were lost; check the replication of the database.',
  },
});

export type MetricName = keyof typeof METRICS;

type NamesOf<T extends MetricEntry['type']> = {
  [N in MetricName]: (typeof METRICS)[N]['type'] extends T ? N : never;
}[MetricName];

export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;

type LabelsOf<N extends MetricName> = Readonly<Record<keyof (typeof METRICS)[N]['labels'], string>>;

/** The labels of a metric as a rest parameter; empty if it has none. */
export type LabelArguments<N extends MetricName> = keyof (typeof METRICS)[N]['labels'] extends never
  ? []
  : [labels: LabelsOf<N>];

/** Returns the series of a metric with its labels, as in the text format: `requests_total{status="200",code="ok"}`. */
export function seriesOf<N extends MetricName>(name: N, ...[labels]: LabelArguments<N>): string {
  if (labels === undefined) return name;
  const pairs = Object.keys(METRICS[name].labels).map((label) => {
    const value = (labels as Readonly<Record<string, string>>)[label] ?? '';
    return `${label}="${value.replaceAll(/[\\"\n]/g, (char) => (char === '\n' ? '\\n' : `\\${char}`))}"`;
  });
  return `${name}{${pairs.join(',')}}`;
}

/** Upper bounds of the latency buckets, in seconds. */
export const LATENCY_BOUNDS_SECONDS = [
  0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1,
  0.5, 1, 5,
] as const;

export interface HistogramSnapshot {
  /** One count for each bound, then one for all values above the last. Not cumulative. */
  readonly counts: readonly number[];
  readonly sumSeconds: number;
}

/** The metrics that a worker sends to the primary: numbers by series ({@link seriesOf}), never a domain, an address or a key. */
export interface MetricsSnapshot {
  readonly counters: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Record<string, number>>;
  readonly histograms: Readonly<Partial<Record<HistogramName, HistogramSnapshot>>>;
}
