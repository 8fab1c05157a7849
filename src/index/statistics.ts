/** What an index looks like inside: how full its buckets are, and where the bytes of its records go. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BUCKET_SIZE_BYTES, SLOTS_PER_BUCKET } from './format/layout.ts';
import type { IndexScan } from './read-all.ts';

/** Bytes for each record, by part; averages. */
export interface BytesPerRecord {
  readonly directory: number;
  readonly domain: number;
  readonly facts: number;
  readonly templates: number;
  readonly literals: number;
  readonly padding: number;
  readonly checksum: number;
  /** Everything in the file, divided by the number of records. */
  readonly file: number;
}

/** What was counted. */
export interface IndexStatistics {
  /** Number of buckets with 0, 1, 2 … records. */
  readonly bucketsByRecords: readonly number[];
  /** Records that have no slot in their bucket. */
  readonly overflowing: number;
  readonly bytesPerRecord: BytesPerRecord;
  /** Records that the averages come from: all of them, or an even sample. */
  readonly sampledRecords: number;
  /** Page URLs a record. */
  readonly pagesPerRecord: number;
}

/** Records looked into at most. */
const SAMPLE_RECORDS = 200_000;
const BUCKETS_PER_TURN = 1 << 16;

/** How the scan should read: a sample's records lie far apart. */
export const STATISTICS_CHUNK_BYTES: number = 1 << 16;

/**
 * Reads the whole directory and a sample of the records.
 *
 * @throws PagegateError record_corrupt, index_changed
 */
export async function readStatistics(
  scan: IndexScan,
  onProgress: (done: number, total: number) => void = () => {},
  signal?: AbortSignal,
): Promise<IndexStatistics> {
  const { bucketCount, recordCount, sizeBytes } = scan.info;
  const bucketsByRecords: number[] = [];
  const step = Math.max(1, Math.floor(recordCount / SAMPLE_RECORDS));
  const sums = { domain: 0, facts: 0, templates: 0, literals: 0, padding: 0 };
  let sampledRecords = 0;
  let overflowing = 0;
  let pages = 0;
  while (scan.nextBucket()) {
    const { bucket, count } = scan;
    if (bucket % BUCKETS_PER_TURN === 0) {
      signal?.throwIfAborted();
      onProgress(bucket, bucketCount);
      await nextTurn();
    }
    bucketsByRecords[count] = (bucketsByRecords[count] ?? 0) + 1;
    overflowing += Math.max(0, count - SLOTS_PER_BUCKET);
    if (bucket % step !== 0) continue;
    while (scan.nextRecord()) {
      const { parts } = scan;
      sums.domain += parts.domain;
      sums.facts += parts.facts;
      sums.templates += parts.templates;
      sums.literals += parts.literals;
      sums.padding += parts.padding;
      pages += scan.pageCount;
      sampledRecords += 1;
    }
  }
  const average = (sum: number): number => (sampledRecords === 0 ? 0 : sum / sampledRecords);
  return {
    bucketsByRecords: Array.from(bucketsByRecords, (buckets) => buckets ?? 0),
    overflowing,
    sampledRecords,
    pagesPerRecord: average(pages),
    bytesPerRecord: {
      directory: recordCount === 0 ? 0 : (bucketCount * BUCKET_SIZE_BYTES + 2 * overflowing) / recordCount,
      domain: average(sums.domain),
      facts: average(sums.facts),
      templates: average(sums.templates),
      literals: average(sums.literals),
      padding: average(sums.padding),
      checksum: recordCount === 0 ? 0 : 1,
      file: recordCount === 0 ? 0 : sizeBytes / recordCount,
    },
  };
}
