/** Rows of the HTTP bench: the sample of a subject in one round, and the table columns computed from all rounds. */
import type { LoadReport } from '../load-generator.ts';
import { type Cell, median } from '../workload.ts';

/** The measurements of one subject in one round. */
export interface LoadSample {
  readonly rate: number;
  /** Processor time of all its processes per request, in microseconds. */
  readonly cpuUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

/** Creates a sample from a load generator's report and the processor time that the server took. */
export function sampleOf({ answered, elapsedMs, p50Us, p99Us }: LoadReport, cpuUs: number): LoadSample {
  return { rate: answered / (elapsedMs / 1_000), cpuUs: cpuUs / answered, p50Us, p99Us };
}

/** Returns a row of the table. All ratios are relative to the bare transport in the same round. */
export function rowOf(
  cell: string,
  label: string,
  samples: readonly LoadSample[],
  fixed: readonly LoadSample[],
): Record<string, Cell> {
  const middle = (pick: (sample: LoadSample) => number): number => median(samples.map(pick));
  const tail = ({ p50Us, p99Us }: LoadSample): number => p99Us / p50Us;
  const ratios = samples.map((sample, i) => sample.cpuUs / fixed[i]!.cpuUs);
  const digits = (value: number, count: number): number => Number(value.toFixed(count));
  return {
    cell,
    server: label,
    'CPU µs': digits(
      middle(({ cpuUs }) => cpuUs),
      1,
    ),
    'CPU ÷ transport': digits(median(ratios), 2),
    least: digits(Math.min(...ratios), 2),
    most: digits(Math.max(...ratios), 2),
    'own µs': digits(median(samples.map((sample, i) => sample.cpuUs - fixed[i]!.cpuUs)), 1),
    'rate /s': Math.round(middle(({ rate }) => rate)),
    'rate ÷ transport': digits(median(samples.map((sample, i) => sample.rate / fixed[i]!.rate)), 2),
    'p50 µs': middle(({ p50Us }) => p50Us),
    'p99 µs': middle(({ p99Us }) => p99Us),
    'p99/p50 ÷ transport': digits(median(samples.map((sample, i) => tail(sample) / tail(fixed[i]!))), 2),
  };
}
