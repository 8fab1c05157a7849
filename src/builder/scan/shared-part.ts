/** Scans one part with all workers: the caller's thread reads, unpacks and checksums it, and gives each worker blocks of whole lines. */
import { lineBlocks } from '../../drop/line-blocks.ts';
import { checkCount, checkCountSoFar } from '../../drop/line-counter.ts';
import type { DropPart } from '../../drop/manifest.ts';
import { type OnBytes, readPart } from '../../drop/part-reader.ts';
import type { BuildWorker } from '../worker/worker-messages.ts';
import { addCounts } from './counts.ts';
import type { PartOutcome } from './part-scanner.ts';

/** Blocks that a worker has at once: one that it scans, and the next. */
const BLOCKS_AHEAD = 2;

/** The part of that number in the manifest. */
export interface NumberedPart {
  readonly drop: string;
  readonly part: DropPart;
  readonly number: number;
}

/**
 * Reads a part and has it scanned.
 *
 * @throws PagegateError drop_part_records where it has another number of lines than its manifest says, and what `readPart` throws
 */
export async function feedPart(
  { drop, part, number }: NumberedPart,
  workers: readonly BuildWorker[],
  onBytes?: OnBytes,
): Promise<PartOutcome> {
  const free = Array.from({ length: BLOCKS_AHEAD }, () => workers).flat();
  let records = 0;
  let failure: { readonly error: unknown } | undefined;
  let wake = (): void => {};
  for await (const block of lineBlocks(readPart(drop, part, onBytes))) {
    while (free.length === 0 && failure === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    if (failure !== undefined) throw failure.error;
    checkCountSoFar(part, records);
    const worker = free.shift()!;
    worker.feed(number, block).then(
      (count) => {
        records += count;
        free.push(worker);
        wake();
      },
      (error: unknown) => {
        failure ??= { error };
        wake();
      },
    );
  }
  const outcomes = await Promise.all(workers.map((worker) => worker.endFeed(number)));
  if (failure !== undefined) throw failure.error;
  const outcome = sumOf(outcomes);
  checkCount(part, outcome.records);
  return outcome;
}

function sumOf(outcomes: readonly PartOutcome[]): PartOutcome {
  const sum = { records: 0, entries: 0, pages: 0, ranksRepeated: 0, rejects: {}, repairs: {} };
  for (const { records, entries, pages, ranksRepeated, rejects, repairs } of outcomes) {
    sum.records += records;
    sum.entries += entries;
    sum.pages += pages;
    sum.ranksRepeated += ranksRepeated;
    addCounts(sum.rejects, rejects);
    addCounts(sum.repairs, repairs);
  }
  return sum;
}
