/** What a named bench is, and what it gives back. */

/** What a bench may use. */
export interface BenchOptions {
  /** Records of the dataset; 0 where a bench has none. */
  readonly records: number;
  /** Another checkout, with its packages installed, that is measured in the same rounds where a bench can do that. */
  readonly beside?: string | undefined;
  /** Folder for datasets, indexes and what peers store; kept between runs. */
  readonly dir: string;
  /** Says what is being done. */
  readonly log: (line: string) => void;
}

export type Cell = string | number | null;

export interface BenchReport {
  /** Rows of a table: each has the same names, in the same order. */
  readonly rows: readonly Readonly<Record<string, Cell>>[];
  /** What a reader has to know to believe the numbers. */
  readonly notes: readonly string[];
}

/** A named bench: each file in bench/workloads exports one as `workload`. */
export interface Workload {
  readonly name: string;
  readonly description: string;
  /** Records that it takes at most; 0 where it has no dataset. As many as are asked for unless told. */
  readonly recordsMax?: number;
  /** It stands beside stores that are packages of the bench's folder alone. */
  readonly hasPeers?: boolean;
  run(options: BenchOptions): Promise<BenchReport>;
}

/** The middle value; of an even number the upper one of the two. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
