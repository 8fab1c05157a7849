/**
 * `npm run bench -- build [--records N] [--beside CHECKOUT]`: builds an index from a drop, compared with JSON.parse alone and with peers that write
 * as many records. With `--beside`, another checkout builds in the same rounds.
 */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type BuildFacts, buildFactsOf } from '../build-report.ts';
import { CHECKOUT, ensureDrop, trial } from '../data.ts';
import { partsOf } from '../drop-lines.ts';
import { readIntoPageCache } from '../page-cache.ts';
import { ensurePeers, loadSeconds, type PeerName } from '../peers.ts';
import { type BenchOptions, type BenchReport, type Cell, median, type Workload } from '../workload.ts';

/** Share of the lines that are made invalid or duplicates. */
const DIRT = 0.01;
/** Smaller sizes that are measured in addition, to show whether the cost per record grows. */
const SIZES = [1_000_000, 5_000_000];
/** Up to this size, everything is run three times, interleaved, and the median counts. */
const REPEATED_MAX_RECORDS = 1_000_000;
const ROUNDS = 3;
/** Peers are measured up to this size. */
const PEERS_MAX_RECORDS = 5_000_000;
/** Up to this size, JSON.parse alone reads all parts; above it, a quarter of them. */
const PARSED_WHOLE_MAX_RECORDS = 5_000_000;
const LOADED_PEERS: readonly PeerName[] = ['lmdb', 'sqlite'];

interface Parsed {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly lines: number;
  readonly bytes: number;
}

/** Returns the item whose value by `of` is the median. */
const middle = <T>(items: readonly T[], of: (item: T) => number): T => {
  const value = median(items.map(of));
  return items.find((item) => of(item) === value)!;
};

interface Measured {
  readonly records: number;
  readonly built: BuildFacts;
  /** Result of the other checkout, if one is given. */
  readonly besideBuilt: BuildFacts | undefined;
  /** JSON.parse of the whole input. */
  readonly parseSeconds: number;
  readonly parseCpuSeconds: number;
}

/** Runs the build as users start it, with the compile cache of earlier runs. */
function buildWith(checkout: string, args: readonly string[]): BuildFacts {
  return buildFactsOf(execFileSync(join(checkout, 'src/pagegate'), args, { encoding: 'utf8' }));
}

function measure(options: BenchOptions, records: number): Measured {
  const drop = ensureDrop({ ...options, records }, DIRT);
  const all = partsOf(drop);
  const parsed = records > PARSED_WHOLE_MAX_RECORDS ? all.filter((_, i) => i % 4 === 0) : all;
  const out = join(options.dir, `built-${records}.pgx`);
  const parses: Parsed[] = [];
  const builds: BuildFacts[] = [];
  const besideBuilds: BuildFacts[] = [];
  const args = ['build', drop, '--out', out, '--no-rejects', '--json'];
  for (let round = 0; round < (records > REPEATED_MAX_RECORDS ? 1 : ROUNDS); round++) {
    const begin = (what: string): void => {
      // A build leaves nothing of the drop in the page cache. If a drop does not fit into the cache, every subject reads it from disk.
      if (records <= PARSED_WHOLE_MAX_RECORDS) readIntoPageCache(all);
      options.log(`${records.toLocaleString('en-US')} records, round ${round + 1}: ${what}`);
    };
    begin('JSON.parse');
    parses.push(trial<Parsed>('parse', parsed));
    begin('build');
    builds.push(buildWith(CHECKOUT, args));
    // A build does not replace an index of another format.
    rmSync(out, { force: true });
    if (options.beside === undefined) continue;
    begin(`build of ${options.beside}`);
    besideBuilds.push(buildWith(options.beside, args));
    rmSync(out, { force: true });
  }
  const built = middle(builds, ({ durationMs }) => durationMs);
  const besideBuilt = besideBuilds.length === 0 ? undefined : middle(besideBuilds, ({ durationMs }) => durationMs);
  const parse = middle(parses, ({ seconds }) => seconds);
  const scale = built.lines / parse.lines;
  return {
    records,
    built,
    besideBuilt,
    parseSeconds: parse.seconds * scale,
    parseCpuSeconds: parse.cpuSeconds * scale,
  };
}

