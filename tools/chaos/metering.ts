/**
 * `make chaos`: under load, processes of a real server are killed and stopped at random moments, its disk is full or slow, and the power is
 * lost. Afterwards every 200 that a client has read must be charged. What is charged beyond that is at most the requests in flight, and after a
 * loss of power at most one block.
 */
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/ledger/store/database.ts';
import { blockSize } from '../../src/ledger/writer/block-size.ts';
import { readOptions, wholeNumber } from '../options.ts';
import { Random } from '../random.ts';
import { Client } from './counting-client.ts';
import { commandOf } from './leftovers.ts';
import { afterPowerLoss, takeSnapshot } from './power-loss.ts';
import { ServedInstallation } from './served-installation.ts';

const USAGE = 'Usage: node tools/chaos/metering.ts [--rounds 1000] [--oversell 1000] [--seed N]';

/** The faults that a round can cause. */
export const METERING_FAULTS = [
  'kill worker',
  'kill ledger writer',
  'kill primary',
  'kill all',
  'stop worker',
  'stop ledger writer',
  'fill disk',
  'slow disk',
  'lose power',
] as const;
type Fault = (typeof METERING_FAULTS)[number];
/** Faults that kill processes with connections. No other fault may cost a client its answer. */
const CUTS: ReadonlySet<Fault> = new Set(['kill worker', 'kill primary', 'kill all']);

/** Clients notice a full disk only when the reserved lookups are spent. */
const NOTICED_DEADLINE_MS = 30_000;
const SERVED_DEADLINE_MS = 60_000;
/** Number of ways to lose the power that are tried in a round. */
const POWER_LOSSES = 4;
const LIMIT = 1_000_000_000;
/** Number of concurrent clients. */
const CONNECTIONS = 8;
/** The limit of accounts that get more requests than that. */
const UNITS = 1_000;
/** An upper bound of the rate of an account in this run, in lookups per second. */
const RATE_MAX = 100_000;

export interface MeteringChaosOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly onRound?: (line: string) => void;
}

export interface MeteringChaosReport {
  readonly seed: number;
  readonly rounds: number;
  readonly faults: Readonly<Record<string, number>>;
  /** Number of 200 answers that clients have read. */
  readonly read: number;
  readonly charged: number;
  /** The most lookups that one round charged beyond what was read. */
  readonly worstSurplus: number;
  /** The upper bound for {@link worstSurplus}. */
  readonly bound: number;
  /** Number of losses of power. */
  readonly powerLosses: number;
  /** The most lookups that one loss of power charged beyond what was read. */
  readonly worstPowerSurplus: number;
  /** Number of 503 answers, which charge nothing. */
  readonly unavailable: number;
  /** Descriptions of what went wrong. */
  readonly failures: readonly string[];
}

/** Kills a process and waits until it is gone, so that it cannot be mistaken for its successor afterwards. */
async function kill(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  while (commandOf(pid) !== '') await sleep(1);
}

async function pause(pid: number, forMs: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await sleep(forMs);
  process.kill(pid, 'SIGCONT');
}

interface Scene {
  readonly installation: ServedInstallation;
  readonly random: Random;
  /** The key for requests that check whether the server has recovered. */
  readonly key: string;
  /** The account that is charged in this round. */
  readonly account: string;
  /** Whether a client has been refused by now. */
  readonly isRefused: () => boolean;
  /** Number of 200 answers that clients have read by now. */
  readonly read: () => number;
  readonly onPowerLoss: (surplus: number) => void;
}

