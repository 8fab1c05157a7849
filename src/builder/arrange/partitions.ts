/** Partitions of a build: how many there are decides how much memory sorting one takes. */
import { PartitionSorter } from './partition-sorter.ts';
import { partitionSize, type SpillFile } from './spill.ts';

/** A partition's records in memory take about this many bytes; the sorter takes eight times as many. */
const PARTITION_WANTED_BYTES = 8 << 20;
const SPILLED_RECORD_BYTES = 90;
/** Share of a line's text that its record takes where pages are most of it. No URL takes more than its text: then a partition is four times as large. */
const SPILLED_SHARE_OF_TEXT = 0.25;
const PARTITION_BITS_MAX = 12;
/** Partitions that are looked into for how many entries are replaced by later ones. */
const DUPLICATE_SAMPLE_PARTITIONS = 2;

/** How many bits of the hash number the partitions, so that one of them fits the memory it may take: many records, or few with much text. */
export function planPartitionBits(records: number, textBytes: number): number {
  const spilledBytes = Math.max(records * SPILLED_RECORD_BYTES, textBytes * SPILLED_SHARE_OF_TEXT);
  const wanted = Math.ceil(Math.log2(Math.max(1, spilledBytes / PARTITION_WANTED_BYTES)));
  return Math.min(PARTITION_BITS_MAX, wanted);
}

/**
 * How many records there will be once earlier entries of a domain are dropped. Exact for a small drop; of a large one some
 * partitions tell the share. It decides how many buckets the directory gets, so it must not depend on the workers: it does not.
 */
export function estimateRecords(files: readonly SpillFile[], partitionBits: number, entries: number): number {
  const partitionCount = 2 ** partitionBits;
  const looked = Math.min(partitionCount, DUPLICATE_SAMPLE_PARTITIONS);
  const sorter = new PartitionSorter();
  let kept = 0;
  let duplicates = 0;
  for (let i = 0; i < looked; i++) {
    const partition = Math.floor((i * partitionCount) / looked);
    if (partitionSize(files, partition) === 0) continue;
    sorter.load(files, partition);
    kept += sorter.count;
    duplicates += sorter.duplicates;
  }
  return kept === 0 ? entries : Math.ceil((entries * kept) / (kept + duplicates));
}
