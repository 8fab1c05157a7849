/** Statistics of an index: how full its buckets are, and what the bytes of its records are used for. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BUCKET_SIZE_BYTES, SLOTS_PER_BUCKET } from './format/layout.ts';
import type { IndexScan } from './read-all.ts';

/** Average number of bytes for each record, by part. */
export interface BytesPerRecord {
  readonly directory: number;
  readonly domain: number;
  readonly facts: number;
  readonly templates: number;
  readonly literals: number;
  readonly padding: number;
  readonly checksum: number;
  /** Size of the file divided by the number of records. */
  readonly file: number;
}

/** The statistics of one index. */
export interface IndexStatistics {
  /** Number of buckets with 0, 1, 2 … records. */
  readonly bucketsByRecords: readonly number[];
  /** Records that have no slot in their bucket. */
  readonly overflowing: number;
  readonly bytesPerRecord: BytesPerRecord;
  /** Number of records that the averages are computed from: all records, or an evenly spread sample. */
  readonly sampledRecords: number;
  /** Average number of page URLs for each record. */
  readonly pagesPerRecord: number;
}

/** Approximate size of the sample. */
const SAMPLE_RECORDS = 200_000;
const BUCKETS_PER_TURN = 1 << 16;

/** Chunk size for the scan: small, because the records of a sample are far apart. */
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