/** Causes a fault, and waits until the server has recovered. @throws Error if there is no process for the fault */
async function causeFault(fault: Fault, scene: Scene): Promise<void> {
  const { installation, random, key, isRefused } = scene;
  const { workers, ledgerWriter, primary } = installation;
  const pid = fault.endsWith('worker')
    ? workers[random.below(workers.length)]
    : fault.endsWith('primary')
      ? primary
      : ledgerWriter;
  // A signal to process id 0 would reach this process and its process group.
  if (!pid) throw new Error(`There is no process to ${fault}.`);
  if (fault === 'kill worker' || fault === 'kill ledger writer') await kill(pid);
  else if (fault === 'kill primary' || fault === 'kill all') {
    const all = [primary, ledgerWriter, ...workers].sort(() => random.below(3) - 1);
    for (const one of fault === 'kill all' ? all : [primary]) process.kill(one, 'SIGKILL');
    await installation.ended();
    await installation.start();
  } else if (fault === 'stop worker') await pause(pid, 100 + random.below(400));
  else if (fault === 'stop ledger writer') await pause(pid, 100 + random.below(3_000));
  else if (fault === 'slow disk') await slowDown(installation.ledgerFile, random);
  else if (fault === 'lose power') await losePower(pid, scene);
  else {
    // Makes every write beyond the first page of a file fail, as on a full disk. Only the soft limit is set, so that it can be removed again.
    execFileSync('prlimit', ['--pid', String(pid), '--fsize=4096:']);
    await sleep(200 + random.below(500));
    const deadline = Date.now() + NOTICED_DEADLINE_MS;
    while (!isRefused() && Date.now() < deadline) await sleep(20);
    execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:']);
  }
  await installation.recovered(key);
}

/** Makes commits slow: another connection holds the ledger's lock again and again. */
async function slowDown(file: string, random: Random): Promise<void> {
  const other = openDatabase(file, { mustExist: true });
  try {
    for (let i = 0; i < 5; i += 1) {
      other.exec('BEGIN IMMEDIATE');
      await sleep(random.below(900));
      other.exec('ROLLBACK');
      await sleep(random.below(20));
    }
  } finally {
    other.close();
  }
}

