/** `npm run bench -- lookup`: hit, miss, hot set and hit → response bytes, compared with the peers. */
import { ensureIndex, trial } from '../data.ts';
import { ensurePeers, MAP_MAX_RECORDS, PEERS } from '../peers.ts';
import type { LookupTimes } from '../trials/lookup.ts';
import { type BenchOptions, type BenchReport, type Cell, median, type Workload } from '../workload.ts';

const TURNS = 3;

/** With more records the peers take too long to fill. */
export const PEERS_MAX_RECORDS = 5_000_000;

/** Returns the times of each store in all rounds that count. The stores take turns. */
function roundsOf(subjects: readonly string[], { records, dir, log }: BenchOptions): LookupTimes[][] {
  const rounds: LookupTimes[][] = subjects.map(() => []);
  for (let turn = 1; turn <= TURNS; turn++) {
    for (const [s, subject] of subjects.entries()) {
      log(`asking ${subject}, turn ${turn} of ${TURNS}`);
      const args = [subject, records, dir, turn];
      rounds[s]!.push(...trial<LookupTimes[]>('lookup', args, ['--max-old-space-size=12000']));
    }
  }
  return rounds;
}

/** Returns the median of a store's rounds; null if the store has no such figure. */
function middle(values: readonly (number | null)[]): number | null {
  const numbers = values.filter((value) => value !== null);
  return numbers.length === 0 ? null : median(numbers);
}

const rounded = (value: number | null): number | null => (value === null ? null : Math.round(value));

const ratio = (value: number | null, unit: number | null): number | null =>
  value === null || unit === null ? null : Number((value / unit).toFixed(2));

async function run(options: BenchOptions): Promise<BenchReport> {
  const { records, dir, log } = options;
  ensureIndex(options);
  const peers = records > PEERS_MAX_RECORDS ? [] : PEERS.filter((name) => name !== 'map' || records <= MAP_MAX_RECORDS);
  await ensurePeers(dir, peers, records, log);
  const subjects = ['pagegate', 'pagegate --warm', ...peers];
  const rounds = roundsOf(subjects, options);
  const ours = rounds[0]!;
  const rows = subjects.map((subject, s): Record<string, Cell> => {
    const of = (pick: (times: LookupTimes) => number | null): number | null => middle(rounds[s]!.map(pick));
    const readNs = of((times) => times.readNs);
    const [hitNs, missNs] = [of((times) => times.hitNs), of((times) => times.missNs)];
    const ratios = rounds[s]!.map(({ hitNs: theirs }, round) => theirs / ours[round]!.hitNs);
    return {
      store: subject,
      'hit ns': rounded(hitNs),
      'miss ns': rounded(missNs),
      'hot ns': rounded(of((times) => times.hotNs)),
      'answer ns': rounded(of((times) => times.answerNs)),
      'read ns (M)': rounded(readNs),
      'hit / M': ratio(hitNs, readNs),
      'miss / M': ratio(missNs, readNs),
      'answer / M': ratio(
        of((times) => times.answerNs),
        readNs,
      ),
      'hit / ours': Number(median(ratios).toFixed(1)),
      'of each round': s === 0 ? '' : `${Math.min(...ratios).toFixed(1)}-${Math.max(...ratios).toFixed(1)}`,
    };
  });
  return {
    rows,
    notes: [
      `The stores take ${TURNS} turns, a fresh process each time, so that what disturbs the machine for a while does not fall on one of them.`,
      'Medians of two rounds a turn, of 50,000 random keys each, after one that is not counted; no round has a key of another. Each key was asked for once before the clock started, so that all pages are mapped.',
      'hit / ours: the median of the rounds, each against ours of the same turn, and the least and the most of them.',
      'M is one dependent read at a random place of the same file, all of whose pages are mapped, in JavaScript, in the same process.',
      'cdb is the format of tinycdb, read in JavaScript from a mapping: what it gives back is a view of it, and nothing is checked but the key.',
      'answer: hit → bytes of the JSON answer; peers unpack MessagePack and call JSON.stringify.',
      '--warm reads the file into huge pages, where kernel and file system have them: M is smaller then, too.',
      'hot: 1,000 keys, the k-th asked for in proportion to 1 / k. The stores were filled in the order of their keys; lmdb and sqlite without fsync, sqlite WITHOUT ROWID and memory-mapped.',
    ],
  };
}

export const workload: Workload = {
  name: 'lookup',
  description: 'lookups in nanoseconds, in one process',
  hasPeers: true,
  run,
};
