/** The processes of the server benches: one server for each mode, and the load generator that asks them all. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { ServedInstallation } from '../tools/chaos/served-installation.ts';
import { freePort } from '../tools/free-port.ts';
import { domainOf } from '../tools/installation.ts';
import type { LoadReport } from './load.ts';

const RECORDS = 10_000;
const CLOCK_TICKS = 100;
/** Records that are asked for, scattered over the index. */
const DOMAINS = Array.from({ length: 1_000 }, (_, i) => domainOf((i * 37) % RECORDS));

/** The next message of a child; a child that ends instead is an error, not a wait without end. */
function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown): void => {
      child.off('exit', onExit);
      resolve(message as T);
    };
    const onExit = (code: number | null, signal: NodeJS.Signals | null): void => {
      child.off('message', onMessage);
      reject(new Error(`${child.spawnargs.slice(1).join(' ')} ended with ${signal ?? code}.`));
    };
    child.once('message', onMessage);
    child.once('exit', onExit);
  });
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child?.connected !== true) return;
  const ended = once(child, 'exit');
  child.disconnect();
  await ended;
}

/** User and system time of a process so far, in microseconds. */
export function cpuUsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / CLOCK_TICKS;
}

/** An installation with one account, and where it is served. */
export interface Target {
  readonly port: number;
  readonly key: string;
}

/** Asks as fast as it gets answers, over as many connections as it is told. */
export class LoadGenerator {
  readonly #child = fork(new URL('./load.ts', import.meta.url).pathname);

  get pid(): number {
    return this.#child.pid!;
  }

  /** @throws Error where anything but a 200 came, or nothing. */
  async run({ port, key }: Target, connections: number, durationMs: number): Promise<LoadReport> {
    this.#child.send({ port, key, domains: DOMAINS, connections, durationMs });
    const report = await nextMessage<LoadReport>(this.#child);
    if (report.others > 0 || report.answered === 0) throw new Error(JSON.stringify(report));
    return report;
  }

  stop(): Promise<void> {
    return end(this.#child);
  }
}

export interface BenchInstallation {
  readonly installation: ServedInstallation;
  readonly key: string;
}

/** An installation for the benches: 10,000 records, and an account that no bench exhausts. */
export async function createBenchInstallation(workers: number): Promise<BenchInstallation> {
  const installation = await ServedInstallation.create({ workers, records: RECORDS });
  return { installation, key: installation.createAccount('bench', 1_000_000_000_000) };
}

/** A server program of the benches in one mode, in a process of its own. It is told its port, its mode and a configuration file. */
export class ForkedServer<Mode extends string> implements Target {
  readonly mode: Mode;
  port = 0;
  readonly #program: URL;
  #place: BenchInstallation | undefined;
  #child: ChildProcess | undefined;

  constructor(program: URL, mode: Mode) {
    this.#program = program;
    this.mode = mode;
  }

  get key(): string {
    return this.#place!.key;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  /** Resolves with what the server says once it listens. */
  async start<T>(): Promise<T> {
    this.#place = await createBenchInstallation(1);
    this.port = await freePort();
    const { configFile } = this.#place.installation;
    this.#child = fork(this.#program.pathname, [String(this.port), this.mode, configFile]);
    return nextMessage<T>(this.#child);
  }

  ask<T>(question: string): Promise<T> {
    this.#child!.send(question);
    return nextMessage<T>(this.#child!);
  }

  async stop(): Promise<void> {
    await end(this.#child);
    await this.#place?.installation.remove();
  }
}
