/**
 * `npm run bench -- http`: what each step of a request costs, as a ratio to the transport answering 600 fixed bytes. Modes are
 * interleaved; the load generator is a process of its own. The generator is a JavaScript program too and may be the slower side:
 * CPU time of the server for each request, which does not depend on it, stands beside the rate.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { domainOf, Installation } from '../../tools/chaos/installation.ts';
import { freePort } from '../../tools/free-port.ts';
import { HTTP_MODES, type HttpMode } from '../http/server.ts';
import type { LoadReport } from '../metering/load.ts';
import { type BenchReport, median, type Workload } from '../workload.ts';

const RECORDS = 10_000;
const DOMAINS = 1_000;

export interface HttpOptions {
  readonly rounds: number;
  readonly durationMs: number;
  readonly connections: readonly number[];
  readonly modes: readonly HttpMode[];
}

export interface HttpRow {
  readonly mode: HttpMode;
  readonly connections: number;
  readonly requestsPerSecond: number;
  /** Median over the rounds of the ratio to `fixed` in the same round. */
  readonly rateRatio: number;
  readonly cpuUsPerRequest: number;
  /** Of `fixed`'s CPU time a request to this mode's: the rate ratio of a server that has its core to itself. */
  readonly cpuRatio: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

interface Sample {
  readonly rate: number;
  readonly cpuUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

class Subject {
  readonly mode: HttpMode;
  readonly #installation = new Installation({ workers: 1, durability: 'full', records: RECORDS });
  readonly #key = this.#installation.createAccount('bench', 1_000_000_000_000);
  #server: ChildProcess | undefined;
  #port = 0;

  constructor(mode: HttpMode) {
    this.mode = mode;
  }

