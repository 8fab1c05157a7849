/** The number of partitions of a build. It determines how much memory the sorting of one partition takes. */
import { PartitionSorter } from './partition-sorter.ts';
import type { SpillFile } from './spill.ts';

/** Target size of a partition in memory, in bytes. The sorter accepts eight times as much. */
const PARTITION_WANTED_BYTES = 8 << 20;
const SPILLED_RECORD_BYTES = 90;
/**
 * Size of a record as a share of its line's text, if most of the text is pages. No URL takes more than its text, so a partition is at most
 * four times as large as planned.
 */
const SPILLED_SHARE_OF_TEXT = 0.25;
const PARTITION_BITS_MAX = 12;
/** Count at least this many records: enough to estimate the total within a third of a percent. */
const COUNTED_RECORDS_MIN = 100_000;

/**
 * Returns how many leading bits of the hash select the partition, so that a partition fits into its memory, with many records or with few
 * that have much text.
 */
export function planPartitionBits(records: number, textBytes: number): number {
  const spilledBytes = Math.max(records * SPILLED_RECORD_BYTES, textBytes * SPILLED_SHARE_OF_TEXT);
  const wanted = Math.ceil(Math.log2(Math.max(1, spilledBytes / PARTITION_WANTED_BYTES)));
  return Math.min(PARTITION_BITS_MAX, wanted);
}

/**
 * Estimates the number of records after earlier entries of each domain are dropped. Exact for a small drop. For a large one it
 * extrapolates from the first partitions: hashes spread the domains evenly, however often a domain is repeated. The estimate determines
 * the number of buckets in the directory, so it must not depend on the number of workers, and it does not.
 */
export function estimateRecords(files: readonly SpillFile[], partitionBits: number): number {
  const partitionCount = 2 ** partitionBits;
  const sorter = new PartitionSorter();
  let records = 0;
  let counted = 0;
  while (counted < partitionCount && records < COUNTED_RECORDS_MIN) {
    sorter.load(files, counted);
    records += sorter.count;
    counted += 1;
  }
  return Math.ceil((records * partitionCount) / counted);
}
