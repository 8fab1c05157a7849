/** `npm run bench -- open`: the time to open an index and get the first answer. */
import { datasetOf, ensureIndex, trial } from '../data.ts';
import { dropFromPageCache } from '../page-cache.ts';
import { type BenchOptions, type BenchReport, median, type Workload } from '../workload.ts';

const TRIALS = 9;

async function run(options: BenchOptions): Promise<BenchReport> {
  const path = ensureIndex(options);
  const key = datasetOf(options.records).nameOf(12_345 % options.records);
  const rows = ['in the page cache', 'not in the page cache'].map((state) => {
    const samples = Array.from({ length: TRIALS }, () => {
      if (state.startsWith('not')) dropFromPageCache(path);
      return trial<{ openedMs: number; answeredMs: number }>('open', [path, key]);
    });
    const of = (pick: (sample: (typeof samples)[number]) => number): number =>
      Number(median(samples.map(pick)).toFixed(1));
    return {
      file: state,
      'opened ms': of((sample) => sample.openedMs),
      'first answer ms': of((sample) => sample.answeredMs),
    };
  });
  return {
    rows,
    notes: [`A fresh process for each of ${TRIALS} trials; medians. The start of Node itself is not counted.`],
  };
}

export const workload: Workload = { name: 'open', description: 'time from opening the file to the first answer', run };