  async start(): Promise<void> {
    this.#port = await freePort();
    const program = new URL('../http/server.ts', import.meta.url).pathname;
    this.#server = fork(program, [String(this.#port), this.mode, join(this.#installation.dir, 'config.json')]);
    await once(this.#server, 'message');
  }

  async measure(load: ChildProcess, connections: number, durationMs: number): Promise<Sample> {
    const before = await this.#cpuUs();
    const domains = Array.from({ length: DOMAINS }, (_, i) => domainOf((i * 37) % RECORDS));
    load.send({ port: this.#port, key: this.#key, domains, connections, durationMs });
    const [report] = (await once(load, 'message')) as [LoadReport];
    if (report.others > 0 || report.answered === 0) throw new Error(`${this.mode}: ${JSON.stringify(report)}`);
    const cpuUs = (await this.#cpuUs()) - before;
    const rate = report.answered / (report.elapsedMs / 1_000);
    return { rate, cpuUs: cpuUs / report.answered, p50Us: report.p50Us, p99Us: report.p99Us };
  }

  async #cpuUs(): Promise<number> {
    this.#server!.send('cpu');
    const [usage] = (await once(this.#server!, 'message')) as [NodeJS.CpuUsage];
    return usage.user + usage.system;
  }

  async stop(): Promise<void> {
    if (this.#server?.connected === true) {
      const ended = once(this.#server, 'exit');
      this.#server.disconnect();
      await ended;
    }
    await this.#installation.remove();
  }
}

/** Measures all modes in turn, again and again, so that a slow minute of the machine falls on all of them. */
export async function measureHttp(options: HttpOptions): Promise<HttpRow[]> {
  const load = fork(new URL('../metering/load.ts', import.meta.url).pathname);
  const subjects = options.modes.map((mode) => new Subject(mode));
  const rows: HttpRow[] = [];
  try {
    for (const subject of subjects) {
      await subject.start();
      await subject.measure(load, 16, 300);
    }
    for (const connections of options.connections) {
      const samples = new Map<HttpMode, Sample[]>(options.modes.map((mode) => [mode, []]));
      for (let round = 0; round < options.rounds; round += 1) {
        for (const subject of subjects) {
          samples.get(subject.mode)!.push(await subject.measure(load, connections, options.durationMs));
        }
      }
      const fixed = samples.get('fixed')!;
      for (const [mode, own] of samples) rows.push(summarize(mode, connections, own, fixed));
    }
  } finally {
    load.disconnect();
    for (const subject of subjects) await subject.stop();
  }
  return rows;
}

function summarize(mode: HttpMode, connections: number, own: readonly Sample[], fixed: readonly Sample[]): HttpRow {
  const of = (pick: (sample: Sample) => number): number => median(own.map(pick));
  return {
    mode,
    connections,
    requestsPerSecond: Math.round(of((sample) => sample.rate)),
    rateRatio: Number(median(own.map((sample, i) => sample.rate / fixed[i]!.rate)).toFixed(2)),
    cpuUsPerRequest: Number(of((sample) => sample.cpuUs).toFixed(1)),
    cpuRatio: Number(median(own.map((sample, i) => fixed[i]!.cpuUs / sample.cpuUs)).toFixed(2)),
    p50Us: of((sample) => sample.p50Us),
    p99Us: of((sample) => sample.p99Us),
  };
}

const CLOCK_TICKS = 100;

/** User and system time of a process so far, in microseconds. */
function cpuUsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / CLOCK_TICKS;
}

/** Memory of processes in megabytes, what they share counted once among those that share it. */
function memoryMb(pids: readonly number[]): number {
  const sizes = pids.map((pid) =>
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0),
  );
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / 1_024);
}

interface WorkersRow {
  readonly workers: number;
  readonly requestsPerSecond: number;
  readonly cpuUsPerRequest: number;
  readonly memoryMb: number;
}

/** The program as it is served, with so many worker processes: CPU time of the workers for each request, and their memory. */
async function measureWorkers(workers: number, durationMs: number): Promise<WorkersRow> {
  const installation = new Installation({ workers, durability: 'relaxed', records: RECORDS });
  const load = fork(new URL('../metering/load.ts', import.meta.url).pathname);
  try {
    const key = installation.createAccount('bench', 1_000_000_000_000);
    await installation.start();
    const pids = installation.workers;
    const cpu = (): number => pids.reduce((sum, pid) => sum + cpuUsOf(pid), 0);
    const domains = Array.from({ length: DOMAINS }, (_, i) => domainOf((i * 37) % RECORDS));
    const job = { port: installation.port, key, domains, connections: 64 };
    load.send({ ...job, durationMs: 500 });
    await once(load, 'message');
    const before = cpu();
    load.send({ ...job, durationMs });
    const [report] = (await once(load, 'message')) as [LoadReport];
    return {
      workers,
      requestsPerSecond: Math.round(report.answered / (report.elapsedMs / 1_000)),
      cpuUsPerRequest: Number(((cpu() - before) / report.answered).toFixed(1)),
      memoryMb: memoryMb(pids),
    };
  } finally {
    load.disconnect();
    await installation.remove();
  }
}

async function run(options: { readonly log: (line: string) => void }): Promise<BenchReport> {
  options.log('the steps of a request, 3 rounds of 1 s, 1 and 64 connections');
  const rows = await measureHttp({ rounds: 3, durationMs: 1_000, connections: [1, 64], modes: HTTP_MODES });
  options.log('the program with 1 and 2 workers');
  const served = [await measureWorkers(1, 3_000), await measureWorkers(2, 3_000)];
  const perWorker = served.map(
    ({ workers, requestsPerSecond, cpuUsPerRequest, memoryMb: size }) =>
      `pagegate serve --workers ${workers} --durability relaxed: ${requestsPerSecond} requests a second, ${cpuUsPerRequest} µs of worker CPU a request, ${size} MB of worker memory (shared pages counted once)`,
  );
  return {
    rows: rows.map((row) => ({ ...row })),
    notes: [
      'Ratios are to the transport answering 600 fixed bytes in the same round; rates depend on the load generator, which shares the cores, CPU time a request does not.',
      ...perWorker,
    ],
  };
}

export const workload: Workload = {
  name: 'http',
  description: 'what each step of a request costs, beside the transport answering fixed bytes',
  run,
};
