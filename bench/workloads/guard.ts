/**
 * `npm run bench -- guard`: how much longer a guarded fetch takes than an unguarded one, one request at a time. pagegate and the site run on
 * loopback, each as a process. Modes are interleaved, so that a slow minute of the machine affects all of them.
 */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Agent, fetch as undiciFetch } from 'undici';
import { createGuardedFetch, GuardedAgent } from '../../src/guard/fetch.ts';
import { Guard, type GuardOptions } from '../../src/guard/guard.ts';
import { type ExportedPolicy, LocalVerdicts } from '../../src/guard/local-verdicts.ts';
import { domainOf, PAGEGATE } from '../../tools/installation.ts';
import { createBenchInstallation } from '../forked-servers.ts';
import { type BenchReport, median, type Workload } from '../workload.ts';

const ROUNDS = 15;
const REQUESTS = 400;
const HOST = domainOf(7);

type Fetch = typeof fetch;
/** Makes request number `n`. */
type Mode = (n: number) => Promise<unknown>;

/** Microseconds per request: wall time, and processor time of this process. */
interface Sample {
  readonly us: number;
  readonly cpuUs: number;
}

async function sampleOf(mode: Mode, from: number): Promise<Sample> {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  for (let n = from; n < from + REQUESTS; n++) await mode(n);
  const { user, system } = process.cpuUsage(before);
  return { us: ((performance.now() - startedMs) * 1_000) / REQUESTS, cpuUs: (user + system) / REQUESTS };
}

/** Returns samples by mode, one per round. Request numbers continue from round to round, so that no URL is looked up twice without a cache. */
async function measure(modes: Readonly<Record<string, Mode>>): Promise<Map<string, readonly Sample[]>> {
  const samples = new Map(Object.keys(modes).map((name) => [name, [] as Sample[]]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, mode] of Object.entries(modes)) {
      const sample = await sampleOf(mode, round * REQUESTS);
      // The first round is a warm-up.
      if (round > 0) samples.get(name)!.push(sample);
    }
  }
  return samples;
}

/** Returns a row of the table: medians, and their difference to the bare fetch of the same round. */
function rowOf(mode: string, samples: readonly Sample[], bare: readonly Sample[] | undefined) {
  const of = (pick: (sample: Sample) => number): number => Number(median(samples.map(pick)).toFixed(1));
  const above = (pick: (sample: Sample) => number): number | null =>
    bare === undefined ? null : Number(median(samples.map((sample, i) => pick(sample) - pick(bare[i]!))).toFixed(1));
  const us = (sample: Sample): number => sample.us;
  const cpuUs = (sample: Sample): number => sample.cpuUs;
  return { mode, us: of(us), aboveUs: above(us), cpuUs: of(cpuUs), cpuAboveUs: above(cpuUs) };
}

async function run({ log }: { readonly log: (line: string) => void }): Promise<BenchReport> {
  const site = fork(fileURLToPath(new URL('../guard/site.ts', import.meta.url)));
  const [port] = (await once(site, 'message')) as [number];
  const { installation, key } = await createBenchInstallation();
  const policyFile = allowPort(installation.configFile, port);
  await installation.start();
  const lookup: LookupFunction = (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]);
  const plain = new Agent({ connect: { lookup } });
  const server = `http://127.0.0.1:${installation.port}`;
  const create = (options: Partial<GuardOptions>): Guard =>
    new Guard({ server, key, exceptions: { [HOST]: '127.0.0.1' }, ...options });
  const { stdout } = await promisify(execFile)(PAGEGATE, ['policy', 'export', policyFile], { maxBuffer: 1 << 26 });
  const local = new LocalVerdicts(JSON.parse(stdout) as ExportedPolicy);
  const [keeping, asking] = [create({ cacheSeconds: 3_600 }), create({ cacheSeconds: 0 })];
  const judging = create({ cacheSeconds: 0, local });
  const guards = [keeping, asking, judging] as const;
  const agents = guards.map((guard) => new GuardedAgent(guard, { connect: { lookup } }));
  const fetches = guards.map((guard, i) => createGuardedFetch(guard, agents[i])) as [Fetch, Fetch, Fetch];
  const at = (n: number): string => `http://${HOST}:${port}/news/${n}`;
  const read = async (response: { text(): Promise<string> }): Promise<string> => response.text();
  try {
    log(`${ROUNDS} rounds of ${REQUESTS} requests each way, one at a time`);
    const samples = await measure({
      fetch: async (n) => read(await undiciFetch(at(n), { dispatcher: plain })),
      'guardedFetch, verdict kept': async (n) => read(await fetches[0](at(n % 100))),
      'guardedFetch, verdict asked for': async (n) => read(await fetches[1](at(n))),
      'guardedFetch, judged on a kept record': async (n) => read(await fetches[2](at(n))),
      'check, verdict kept': (n) => keeping.enforce(at(n % 100)),
      'check, judged on a kept record': (n) => judging.enforce(at(n)),
      'check, verdict asked for': (n) => asking.enforce(at(n)),
    });
    const bare = samples.get('fetch')!;
    const rows = [...samples].map(([mode, taken]) => rowOf(mode, taken, /fetch/i.test(mode) ? bare : undefined));
    return { rows, notes: NOTES };
  } finally {
    for (const agent of [plain, ...agents]) await agent.destroy();
    for (const guard of guards) guard.close();
    await installation.remove();
    site.disconnect();
  }
}

const NOTES = [
  'Both sides are undici and use one kept connection; the site answers 2,000 bytes over plain HTTP on loopback, so a real fetch takes longer and the share of the guard is smaller.',
  'A verdict that is asked for is a request to pagegate, made before the connection to the site is used.',
  'Above is the median of the differences to the bare fetch in the same round. CPU is that of this process alone, which busy neighbors change less.',
];

/** Writes a policy that permits the site's port besides 80 and 443. Returns its file. */
function allowPort(configFile: string, port: number): string {
  const file = join(dirname(configFile), 'policy.json');
  const policy = { format: 'pagegate-policy/1', override: { rules: { port: { allowed: [80, 443, port] } } } };
  writeFileSync(file, JSON.stringify(policy));
  const config = JSON.parse(readFileSync(configFile, 'utf8')) as object;
  writeFileSync(configFile, JSON.stringify({ ...config, policy: { file } }));
  return file;
}

export const workload: Workload = {
  name: 'guard',
  description: 'what a guarded fetch takes above an unguarded one',
  recordsMax: 0,
  run,
};
