/**
 * `make chaos`: processes of a real server are killed, stopped and starved at random moments under load. Afterwards every 200 that
 * a client has read must be charged, and what is charged beyond that may be at most the requests that were in flight.
 *
 *   node tools/chaos/metering.ts [--rounds 200] [--oversell 50] [--seed N] [--durability full] [--json FILE]
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client, Installation } from './installation.ts';

/** What is done to the server in a round. */
export const DEEDS = ['kill worker', 'kill keeper', 'kill primary', 'stop worker', 'stop keeper', 'fill disk'] as const;
type Deed = (typeof DEEDS)[number];

export interface ChaosOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly durability: 'full' | 'relaxed';
  readonly connections?: number;
  readonly onRound?: (line: string) => void;
}

export interface ChaosReport {
  readonly seed: number;
  readonly rounds: number;
  readonly deeds: Readonly<Record<string, number>>;
  /** Answers 200 that clients have read. */
  readonly read: number;
  readonly charged: number;
  /** The most that one round charged without being read, and the bound it must keep. */
  readonly worstSurplus: number;
  readonly bound: number;
  /** Answers 503, which charge nothing. */
  readonly unavailable: number;
  /** In words; empty when all is well. */
  readonly failures: readonly string[];
}

function createRandom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const signal = (pid: number, name: NodeJS.Signals): void => {
  if (pid > 0) process.kill(pid, name);
};

async function pause(pid: number, forMs: number): Promise<void> {
  if (pid === 0) return;
  signal(pid, 'SIGSTOP');
  await sleep(forMs);
  signal(pid, 'SIGCONT');
}

/** Does it, and waits until the server is whole again. */
async function act(
  installation: Installation,
  deed: Deed,
  random: (below: number) => number,
  key: string,
): Promise<void> {
  const { workers, keeper } = installation;
  const worker = workers[random(Math.max(1, workers.length))] ?? 0;
  if (deed === 'kill worker') signal(worker, 'SIGKILL');
  else if (deed === 'kill keeper') signal(keeper, 'SIGKILL');
  else if (deed === 'kill primary') {
    signal(installation.primary, 'SIGKILL');
    await installation.ended();
    await installation.start();
  } else if (deed === 'stop worker') await pause(worker, 100 + random(400));
  else if (deed === 'stop keeper') await pause(keeper, 100 + random(3_000));
  else if (keeper !== 0) {
    // Any write beyond the first page of a file fails, as on a full disk; only the soft limit, so that it can be lifted.
    execFileSync('prlimit', ['--pid', String(keeper), '--fsize=4096:']);
    await sleep(200 + random(500));
    execFileSync('prlimit', ['--pid', String(keeper), '--fsize=unlimited:']);
  }
  await installation.recovered(key);
}

/** Rounds of load with one deed each. Every round is counted on its own account. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const random = createRandom(options.seed);
  const connections = options.connections ?? 8;
  const installation = new Installation({ workers: 2, durability: options.durability });
  const deeds: Record<string, number> = {};
  const failures: string[] = [];
  const sum = { read: 0, charged: 0, unavailable: 0, worst: 0 };
  try {
    const probe = installation.createAccount('probe', 1_000_000_000);
    await installation.start();
    await installation.recovered(probe);
    for (let round = 0; round < options.rounds; round += 1) {
      // The first rounds do each deed once, so that a short run has seen them all.
      const deed = DEEDS[round < DEEDS.length ? round : random(DEEDS.length)]!;
      const name = `round-${round}`;
      const key = installation.createAccount(name, 1_000_000_000);
      const clients = Array.from({ length: connections }, () => new Client(installation.port, key));
      const running = clients.map((client) => client.run());
      await sleep(50 + random(250));
      await act(installation, deed, random, probe);
      await sleep(20 + random(100));
      for (const client of clients) client.stop();
      await Promise.all(running);
      const count = (pick: (client: Client) => number): number =>
        clients.reduce((total, client) => total + pick(client), 0);
      const read = count((client) => client.count(200));
      const unavailable = count((client) => client.count(503));
      const charged = installation.used(name);
      const left = clients.flatMap((client) => client.remaining);
      if (charged < read) failures.push(`round ${round}, ${deed}: ${read} read, only ${charged} charged`);
      if (charged > read + connections) failures.push(`round ${round}, ${deed}: ${read} read, but ${charged} charged`);
      if (new Set(left).size !== left.length) failures.push(`round ${round}, ${deed}: a unit was given twice`);
      if (read === 0) failures.push(`round ${round}, ${deed}: nothing was served`);
      for (const status of clients.flatMap((client) => [...client.statuses.keys()])) {
        if (status !== 200 && status !== 503) failures.push(`round ${round}, ${deed}: answered ${status}`);
      }
      deeds[deed] = (deeds[deed] ?? 0) + 1;
      sum.read += read;
      sum.charged += charged;
      sum.unavailable += unavailable;
      sum.worst = Math.max(sum.worst, charged - read);
      options.onRound?.(`round ${round}: ${deed}, ${read} read, ${charged} charged, ${unavailable} refused with 503`);
    }
  } finally {
    await installation.remove();
  }
  return {
    seed: options.seed,
    rounds: options.rounds,
    deeds,
    read: sum.read,
    charged: sum.charged,
    unavailable: sum.unavailable,
    worstSurplus: sum.worst,
    bound: connections,
    failures,
  };
}

export interface OversellReport {
  readonly times: number;
  readonly failures: readonly string[];
}

/** More requests than units over eight connections and two workers: exactly the units are served, each once. */
export async function runOversell(options: {
  readonly times: number;
  readonly durability: 'full' | 'relaxed';
  readonly units?: number;
}): Promise<OversellReport> {
  const units = options.units ?? 1_000;
  const installation = new Installation({ workers: 2, durability: options.durability });
  const failures: string[] = [];
  try {
    const probe = installation.createAccount('probe', 1_000_000_000);
    await installation.start();
    await installation.recovered(probe);
    for (let i = 0; i < options.times; i += 1) {
      const name = `oversell-${i}`;
      const key = installation.createAccount(name, units);
      const clients = Array.from({ length: 8 }, () => new Client(installation.port, key));
      const each = Math.ceil((units * 1.5) / clients.length);
      await Promise.all(clients.map((client) => client.run(each)));
      const served = clients.reduce((total, client) => total + client.count(200), 0);
      const refused = clients.reduce((total, client) => total + client.count(403), 0);
      const left = clients.flatMap((client) => client.remaining).sort((a, b) => a - b);
      if (served !== units) failures.push(`${name}: ${served} served`);
      if (served + refused !== each * clients.length) failures.push(`${name}: ${served} served, ${refused} refused`);
      if (left.some((value, at) => value !== at)) failures.push(`${name}: the units left are not each told once`);
      if (installation.used(name) !== units) failures.push(`${name}: ${installation.used(name)} charged`);
    }
  } finally {
    await installation.remove();
  }
  return { times: options.times, failures };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '200' },
      oversell: { type: 'string', default: '50' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      durability: { type: 'string', default: 'full' },
      json: { type: 'string' },
    },
  });
  const durability = values.durability === 'relaxed' ? 'relaxed' : 'full';
  const chaos = await runChaos({
    rounds: Number(values.rounds),
    seed: Number(values.seed),
    durability,
    onRound: (line) => process.stdout.write(`${line}\n`),
  });
  const oversell = await runOversell({ times: Number(values.oversell), durability });
  const report = { durability, chaos, oversell };
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(report));
  if (chaos.failures.length + oversell.failures.length > 0) process.exitCode = 1;
}

if (import.meta.main) await main();
