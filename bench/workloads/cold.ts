/** `npm run bench -- cold`: lookups after the file was dropped from the page cache, with and without the advice that reads are random. */
import { ensureIndex, trial } from '../data.ts';
import { dropFromPageCache } from '../page-cache.ts';
import type { BenchOptions, BenchReport, Workload } from '../workload.ts';

const LOOKUPS = 300;

interface ColdTimes {
  readonly medianUs: number;
  readonly meanUs: number;
  readonly faults: number;
  readonly bytes: number;
}

async function run(options: BenchOptions): Promise<BenchReport> {
  const path = ensureIndex(options);
  const rows = ['random', 'normal'].map((advice) => {
    dropFromPageCache(path);
    const { medianUs, meanUs, faults, bytes } = trial<ColdTimes>('cold', [options.records, path, advice, LOOKUPS]);
    return {
      MADV_RANDOM: advice === 'random' ? 'yes, as shipped' : 'no',
      'median µs': Math.round(medianUs),
      'mean µs': Math.round(meanUs),
      'major faults each': Number(faults.toFixed(2)),
      'bytes read each': Math.round(bytes),
    };
  });
  return {
    rows,
    notes: [
      `${LOOKUPS} lookups of random records that exist, each decoded; the file was dropped from the page cache before.`,
      'Without the advice the kernel reads ahead, so that in a small file the later lookups find what the earlier ones dragged in.',
    ],
  };
}

export const workload: Workload = { name: 'cold', description: 'lookups of a file that is not in memory', run };
