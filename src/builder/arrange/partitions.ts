/** Partitions of a build: how many there are decides how much memory sorting one takes. */
import { PartitionSorter } from './partition-sorter.ts';
import type { SpillFile } from './spill.ts';

/** A partition's records in memory take about this many bytes; the sorter takes eight times as many. */
const PARTITION_WANTED_BYTES = 8 << 20;
const SPILLED_RECORD_BYTES = 90;
/** Share of a line's text that its record takes where pages are most of it. No URL takes more than its text: then a partition is four times as large. */
const SPILLED_SHARE_OF_TEXT = 0.25;
const PARTITION_BITS_MAX = 12;
/** Records that are counted: so many tell the number of all to a third of a percent. */
const COUNTED_RECORDS_MIN = 100_000;

/** How many bits of the hash number the partitions, so that one of them fits the memory it may take: many records, or few with much text. */
export function planPartitionBits(records: number, textBytes: number): number {
  const spilledBytes = Math.max(records * SPILLED_RECORD_BYTES, textBytes * SPILLED_SHARE_OF_TEXT);
  const wanted = Math.ceil(Math.log2(Math.max(1, spilledBytes / PARTITION_WANTED_BYTES)));
  return Math.min(PARTITION_BITS_MAX, wanted);
}

/**
 * How many records there will be once earlier entries of a domain are dropped. Exact for a small drop; of a large one the first partitions
 * tell: hashes spread the domains evenly, however often one of them is repeated. It decides how many buckets the directory gets, so it
 * must not depend on the workers: it does not.
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
