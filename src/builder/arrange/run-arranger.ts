/** Second half of a build, for one run of buckets: its partitions sorted and arranged into buckets, ready to be appended to the index. */
import { BUCKET_COUNT_MULTIPLE, type BucketRun, BucketRunBuilder } from '../../index/write.ts';
import { PARTITION_MAX_BYTES, PartitionSorter } from './partition-sorter.ts';
import { partitionSize, readWord, SPILL_HEADER_BYTES, type SpillFile, spilledSize } from './spill.ts';

/** Runs of an index at most: its buckets fall into as many equal ranges. */
const RUNS_MAX = BUCKET_COUNT_MULTIPLE;

/** How partitions (ranges of hashes) and runs (ranges of buckets) lie to each other. */
export interface RunPlan {
  readonly bucketCount: number;
  /** Of the index that is written. */
  readonly salt: number;
  readonly runCount: number;
  readonly partitionsPerRun: number;
}

/** A run that the index's writer can append. */
export interface ArrangedRun {
  readonly run: BucketRun;
  /** Entries that a later one of the same domain replaced. */
  readonly duplicates: number;
}

/** Groups the partitions into runs whose hashes fill whole buckets: with fewer buckets than `RUNS_MAX` that is one run. */
export function planRuns(partitionBits: number, bucketCount: number, salt: number): RunPlan {
  const partitionCount = 2 ** partitionBits;
  const runCount = bucketCount % RUNS_MAX === 0 ? Math.min(partitionCount, RUNS_MAX) : 1;
  return { bucketCount, salt, runCount, partitionsPerRun: partitionCount / runCount };
}

/** Arranges runs; its memory is used again for each. */
export class RunArranger {
  readonly #files: readonly SpillFile[];
  readonly #plan: RunPlan;
  readonly #sorter = new PartitionSorter();

  /** `files` are those of all workers. */
  constructor(files: readonly SpillFile[], plan: RunPlan) {
    this.#files = files;
    this.#plan = plan;
  }

  /**
   * Arranges the run of that number.
   *
   * @throws PagegateError build_too_large where a partition's domains do not fit into memory
   */
  arrange(number: number): ArrangedRun {
    const { bucketCount, salt, runCount, partitionsPerRun } = this.#plan;
    const firstBucket = (number * bucketCount) / runCount;
    const endBucket = ((number + 1) * bucketCount) / runCount;
    const first = number * partitionsPerRun;
    let sizeHint = 1024;
    // Of a partition that is larger on the disk more is not kept.
    for (let i = 0; i < partitionsPerRun; i++) {
      sizeHint += Math.min(PARTITION_MAX_BYTES, partitionSize(this.#files, first + i));
    }
    const builder = new BucketRunBuilder({ firstBucket, endBucket, bucketCount, salt }, sizeHint);
    let duplicates = 0;
    for (let i = 0; i < partitionsPerRun; i++) {
      this.#sorter.load(this.#files, first + i);
      this.#addAll(builder);
      duplicates += this.#sorter.duplicates;
    }
    return { run: builder.finish(), duplicates };
  }

  #addAll(builder: BucketRunBuilder): void {
    const { bytes, order, count } = this.#sorter;
    for (let i = 0; i < count; i++) {
      const at = order[i]!;
      const start = at + SPILL_HEADER_BYTES;
      builder.add(readWord(bytes, at), readWord(bytes, at + 4), bytes, start, start + spilledSize(bytes, at));
    }
  }
}
