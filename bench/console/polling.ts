/**
 * Measures how much polling console sessions slow down lookups. Each round measures without, with and without sessions, and is compared only
 * with itself.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServedInstallation } from '../../tools/chaos/served-installation.ts';
import { domainOf } from '../../tools/installation.ts';
import { LoadGenerator, processCpuUs } from '../forked-servers.ts';
import { median } from '../workload.ts';
import { visit } from './browser-visit.ts';

/** Pages that refresh themselves, and their intervals in milliseconds. */
const PAGES = [
  ['', 10_000],
  ['health', 10_000],
  ['decisions?live=1', 2_000],
  ['generations', 3_000],
] as const;
const ROUNDS = 7;
const SLICE_MS = 2_000;
const CONNECTIONS = 16;

interface Slice {
  /** Processor time per lookup, in microseconds. */
  readonly cpuUs: number;
  readonly p99Us: number;
}

/** Polls as open pages do, evenly spread in time. The returned function stops it and returns how many pages were served. */
function poll(url: string, cookies: readonly string[]): () => Promise<number> {
  let [isOver, served] = [false, 0];
  const all = cookies.map(async (cookie, i) => {
    const [page, everyMs] = PAGES[i % PAGES.length]!;
    let nextMs = performance.now() + (everyMs * i) / cookies.length;
    for (;;) {
      while (!isOver && performance.now() < nextMs) await sleep(20);
      if (isOver) return;
      nextMs += everyMs;
      const { isServed } = await visit(url + page, cookie);
      if (isServed) served += 1;
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(all);
    return served;
  };
}

export interface PollingReport {
  readonly aloneUs: number;
  readonly polledUs: number;
  /** Cost with sessions, divided by the mean of the costs before and after: median of all rounds, and the lowest and highest round. */
  readonly ratio: number;
  readonly ratios: readonly [low: number, high: number];
  /** Cost after, divided by cost before, both without sessions: how much such a ratio varies on this machine. */
  readonly noise: number;
  readonly noises: readonly [low: number, high: number];
  readonly p99Ratio: number;
  readonly pagesPerSecond: number;
}

/** Puts full load on one worker, with and without polling sessions. */
export async function measurePolling(
  installation: ServedInstallation,
  key: string,
  url: string,
  cookies: readonly string[],
  log: (line: string) => void,
): Promise<PollingReport> {
  const requestsFile = join(installation.root, 'requests.txt');
  writeFileSync(requestsFile, Array.from({ length: 1_000 }, (_, i) => `/api/check?url=${domainOf(i)}\n`).join(''));
  const load = new LoadGenerator();
  const target = { port: installation.port, requestsFile, keys: [key] };
  const [worker = 0] = installation.workers;
  const slice = async (): Promise<Slice> => {
    let before = 0;
    const { answered, p99Us } = await load.run(
      target,
      CONNECTIONS,
      { requests: 10_000_000, durationMs: SLICE_MS },
      () => {
        before = processCpuUs(worker);
      },
    );
    return { cpuUs: (processCpuUs(worker) - before) / answered, p99Us };
  };
  const rounds: { readonly before: Slice; readonly polled: Slice; readonly after: Slice }[] = [];
  let served = 0;
  for (let i = 0; i <= ROUNDS; i++) {
    log(`lookups, round ${i} of ${ROUNDS}`);
    const before = await slice();
    const stop = poll(url, cookies);
    const polled = await slice();
    const pages = await stop();
    const after = await slice();
    // The first round is a warm-up.
    if (i === 0) continue;
    rounds.push({ before, polled, after });
    served += pages;
  }
  await load.stop();
  const ratios = rounds.map(({ before, polled, after }) => (2 * polled.cpuUs) / (before.cpuUs + after.cpuUs));
  const noises = rounds.map(({ before, after }) => after.cpuUs / before.cpuUs);
  const ends = (values: readonly number[]): [number, number] => [Math.min(...values), Math.max(...values)];
  return {
    aloneUs: median(rounds.flatMap(({ before, after }) => [before.cpuUs, after.cpuUs])),
    polledUs: median(rounds.map(({ polled }) => polled.cpuUs)),
    ratio: median(ratios),
    ratios: ends(ratios),
    noise: median(noises),
    noises: ends(noises),
    p99Ratio: median(rounds.map(({ before, polled, after }) => (2 * polled.p99Us) / (before.p99Us + after.p99Us))),
    pagesPerSecond: served / (ROUNDS * (SLICE_MS / 1_000)),
  };
}
