/** Second half of a build, for one run of buckets: sorts its partitions and arranges them into buckets, ready to append to the index. */
import { withCommas } from '../../counted.ts';
import { PagegateError } from '../../errors.ts';
import { BUCKET_COUNT_MULTIPLE, type BucketRun, BucketRunBuilder } from '../../index/write.ts';
import { PARTITION_MAX_BYTES, PartitionSorter } from './partition-sorter.ts';
import { partitionSize, readWord, SPILL_HEADER_BYTES, type SpillFile, spilledPlace, spilledSize } from './spill.ts';

/** Maximum number of runs of an index. The buckets are divided evenly among the runs. */
const RUNS_MAX = BUCKET_COUNT_MULTIPLE;

/** How partitions (ranges of hashes) map to runs (ranges of buckets). */
export interface RunPlan {
  readonly bucketCount: number;
  /** The salt of the new index. */
  readonly salt: number;
  readonly runCount: number;
  readonly partitionsPerRun: number;
}

/** A run, ready for `IndexWriter.append`. */
export interface ArrangedRun {
  readonly run: BucketRun;
  /** Entries that were replaced by a later one of the same domain. */
  readonly duplicates: number;
}

/** Groups the partitions into runs that fill whole buckets. With fewer than `RUNS_MAX` buckets that is one run. */
export function planRuns(partitionBits: number, bucketCount: number, salt: number): RunPlan {
  const partitionCount = 2 ** partitionBits;
  const runCount = bucketCount % RUNS_MAX === 0 ? Math.min(partitionCount, RUNS_MAX) : 1;
  return { bucketCount, salt, runCount, partitionsPerRun: partitionCount / runCount };
}

/** Arranges runs. Reuses its memory for each. */
export class RunArranger {
  readonly #files: readonly SpillFile[];
  readonly #plan: RunPlan;
  readonly #sorter = new PartitionSorter();

  /** `files`: the spill files of all workers. */
  constructor(files: readonly SpillFile[], plan: RunPlan) {
    this.#files = files;
    this.#plan = plan;
  }

  /**
   * Arranges run `number`, counted from 0.
   *
   * @throws PagegateError build_too_large if the records of a partition's domains do not fit into memory
   * @throws PagegateError index_limit if a bucket gets more records than it can count
   */
  arrange(number: number): ArrangedRun {
    const { bucketCount, salt, runCount, partitionsPerRun } = this.#plan;
    const firstBucket = (number * bucketCount) / runCount;
    const endBucket = ((number + 1) * bucketCount) / runCount;
    const first = number * partitionsPerRun;
    let sizeHint = 1024;
    // However large a partition is on disk, at most this much of it is kept.
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
    let at = 0;
    try {
      for (let i = 0; i < count; i++) {
        at = order[i]!;
        const start = at + SPILL_HEADER_BYTES;
        builder.add(readWord(bytes, at), readWord(bytes, at + 4), bytes, start, start + spilledSize(bytes, at));
      }
    } catch (error) {
      throw error instanceof PagegateError && error.code === 'index_limit'
        ? overfullBucketError(error, bytes, at)
        : error;
    }
  }
}

/** Returns an error that names one of the lines, so that the vendor can find the domains that resemble it. */
function overfullBucketError(cause: PagegateError, bytes: Uint8Array, at: number): PagegateError {
  const { part, line } = spilledPlace(bytes, at);
  const where = `line ${withCommas(line)} of part ${withCommas(part + 1)}`;
  const what = `More domains than a bucket can count have hashes of one bucket, among them ${where}. Chance does not do that: names can be chosen so. Ask the vendor to look at those that are like it.`;
  return new PagegateError('index_limit', what, { ...cause.details, part: part + 1, line }, { cause });
}
