/** What an index looks like inside: how full its lines are, and where the bytes of its records go. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LINE_SIZE_BYTES, SLOTS_PER_LINE } from './layout.ts';
import type { Index } from './reader.ts';

/** Bytes for each record, by part; averages. */
export interface BytesPerRecord {
  readonly directory: number;
  readonly domain: number;
  readonly facts: number;
  readonly shapes: number;
  readonly literals: number;
  readonly padding: number;
  readonly check: number;
  /** Everything in the file, divided by the number of records. */
  readonly file: number;
}

export interface IndexStatistics {
  /** Number of lines with 0, 1, 2 … records. */
  readonly linesByRecords: readonly number[];
  /** Records that have no slot in their line. */
  readonly overflowing: number;
  readonly bytesPerRecord: BytesPerRecord;
  /** Records that the averages come from: all of them, or an even sample. */
  readonly sampledRecords: number;
  /** Page URLs a record. */
  readonly pagesPerRecord: number;
}

/** Records looked into at most. */
const SAMPLE_RECORDS = 200_000;
const LINES_PER_TURN = 1 << 16;

/** Reads the whole directory and a sample of the records. Throws record_corrupt. */
export async function readStatistics(
  index: Index,
  onProgress: (done: number, total: number) => void = () => {},
  signal?: AbortSignal,
): Promise<IndexStatistics> {
  const { lineCount, recordCount, sizeBytes } = index.info;
  const linesByRecords: number[] = [];
  const step = Math.max(1, Math.floor(recordCount / SAMPLE_RECORDS));
  const sums = { domain: 0, facts: 0, shapes: 0, literals: 0, padding: 0 };
  let sampledRecords = 0;
  let overflowing = 0;
  let pages = 0;
  for (let line = 0; line < lineCount; line++) {
    if (line % LINES_PER_TURN === 0) {
      signal?.throwIfAborted();
      onProgress(line, lineCount);
      await nextTurn();
    }
    const count = index.countOfLine(line);
    linesByRecords[count] = (linesByRecords[count] ?? 0) + 1;
    overflowing += Math.max(0, count - SLOTS_PER_LINE);
    if (line % step !== 0) continue;
    for (const handle of index.handlesOfLine(line)) {
      const parts = index.partsOf(handle);
      sums.domain += parts.domain;
      sums.facts += parts.facts;
      sums.shapes += parts.shapes;
      sums.literals += parts.literals;
      sums.padding += parts.padding;
      pages += index.pageCountOf(handle);
      sampledRecords += 1;
    }
  }
  const average = (sum: number): number => (sampledRecords === 0 ? 0 : sum / sampledRecords);
  return {
    linesByRecords: Array.from(linesByRecords, (lines) => lines ?? 0),
    overflowing,
    sampledRecords,
    pagesPerRecord: average(pages),
    bytesPerRecord: {
      directory: recordCount === 0 ? 0 : (lineCount * LINE_SIZE_BYTES + 2 * overflowing) / recordCount,
      domain: average(sums.domain),
      facts: average(sums.facts),
      shapes: average(sums.shapes),
      literals: average(sums.literals),
      padding: average(sums.padding),
      check: recordCount === 0 ? 0 : 1,
      file: recordCount === 0 ? 0 : sizeBytes / recordCount,
    },
  };
}