function cpuSecondsOf({ stepsCpuMs }: BuildFacts): number {
  return Object.values(stepsCpuMs).reduce((sum, ms) => sum + ms, 0) / 1000;
}

function rowsOf({ records, built, besideBuilt, parseSeconds, parseCpuSeconds }: Measured): Record<string, Cell>[] {
  const row = (
    what: string,
    seconds: number,
    cpuSeconds: number | null,
    memoryBytes: number | null,
  ): Record<string, Cell> => ({
    records,
    what,
    seconds: Number(seconds.toFixed(2)),
    'us a record': Number(((seconds * 1e6) / records).toFixed(3)),
    'of JSON.parse': Number((seconds / parseSeconds).toFixed(3)),
    'cpu us a record': cpuSeconds === null ? null : Number(((cpuSeconds * 1e6) / records).toFixed(3)),
    'peak MB': memoryBytes === null ? null : Math.round(memoryBytes / 1e6),
  });
  const { stepsMs, stepsCpuMs } = built;
  const steps = Object.entries(stepsMs).map(([step, ms]) =>
    row(`  ${step}`, ms / 1000, (stepsCpuMs[step] ?? 0) / 1000, null),
  );
  const buildRow = (what: string, report: BuildFacts): Record<string, Cell> =>
    row(`${what}, ${report.workers} threads`, report.durationMs / 1000, cpuSecondsOf(report), report.peakMemoryBytes);
  return [
    row('JSON.parse alone, one core', parseSeconds, parseCpuSeconds, null),
    buildRow('pagegate build', built),
    ...steps,
    ...(besideBuilt === undefined ? [] : [buildRow('pagegate build of the other checkout', besideBuilt)]),
  ];
}

/** Measures peers that write the same number of valid records, which are parsed, packed and sorted for them beforehand. */
async function loadPeers(
  { dir, log }: BenchOptions,
  { records, parseSeconds }: Measured,
): Promise<Record<string, Cell>[]> {
  await ensurePeers(dir, LOADED_PEERS, records, log);
  return LOADED_PEERS.map((peer) => {
    const seconds = loadSeconds(dir, peer, records);
    return {
      records,
      what: `${peer}, writing sorted records alone`,
      seconds: Number(seconds.toFixed(2)),
      'us a record': Number(((seconds * 1e6) / records).toFixed(3)),
      'of JSON.parse': Number((seconds / parseSeconds).toFixed(3)),
      'cpu us a record': null,
      'peak MB': null,
    };
  });
}

async function run(options: BenchOptions): Promise<BenchReport> {
  const sizes = [...SIZES.filter((size) => size < options.records), options.records];
  const rows: Record<string, Cell>[] = [];
  let last: Measured | undefined;
  for (const size of sizes) {
    last = measure(options, size);
    rows.push(...rowsOf(last));
    if (size === Math.min(options.records, PEERS_MAX_RECORDS)) rows.push(...(await loadPeers(options, last)));
  }
  const { built } = last!;
  const rejects = Object.values(built.rejects).reduce((sum, count) => sum + count, 0);
  return {
    rows,
    notes: [
      `The largest drop: ${built.lines.toLocaleString('en-US')} lines, ${built.duplicates.toLocaleString('en-US')} duplicates, ` +
        `${rejects.toLocaleString('en-US')} rejects, ${built.indexed.toLocaleString('en-US')} records, ` +
        `${(built.sizeBytes / 1e6).toFixed(0)} MB of index, ${(built.tempUsedBytes / 1e6).toFixed(0)} MB of temporary files.`,
      'A build checks every line against the schema, checksums the parts, sorts, writes, syncs and verifies.',
      'Up to 5,000,000 records the drop is read into the page cache before each; a larger one is read from the disk.',
      'Peak memory is that of the whole process, all threads, without cached file pages.',
      'Peers write records without dirt that were parsed, packed and sorted by key before the clock started; they check nothing.',
      `Above ${PARSED_WHOLE_MAX_RECORDS.toLocaleString('en-US')} records JSON.parse reads every fourth part, and its time is scaled.`,
    ],
  };
}

export const workload: Workload = {
  name: 'build',
  description: 'a drop of NDJSON becomes an index',
  hasPeers: true,
  run,
};
