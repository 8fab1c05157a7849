/**
 * `npm run bench -- metering`: the same server with metering off, relaxed, with the default durability, and with the two simpler
 * designs, interleaved. Server and keeper share one core, the load generator has the other.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { domainOf, Installation } from '../../tools/chaos/installation.ts';
import { freePort } from '../../tools/free-port.ts';
import type { LoadReport } from '../metering/load.ts';
import { MODES, type Mode } from '../metering/meters.ts';
import { type BenchOptions, type BenchReport, median, type Workload } from '../workload.ts';

const RECORDS = 10_000;
const CLOCK_TICKS = 100;

export interface MeteringOptions {
  readonly rounds: number;
  readonly durationMs: number;
  readonly connections: readonly number[];
  readonly modes: readonly Mode[];
}

export interface MeteringRow {
  readonly mode: Mode;
  readonly connections: number;
  readonly requestsPerSecond: number;
  /** Median over the rounds of the ratio to metering off in the same round. */
  readonly ratio: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly commitsPerSecond: number;
  readonly writtenBytesPerLookup: number;
  /** Of server and keeper together. */
  readonly cpuUsPerLookup: number;
  readonly keeperCpuUsPerLookup: number;
}

interface Sample {
  readonly rate: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly commits: number;
  readonly written: number;
  readonly cpuUs: number;
  readonly keeperCpuUs: number;
}

/** Keeps a process on one core, where the system has the tool for it. */
function pin(pid: number, core: number): void {
  try {
    execFileSync('taskset', ['-a', '-pc', String(core), String(pid)], { stdio: 'ignore' });
  } catch {
    // The figures are then those of an unpinned process.
  }
}

/** User and system time of a process, in microseconds. */
function cpuUs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / CLOCK_TICKS;
}

const writtenBytes = (pid: number): number =>
  Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0);

class Subject {
  readonly mode: Mode;
  readonly installation = new Installation({ workers: 1, durability: 'full', records: RECORDS });
  readonly #key = this.installation.createAccount('bench', 1_000_000_000_000);
  #server: ChildProcess | undefined;
  #port = 0;
  #keeper = 0;

  constructor(mode: Mode) {
    this.mode = mode;
  }

  async start(): Promise<void> {
    this.#port = await freePort();
    const program = new URL('../metering/server.ts', import.meta.url).pathname;
    const server = fork(program, [String(this.#port), this.mode, join(this.installation.dir, 'config.json')]);
    this.#server = server;
    const [message] = (await once(server, 'message')) as [{ keeper: number }];
    this.#keeper = message.keeper;
    pin(server.pid!, 0);
    pin(this.#keeper, 0);
  }

  async measure(load: ChildProcess, connections: number, durationMs: number): Promise<Sample> {
    const before = await this.#counts();
    const domains = Array.from({ length: 1000 }, (_, i) => domainOf((i * 37) % RECORDS));
    load.send({ port: this.#port, key: this.#key, domains, connections, durationMs });
    const [report] = (await once(load, 'message')) as [LoadReport];
    if (report.others > 0 || report.answered === 0) throw new Error(`${this.mode}: ${JSON.stringify(report)}`);
    const after = await this.#counts();
    const seconds = report.elapsedMs / 1000;
    return {
      rate: report.answered / seconds,
      p50Us: report.p50Us,
      p99Us: report.p99Us,
      commits: (after.commits - before.commits) / seconds,
      written: (after.written - before.written) / report.answered,
      cpuUs: (after.server - before.server + after.keeper - before.keeper) / report.answered,
      keeperCpuUs: (after.keeper - before.keeper) / report.answered,
    };
  }

  async #counts(): Promise<{ commits: number; written: number; server: number; keeper: number }> {
    const server = this.#server!;
    server.send('health');
    const [{ commits }] = (await once(server, 'message')) as [{ commits: number }];
    const pid = server.pid!;
    return {
      commits,
      written: writtenBytes(pid) + writtenBytes(this.#keeper),
      server: cpuUs(pid),
      keeper: cpuUs(this.#keeper),
    };
  }

  async stop(): Promise<void> {
    if (this.#server?.connected === true) {
      const ended = once(this.#server, 'exit');
      this.#server.disconnect();
      await ended;
    }
    await this.installation.remove();
  }
}

/** Measures all modes in turn, again and again, so that a slow minute of the machine falls on all of them. */
export async function measureMetering(options: MeteringOptions): Promise<MeteringRow[]> {
  const load = fork(new URL('../metering/load.ts', import.meta.url).pathname);
  pin(load.pid!, 1);
  const subjects = options.modes.map((mode) => new Subject(mode));
  const rows: MeteringRow[] = [];
  try {
    for (const subject of subjects) {
      await subject.start();
      await subject.measure(load, 16, 500);
    }
    for (const connections of options.connections) {
      const samples = new Map<Mode, Sample[]>(options.modes.map((mode) => [mode, []]));
      for (let round = 0; round < options.rounds; round += 1) {
        for (const subject of subjects) {
          samples.get(subject.mode)!.push(await subject.measure(load, connections, options.durationMs));
        }
      }
      for (const [mode, own] of samples) rows.push(summarize(mode, connections, own, samples.get('off') ?? own));
    }
  } finally {
    load.disconnect();
    for (const subject of subjects) await subject.stop();
  }
  return rows;
}

function summarize(mode: Mode, connections: number, own: readonly Sample[], off: readonly Sample[]): MeteringRow {
  const of = (pick: (sample: Sample) => number): number => median(own.map(pick));
  const round = (value: number, digits = 0): number => Number(value.toFixed(digits));
  return {
    mode,
    connections,
    requestsPerSecond: round(of((sample) => sample.rate)),
    ratio: round(median(own.map((sample, i) => sample.rate / off[i]!.rate)), 3),
    p50Us: of((sample) => sample.p50Us),
    p99Us: of((sample) => sample.p99Us),
    commitsPerSecond: round(of((sample) => sample.commits)),
    writtenBytesPerLookup: round(of((sample) => sample.written)),
    cpuUsPerLookup: round(
      of((sample) => sample.cpuUs),
      1,
    ),
    keeperCpuUsPerLookup: round(
      of((sample) => sample.keeperCpuUs),
      1,
    ),
  };
}

export const workload: Workload = {
  name: 'metering',
  description: 'the server with metering off, relaxed, full, and two simpler designs, at 1, 64 and 256 connections',
  async run({ log }: BenchOptions): Promise<BenchReport> {
    log('five servers in turn, three times two seconds at 1, 64 and 256 connections');
    const rows = await measureMetering({ rounds: 3, durationMs: 1_500, connections: [1, 64, 256], modes: MODES });
    return {
      rows: rows.map((row) => ({ ...row })),
      notes: [
        'One worker and its keeper share core 0; the load generator has core 1. Medians of interleaved rounds.',
        'off charges nothing. relaxed: shared counters only. full: the default, on disk before the answer leaves.',
        'turn: one SQLite transaction for each event-loop turn, in the worker. request: one for each request.',
        'cpuUsPerLookup counts user and system time of worker and keeper; ratio is to off in the same round.',
      ],
    };
  },
};