/** Simulates several ways to lose the power at one moment, in copies of the ledger. The server itself continues. */
async function losePower(pid: number, { installation, random, account, read, onPowerLoss }: Scene): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  try {
    await sleep(random.below(100));
    const snapshot = takeSnapshot(installation.ledgerFile);
    // Whatever is spent while the ledger writer is stopped was reserved before.
    const answered = read();
    const spent = await installation.used(account);
    for (let i = 0; i < POWER_LOSSES; i += 1) {
      const used = await afterPowerLoss(
        snapshot,
        installation.root,
        random,
        async (ledger) => (await ledger.view(account)).quota.quota_used,
      );
      if (used < answered) throw new Error(`${answered} read, only ${used} charged after a loss of power`);
      const block = blockSize(RATE_MAX, LIMIT);
      if (used > spent + block) throw new Error(`${spent} charged, ${used} after a loss of power: more than a block`);
      onPowerLoss(used - answered);
    }
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

/** Runs rounds of load with one fault each. Each round is counted on its own account. */
export async function runMeteringChaos(options: MeteringChaosOptions): Promise<MeteringChaosReport> {
  const random = new Random(options.seed);
  const installation = await ServedInstallation.create({ workers: 2 });
  const faults: Record<string, number> = {};
  const failures: string[] = [];
  const sum = { read: 0, charged: 0, worstSurplus: 0, powerLosses: 0, worstPowerSurplus: 0, unavailable: 0 };
  const onPowerLoss = (surplus: number): void => {
    sum.powerLosses += 1;
    sum.worstPowerSurplus = Math.max(sum.worstPowerSurplus, surplus);
  };
  try {
    const probe = await installation.createAccount('probe', LIMIT);
    await installation.start();
    await installation.recovered(probe);
    for (let round = 0; round < options.rounds; round += 1) {
      // The first rounds cause each fault once, so that a short run covers all of them.
      const fault = METERING_FAULTS[round < METERING_FAULTS.length ? round : random.below(METERING_FAULTS.length)]!;
      const name = `round-${round}`;
      const key = await installation.createAccount(name, LIMIT);
      const clients = Array.from({ length: CONNECTIONS }, () => new Client(installation.port, key));
      const running = clients.map((client) => client.run());
      try {
        const isRefused = (): boolean => clients.some((client) => client.count(503) > 0);
        const readSoFar = (): number => clients.reduce((total, client) => total + client.count(200), 0);
        await sleep(50 + random.below(250));
        // On a busy machine the first answer comes later. Only then it is certain that the account's creation was published.
        for (const deadline = Date.now() + SERVED_DEADLINE_MS; readSoFar() === 0 && Date.now() < deadline; )
          await sleep(5);
        const scene = { installation, random, key: probe, account: name, isRefused, read: readSoFar, onPowerLoss };
        await causeFault(fault, scene);
        await sleep(20 + random.below(100));
      } catch (error) {
        failures.push(`round ${round}, ${fault}: ${(error as Error).message}`);
        break;
      } finally {
        for (const client of clients) client.stop();
      }
      await Promise.all(running);
      const count = (pick: (client: Client) => number): number =>
        clients.reduce((total, client) => total + pick(client), 0);
      const read = count((client) => client.count(200));
      const unavailable = count((client) => client.count(503));
      const unanswered = count((client) => client.unanswered);
      const charged = await installation.used(name);
      const left = clients.flatMap((client) => client.remaining);
      if (charged < read) failures.push(`round ${round}, ${fault}: ${read} read, only ${charged} charged`);
      if (charged > read + Math.min(CONNECTIONS, unanswered))
        failures.push(`round ${round}, ${fault}: ${read} read, ${unanswered} unanswered, but ${charged} charged`);
      if (unanswered > 0 && !CUTS.has(fault)) failures.push(`round ${round}, ${fault}: ${unanswered} unanswered`);
      if (unavailable === 0 && fault === 'fill disk') failures.push(`round ${round}, ${fault}: it was not noticed`);
      if (new Set(left).size !== left.length) failures.push(`round ${round}, ${fault}: a unit was given twice`);
      if (read === 0) failures.push(`round ${round}, ${fault}: nothing was served`);
      for (const status of clients.flatMap((client) => [...client.statuses.keys()])) {
        if (status !== 200 && status !== 503) failures.push(`round ${round}, ${fault}: answered ${status}`);
      }
      faults[fault] = (faults[fault] ?? 0) + 1;
      sum.read += read;
      sum.charged += charged;
      sum.unavailable += unavailable;
      sum.worstSurplus = Math.max(sum.worstSurplus, charged - read);
      options.onRound?.(`round ${round}: ${fault}, ${read} read, ${charged} charged, ${unavailable} refused with 503`);
    }
    const end = await installation.stop();
    if (end !== '') failures.push(end);
  } finally {
    await installation.remove();
  }
  return { seed: options.seed, rounds: options.rounds, faults, ...sum, bound: CONNECTIONS, failures };
}

export interface OversellReport {
  readonly times: number;
  readonly failures: readonly string[];
}

/** Sends more requests than an account's limit over eight connections and two workers: exactly the limit must be served, each unit once. */
export async function runOversell(times: number): Promise<OversellReport> {
  const installation = await ServedInstallation.create({ workers: 2 });
  const failures: string[] = [];
  try {
    const probe = await installation.createAccount('probe', LIMIT);
    await installation.start();
    await installation.recovered(probe);
    for (let i = 0; i < times; i += 1) {
      const name = `oversell-${i}`;
      const key = await installation.createAccount(name, UNITS);
      const clients = Array.from({ length: CONNECTIONS }, () => new Client(installation.port, key));
      const each = Math.ceil((UNITS * 1.5) / clients.length);
      await Promise.all(clients.map((client) => client.run(each)));
      const served = clients.reduce((total, client) => total + client.count(200), 0);
      const refused = clients.reduce((total, client) => total + client.count(403), 0);
      const left = clients.flatMap((client) => client.remaining).sort((a, b) => a - b);
      if (served !== UNITS) failures.push(`${name}: ${served} served`);
      if (served + refused !== each * clients.length) failures.push(`${name}: ${served} served, ${refused} refused`);
      if (left.some((value, at) => value !== at)) failures.push(`${name}: the units left are not each told once`);
      const used = await installation.used(name);
      if (used !== UNITS) failures.push(`${name}: ${used} charged`);
    }
    const end = await installation.stop();
    if (end !== '') failures.push(end);
  } finally {
    await installation.remove();
  }
  return { times, failures };
}

async function main(): Promise<void> {
  const defaults = { rounds: '1000', oversell: '1000', seed: String(Date.now() % 1_000_000) };
  const { values } = await readOptions(USAGE, defaults);
  const rounds = wholeNumber(values, 'rounds', 1);
  const times = wholeNumber(values, 'oversell', 0);
  const seed = wholeNumber(values, 'seed', 0);
  const onRound = (line: string): void => void process.stdout.write(`${line}\n`);
  const chaos = await runMeteringChaos({ rounds, seed, onRound });
  const oversell = await runOversell(times);
  const report = { chaos, oversell };
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  if (chaos.failures.length + oversell.failures.length > 0) process.exitCode = 1;
}

if (import.meta.main) await main();
