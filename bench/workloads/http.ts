/**
 * `npm run bench -- http`: what each step of a request costs, as a ratio to the transport answering 600 fixed bytes. Modes are
 * interleaved; the load generator is a process of its own. The generator is a JavaScript program too and may be the slower side:
 * CPU time of the server for each request, which does not depend on it, stands beside the rate.
 */
import { memoryMb } from '../../tools/chaos/leftovers.ts';
import { cpuUsOf, createBenchInstallation, ForkedServer, LoadGenerator } from '../forked.ts';
import { HTTP_MODES, type HttpMode } from '../http/server.ts';
import { type BenchReport, median, type Workload } from '../workload.ts';

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

class Subject extends ForkedServer<HttpMode> {
  constructor(mode: HttpMode) {
    super(new URL('../http/server.ts', import.meta.url), mode);
  }

  async measure(load: LoadGenerator, connections: number, durationMs: number): Promise<Sample> {
    const before = await this.#cpuUs();
    const { answered, elapsedMs, p50Us, p99Us } = await load.run(this, connections, durationMs);
    const cpuUs = ((await this.#cpuUs()) - before) / answered;
    return { rate: answered / (elapsedMs / 1_000), cpuUs, p50Us, p99Us };
  }

  async #cpuUs(): Promise<number> {
    const { user, system } = await this.ask<NodeJS.CpuUsage>('cpu');
    return user + system;
  }
}

/** Measures all modes in turn, again and again, so that a slow minute of the machine falls on all of them. */
async function measureHttp(options: HttpOptions): Promise<HttpRow[]> {
  const load = new LoadGenerator();
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
    await load.stop();
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

interface WorkersRow {
  readonly workers: number;
  readonly requestsPerSecond: number;
  readonly cpuUsPerRequest: number;
  readonly memoryMb: number;
}

/** The program as it is served, with so many worker processes: CPU time of the workers for each request, and their memory. */
async function measureWorkers(workers: number, durationMs: number): Promise<WorkersRow> {
  const { installation, key } = await createBenchInstallation(workers);
  const load = new LoadGenerator();
  try {
    await installation.start();
    const pids = installation.workers;
    const cpu = (): number => pids.reduce((sum, pid) => sum + cpuUsOf(pid), 0);
    const target = { port: installation.port, key };
    await load.run(target, 64, 500);
    const before = cpu();
    const { answered, elapsedMs } = await load.run(target, 64, durationMs);
    return {
      workers,
      requestsPerSecond: Math.round(answered / (elapsedMs / 1_000)),
      cpuUsPerRequest: Number(((cpu() - before) / answered).toFixed(1)),
      memoryMb: memoryMb(pids),
    };
  } finally {
    await load.stop();
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
      `pagegate serve --workers ${workers}: ${requestsPerSecond} requests a second, ${cpuUsPerRequest} µs of worker CPU a request, ${size} MB of worker memory (shared pages counted once)`,
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
