/** The processes of the server benches: one server for each mode, and the load generator that sends requests to all of them. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ServedInstallation } from '../tools/chaos/served-installation.ts';
import { freePort } from '../tools/free-port.ts';
import { domainOf } from '../tools/installation.ts';
import type { LoadJob, LoadLength, LoadReport, LoadTarget } from './load-generator.ts';

const RECORDS = 50_000;
const CLOCK_TICKS = 100;
/** Every record once, scattered over the index: many times more than a worker caches answers for. */
const TARGETS = Array.from({ length: RECORDS }, (_, i) => `/api/check?url=${domainOf((i * 37) % RECORDS)}`);

/** Resolves with the next message of a child process. Rejects if the child ends instead. */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
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

/** Returns the user and system time of a process so far, in microseconds. */
export function processCpuUs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / CLOCK_TICKS;
}

/** The process of the load generator. Each of its connections sends the next request as soon as it gets an answer. */
export class LoadGenerator {
  readonly #child: ChildProcess;

  /** @param prefix beginning of its command line, to pin it to a core. */
  constructor(prefix: readonly string[] = []) {
    const [command = '', ...args] = [
      ...prefix,
      process.execPath,
      fileURLToPath(new URL('./load-generator.ts', import.meta.url)),
    ];
    // JSON would turn an infinite number of requests into null.
    this.#child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /**
   * Opens the connections, then sends requests up to the given limits.
   *
   * @param onConnected called between the two, so that the cost of connecting is not counted.
   * @throws Error if any answer was not a 200, or none came.
   */
  async run(
    target: LoadTarget,
    connections: number,
    length: LoadLength,
    onConnected: () => void = () => {},
  ): Promise<LoadReport> {
    await this.#ask({ kind: 'connect', target, connections });
    onConnected();
    const report = (await this.#ask({ kind: 'run', ...length })) as LoadReport;
    if (report.others > 0 || report.answered === 0) throw new Error(JSON.stringify(report));
    return report;
  }

  #ask(job: LoadJob): Promise<unknown> {
    this.#child.send(job);
    return nextMessage(this.#child);
  }

  stop(): Promise<void> {
    return end(this.#child);
  }
}

export interface BenchInstallation {
  readonly installation: ServedInstallation;
  readonly key: string;
}

/** Creates an installation for the benches, with 10,000 records and an account that no bench exhausts. */
export async function createBenchInstallation(): Promise<BenchInstallation> {
  const installation = await ServedInstallation.create({ workers: 1, records: RECORDS });
  return { installation, key: await installation.createAccount('bench', 1_000_000_000_000) };
}

/** A server program of the benches in one mode, as a process. Its arguments are the port, the mode and a configuration file. */
export class ForkedServer<Mode extends string> {
  readonly mode: Mode;
  readonly #program: URL;
  #installation: ServedInstallation | undefined;
  #target: LoadTarget | undefined;
  #child: ChildProcess | undefined;

  constructor(program: URL, mode: Mode) {
    this.#program = program;
    this.mode = mode;
  }

  get target(): LoadTarget {
    return this.#target!;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  /** Starts the server. Resolves with the message that it sends when it listens. */
  async start<T>(): Promise<T> {
    const { installation, key } = await createBenchInstallation();
    this.#installation = installation;
    const requestsFile = join(installation.root, 'requests.txt');
    writeFileSync(requestsFile, `${TARGETS.join('\n')}\n`);
    const port = await freePort();
    this.#target = { port, requestsFile, keys: [key] };
    this.#child = fork(this.#program, [String(port), this.mode, installation.configFile]);
    return nextMessage<T>(this.#child);
  }

  ask<T>(question: string): Promise<T> {
    this.#child!.send(question);
    return nextMessage<T>(this.#child!);
  }

  async stop(): Promise<void> {
    await end(this.#child);
    await this.#installation?.remove();
  }
}
