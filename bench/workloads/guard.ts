/**
 * `npm run bench -- guard`: what a guarded fetch takes above the same fetch unguarded, one request at a time, with a real pagegate and a
 * site on loopback, each in a process of its own. Modes are interleaved, so that a slow minute of the machine falls on all of them.
 */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Agent, fetch as undiciFetch } from 'undici';
import { createGuardedFetch, GuardedAgent } from '../../src/guard/fetch.ts';
import { Guard, type GuardOptions } from '../../src/guard/guard.ts';
import { type ExportedPolicy, LocalVerdicts } from '../../src/guard/local.ts';
import { domainOf, PAGEGATE } from '../../tools/installation.ts';
import { createBenchInstallation } from '../forked.ts';
import { type BenchReport, median, type Workload } from '../workload.ts';

const ROUNDS = 7;
const REQUESTS = 1_000;
const HOST = domainOf(7);

type Fetch = typeof fetch;
/** Makes the request of a number. */
type Mode = (n: number) => Promise<unknown>;

async function microsecondsOf(mode: Mode, from: number): Promise<number> {
  const startedMs = performance.now();
  for (let n = from; n < from + REQUESTS; n++) await mode(n);
  return ((performance.now() - startedMs) * 1_000) / REQUESTS;
}

/** Medians over the rounds. Numbers go on from round to round, so that a mode without a cache asks about each for the first time. */
async function measure(modes: Readonly<Record<string, Mode>>): Promise<Record<string, number>> {
  const samples = new Map(Object.keys(modes).map((name) => [name, [] as number[]]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, mode] of Object.entries(modes)) {
      const taken = await microsecondsOf(mode, round * REQUESTS);
      // The first round warms up.
      if (round > 0) samples.get(name)!.push(taken);
    }
  }
  return Object.fromEntries([...samples].map(([name, taken]) => [name, median(taken)]));
}

async function run({ log }: { readonly log: (line: string) => void }): Promise<BenchReport> {
  const site = fork(new URL('../guard/site.ts', import.meta.url).pathname);
  const [port] = (await once(site, 'message')) as [number];
  const { installation, key } = await createBenchInstallation(1, 'full');
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
    const taken = await measure({
      fetch: async (n) => read(await undiciFetch(at(n), { dispatcher: plain })),
      'guardedFetch, verdict kept': async (n) => read(await fetches[0](at(n % 100))),
      'guardedFetch, verdict asked for': async (n) => read(await fetches[1](at(n))),
      'guardedFetch, judged on a kept record': async (n) => read(await fetches[2](at(n))),
      'check, verdict kept': (n) => keeping.enforce(at(n % 100)),
      'check, judged on a kept record': (n) => judging.enforce(at(n)),
      'check, verdict asked for': (n) => asking.enforce(at(n)),
    });
    const bare = taken['fetch']!;
    const rows = Object.entries(taken).map(([mode, us]) => ({
      mode,
      us: Number(us.toFixed(1)),
      aboveUs: mode.includes('etch') ? Number((us - bare).toFixed(1)) : null,
      ratio: mode.includes('etch') ? Number((us / bare).toFixed(2)) : null,
    }));
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
  'A verdict that is asked for is a request to pagegate (durability full: on disk before the answer), made before the connection to the site is used.',
];

/** The site's port, beside those of the web; returns the policy's file. */
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
  run,
};
