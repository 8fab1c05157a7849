/** The interface of a bench: its options and its report. */

/** The options of a bench. */
export interface BenchOptions {
  /** Number of records of the dataset; 0 if the bench has none. */
  readonly records: number;
  /** Another checkout, with its packages installed, that is measured in the same rounds if the bench supports that. */
  readonly beside?: string | undefined;
  /** Folder for datasets, indexes and the peers' stores; kept between runs. */
  readonly dir: string;
  /** Prints progress. */
  readonly log: (line: string) => void;
}

export type Cell = string | number | null;

export interface BenchReport {
  /** Rows of a table. All have the same columns in the same order. */
  readonly rows: readonly Readonly<Record<string, Cell>>[];
  /** Notes that a reader needs to interpret the numbers. */
  readonly notes: readonly string[];
}

/** A named bench: each file in bench/workloads exports one as `workload`. */
export interface Workload {
  readonly name: string;
  readonly description: string;
  /** Most records that it uses; 0 if it has no dataset. By default, there is no limit. */
  readonly recordsMax?: number;
  /** Whether it compares with stores whose packages are only installed in the bench folder. */
  readonly hasPeers?: boolean;
  run(options: BenchOptions): Promise<BenchReport>;
}

/** Returns the median; for an even number of values, the higher of the two middle ones. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
