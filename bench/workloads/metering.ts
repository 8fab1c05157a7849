/**
 * `npm run bench -- metering`: the same server without metering, with the program's metering, and with one transaction per request, interleaved.
 * Server and ledger writer share one core, the load generator has the other.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { ForkedServer, LoadGenerator, processCpuUs } from '../forked-servers.ts';
import { MODES, type Mode } from '../metering/meters.ts';
import { type BenchOptions, type BenchReport, median, type Workload } from '../workload.ts';

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
  /** Processor time per request without metering, divided by that of this mode in the same round: median, lowest and highest. */
  readonly cpuRatio: number;
  readonly cpuRatioLeast: number;
  readonly cpuRatioMost: number;
  /** Requests per second, divided by those without metering in the same round: median. */
  readonly rateRatio: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly commitsPerSecond: number;
  readonly writtenBytesPerLookup: number;
  /** Processor time of server and ledger writer together. */
  readonly cpuUsPerLookup: number;
  readonly writerCpuUsPerLookup: number;
}

interface Sample {
  readonly rate: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly commits: number;
  readonly written: number;
  readonly cpuUs: number;
  readonly writerCpuUs: number;
}

/** Pins a process to one core, if the system has `taskset`. */
function pin(pid: number, core: number): void {
  try {
    execFileSync('taskset', ['-a', '-pc', String(core), String(pid)], { stdio: 'ignore' });
  } catch {
    // The figures are then those of an unpinned process.
  }
}

const writtenBytes = (pid: number): number =>
  Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0);

class Subject extends ForkedServer<Mode> {
  #ledgerWriter = 0;

  constructor(mode: Mode) {
    super(new URL('../metering/server.ts', import.meta.url), mode);
  }

  async startPinned(): Promise<void> {
    this.#ledgerWriter = (await this.start<{ ledgerWriter: number }>()).ledgerWriter;
    pin(this.pid, 0);
    pin(this.#ledgerWriter, 0);
  }

  async measure(load: LoadGenerator, connections: number, durationMs: number): Promise<Sample> {
    const before = await this.#counts();
    const { answered, elapsedMs, p50Us, p99Us } = await load.run(this.target, connections, {
      requests: Number.POSITIVE_INFINITY,
      durationMs,
    });
    const after = await this.#counts();
    const seconds = elapsedMs / 1000;
    return {
      rate: answered / seconds,
      p50Us,
      p99Us,
      commits: (after.commits - before.commits) / seconds,
      written: (after.written - before.written) / answered,
      cpuUs: (after.server - before.server + after.ledgerWriter - before.ledgerWriter) / answered,
      writerCpuUs: (after.ledgerWriter - before.ledgerWriter) / answered,
    };
  }

  async #counts(): Promise<{ commits: number; written: number; server: number; ledgerWriter: number }> {
    const { commits } = await this.ask<{ commits: number }>('health');
    return {
      commits,
      written: writtenBytes(this.pid) + writtenBytes(this.#ledgerWriter),
      server: processCpuUs(this.pid),
      ledgerWriter: processCpuUs(this.#ledgerWriter),
    };
  }
}

/** Measures all modes in turn in each round, so that a slow minute of the machine affects all of them. */
async function measureMetering(options: MeteringOptions): Promise<MeteringRow[]> {
  const load = new LoadGenerator();
  pin(load.pid, 1);
  const subjects = options.modes.map((mode) => new Subject(mode));
  const rows: MeteringRow[] = [];
  try {
    for (const subject of subjects) {
      await subject.startPinned();
      await subject.measure(load, 16, 500);
    }
    for (const connections of options.connections) {
      const samples = new Map<Mode, Sample[]>(options.modes.map((mode) => [mode, []]));
      for (let round = 0; round < options.rounds; round += 1) {
        for (const subject of subjects) {
          samples.get(subject.mode)!.push(await subject.measure(load, connections, options.durationMs));
        }
      }
      for (const [mode, taken] of samples) rows.push(summarize(mode, connections, taken, samples.get('off') ?? taken));
    }
  } finally {
    await load.stop();
    for (const subject of subjects) await subject.stop();
  }
  return rows;
}

function summarize(mode: Mode, connections: number, samples: readonly Sample[], off: readonly Sample[]): MeteringRow {
  const of = (pick: (sample: Sample) => number): number => median(samples.map(pick));
  const round = (value: number, digits = 0): number => Number(value.toFixed(digits));
  const cpuRatios = samples.map((sample, i) => off[i]!.cpuUs / sample.cpuUs);
  return {
    mode,
    connections,
    requestsPerSecond: round(of((sample) => sample.rate)),
    cpuRatio: round(median(cpuRatios), 3),
    cpuRatioLeast: round(Math.min(...cpuRatios), 3),
    cpuRatioMost: round(Math.max(...cpuRatios), 3),
    rateRatio: round(median(samples.map((sample, i) => sample.rate / off[i]!.rate)), 3),
    p50Us: of((sample) => sample.p50Us),
    p99Us: of((sample) => sample.p99Us),
    commitsPerSecond: round(of((sample) => sample.commits)),
    writtenBytesPerLookup: round(of((sample) => sample.written)),
    cpuUsPerLookup: round(
      of((sample) => sample.cpuUs),
      1,
    ),
    writerCpuUsPerLookup: round(
      of((sample) => sample.writerCpuUs),
      1,
    ),
  };
}

export const workload: Workload = {
  name: 'metering',
  description: 'the server with metering off, charged, and one transaction a request, at 1, 64 and 256 connections',
  recordsMax: 0,
  async run({ log }: BenchOptions): Promise<BenchReport> {
    log('three servers in turn, nine times a second at 1, 64 and 256 connections');
    const rows = await measureMetering({ rounds: 9, durationMs: 1_000, connections: [1, 64, 256], modes: MODES });
    return {
      rows: rows.map((row) => ({ ...row })),
      notes: [
        'One worker and its ledger writer share core 0; the load generator has core 1. Medians of nine interleaved rounds.',
        'off charges nothing. charged: reserved ahead, durable before it is spent. request: one SQLite transaction for each.',
        'cpuUsPerLookup counts user and system time of worker and ledger writer.',
        'cpuRatio is the processor time a request with metering off over that of the mode, in the same round: 1 is no cost.',
      ],
    };
  },
};
