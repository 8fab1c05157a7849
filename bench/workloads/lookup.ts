/** `npm run bench -- lookup`: hit, miss, hot set and hit → response bytes, beside the peers. */
import { ensureIndex, trial } from '../data.ts';
import { ensurePeers, MAP_MAX_RECORDS, PEERS } from '../peers.ts';
import type { LookupTimes } from '../trials/lookup.ts';
import type { BenchOptions, BenchReport, Cell, Workload } from '../workload.ts';

/** With more records the peers take too long to fill. */
export const PEERS_MAX_RECORDS = 5_000_000;

async function run(options: BenchOptions): Promise<BenchReport> {
  const { records, dir, log } = options;
  ensureIndex(options);
  const peers = records > PEERS_MAX_RECORDS ? [] : PEERS.filter((name) => name !== 'map' || records <= MAP_MAX_RECORDS);
  await ensurePeers(dir, peers, records, log);
  const rows: Record<string, Cell>[] = [];
  let hit: number | undefined;
  for (const subject of ['pagegate', 'pagegate --warm', ...peers]) {
    log(`asking ${subject}`);
    const times = trial<LookupTimes>('lookup', [subject, records, dir], ['--max-old-space-size=12000']);
    const unit = times.readNs;
    hit ??= times.hitNs;
    rows.push({
      store: subject,
      'hit ns': times.hitNs,
      'miss ns': times.missNs,
      'hot ns': times.hotNs,
      'answer ns': times.answerNs,
      'read ns (M)': times.readNs,
      'hit / M': unit === null ? null : Number((times.hitNs / unit).toFixed(2)),
      'miss / M': unit === null ? null : Number((times.missNs / unit).toFixed(2)),
      'hit / ours': Number((times.hitNs / hit).toFixed(1)),
    });
  }
  return {
    rows,
    notes: [
      'A fresh process for each store; medians of 5 rounds of 50,000 random keys, after one round that is not counted; no round has a key of another. Each key was asked for once before the clock started, so that all pages are mapped.',
      'M is one dependent read at a random place of our mapping, in JavaScript, in the same process.',
      'cdb is the format of tinycdb, read in JavaScript from a mapping: what it gives back is a view of it, and nothing is checked but the key.',
      'answer: hit → bytes of the JSON answer; peers unpack MessagePack and call JSON.stringify.',
      '--warm reads the file into huge pages, where kernel and file system have them: M is smaller then, too.',
      'hot: 1,000 keys, the k-th asked for in proportion to 1 / k. The stores were filled in the order of their keys; lmdb and sqlite without fsync, sqlite WITHOUT ROWID and memory-mapped.',
    ],
  };
}

export const workload: Workload = { name: 'lookup', description: 'look-ups in nanoseconds, in one process', run };
