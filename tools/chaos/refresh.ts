/**
 * `make chaos-refresh`: refreshes of a served index are killed at random moments while clients send requests. The server must not be affected,
 * each next refresh must succeed, and prune must leave no litter.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openIndex } from '../../src/index/read.ts';
import { listGenerations, listLitter } from '../../src/refresh/store.ts';
import { createInstallation, domainOf, type Installation, PAGEGATE, pageOf } from '../installation.ts';
import { readOptions, wholeNumber } from '../options.ts';
import { Random } from '../random.ts';
import { type Served, withClients } from './refresh-clients.ts';

const USAGE = 'Usage: node tools/chaos/refresh.ts [--kills 100] [--seed 1] [--workers 2] [--domains 2000]';

export interface RefreshChaosOptions {
  /** Number of refreshes to kill while they run. */
  readonly kills: number;
  readonly seed: number;
  readonly workers: number;
  readonly domains: number;
  readonly onRound?: (killed: number) => void;
}

export interface RefreshChaosReport {
  /** Number of refreshes that were started to be killed; some ended before. */
  readonly rounds: number;
  /** Number of refreshes that were killed while they ran. */
  readonly killed: number;
  /** How many of these had already switched. */
  readonly killedAfterSwitch: number;
  readonly refreshMs: number;
  readonly requests: number;
  /** Number of requests without a correct answer from one of the two possible revisions. */
  readonly wrong: number;
  /** Descriptions of the first of these. */
  readonly wrongExamples: readonly string[];
  /** Descriptions of what else went wrong. */
  readonly failures: readonly string[];
}

/** Returns the revision of the current generation. @throws Error if it is not a valid index */
function servedRevision(place: Installation): number {
  const index = openIndex(join(place.store, 'current/index.pgx'));
  try {
    const { pageTypes } = index.decode(index.find(domainOf(1)));
    const { revision } = index.info;
    if (pageTypes[0]?.url !== pageOf(domainOf(1), revision)) throw new Error(`current is not revision ${revision}`);
    return revision;
  } finally {
    index.close();
  }
}

/** Starts a refresh and kills it after a time. If it ends before, returns how long it took, in milliseconds. */
async function killOne(place: Installation, drop: string, afterMs: number): Promise<number | 'killed'> {
  const startedMs = performance.now();
  const child = spawn(PAGEGATE, ['refresh', drop, '--config', place.configFile], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  await Promise.race([sleep(afterMs), ended]);
  const tookMs = performance.now() - startedMs;
  const wasRunning = child.exitCode === null && child.signalCode === null;
  child.kill('SIGKILL');
  await ended;
  return wasRunning && child.signalCode === 'SIGKILL' ? 'killed' : tookMs;
}

/** Runs the rounds. @throws Error if the run cannot be set up, or if the current generation is not a valid index */
export async function runRefreshChaos(options: RefreshChaosOptions): Promise<RefreshChaosReport> {
  const { domains, workers } = options;
  const place = createInstallation();
  const clients = { account: 'chaos', workers, domains, isTls: false };
  return await withClients(place, clients, (served) => runRounds(place, served, options));
}

async function runRounds(
  place: Installation,
  served: Served,
  options: RefreshChaosOptions,
): Promise<RefreshChaosReport> {
  const { server, clients } = served;
  const { domains, kills, seed, onRound } = options;
  const random = new Random(seed);
  const failures: string[] = [];
  let { refreshMs } = served;
  let rounds = 0;
  let killed = 0;
  let killedAfterSwitch = 0;
  const running = clients.run(4);
  const roundsMax = 10 * kills;
  while (killed < kills && rounds < roundsMax) {
    rounds += 1;
    const round = rounds;
    onRound?.(killed);
    const revision = round + 1;
    const drop = place.drop(`r${revision}`, { revision, domains });
    clients.allowed = [revision - 1, revision];
    const end = await killOne(place, drop, random.below(Math.ceil(refreshMs)));
    if (end === 'killed') {
      killed += 1;
      if (servedRevision(place) === revision) killedAfterSwitch += 1;
    } else refreshMs = end;
    const roundStarted = performance.now();
    const next = await place.pagegate('refresh', drop, '--keep', '2');
    if (next.json.outcome === 'activated' && next.json.reused === false) refreshMs = performance.now() - roundStarted;
    if (next.code !== 0) failures.push(`round ${round}: the next refresh: ${next.stderr}`);
    clients.allowed = [revision];
    const prune = await place.pagegate('prune', '--keep', '2');
    if (prune.code !== 0) failures.push(`round ${round}: prune: ${prune.stderr}`);
    const litter = listLitter(place.store);
    const kept = listGenerations(place.store).length;
    if (litter.length > 0 || kept > 2) failures.push(`round ${round}: ${kept} generations, litter ${litter}`);
    if (servedRevision(place) !== revision) failures.push(`round ${round}: revision ${revision} is not served`);
  }
  clients.stop();
  await running;
  const end = await server.stop();
  if (end !== '') failures.push(end);
  const { requests, wrong, examples } = clients;
  if (killed < kills) failures.push(`only ${killed} of ${rounds} refreshes were still running when they were ended`);
  if (clients.answered === 0) failures.push('nothing was served');
  return { rounds, killed, killedAfterSwitch, refreshMs, requests, wrong, wrongExamples: examples, failures };
}

async function main(): Promise<void> {
  const defaults = { kills: '100', seed: '1', workers: '2', domains: '2000' };
  const { values } = await readOptions(USAGE, defaults);
  const options = {
    kills: wholeNumber(values, 'kills', 1),
    seed: wholeNumber(values, 'seed', 0),
    workers: wholeNumber(values, 'workers', 1),
    domains: wholeNumber(values, 'domains', 2),
  };
  const onRound = (killed: number): void => {
    if (process.stderr.isTTY) process.stderr.write(`\r${killed} of ${options.kills} kills`);
  };
  const report = await runRefreshChaos({ ...options, onRound });
  process.stdout.write(`\n${JSON.stringify(report, null, 2)}\n`);
  if (report.wrong > 0 || report.failures.length > 0) process.exitCode = 1;
}

if (import.meta.main) await main();
