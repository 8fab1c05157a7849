/** Starts and stops `pagegate serve`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { PAGEGATE } from '../installation.ts';

export const START_DEADLINE_MS = 120_000;
const STOP_DEADLINE_MS = 120_000;

export class ServerProcess {
  readonly #child: ChildProcess;
  #log = '';

  constructor(
    configFile: string,
    options: { readonly port?: number; readonly workers?: number },
    flags: string[] = [],
    program = PAGEGATE,
    env: Readonly<Record<string, string>> = {},
  ) {
    const { port, workers } = options;
    const numbers =
      port === undefined ? [] : ['--port', String(port), '--workers', String(workers), '--admin-port', '0'];
    this.#child = spawn(program, ['serve', '--config', configFile, ...numbers, ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#log = (this.#log + text).slice(-20_000);
      });
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The end of its output. */
  get log(): string {
    return this.#log;
  }

  /** Resolves when all its workers listen. @throws Error if it ends before, or takes too long */
  async listening(): Promise<void> {
    const deadline = Date.now() + START_DEADLINE_MS;
    while (!this.#log.includes('"event":"listening"')) {
      if (this.#hasEnded || Date.now() > deadline) {
        await this.stop();
        throw new Error(`The server did not start:\n${this.#log}`);
      }
      await sleep(20);
    }
  }

  async ended(): Promise<void> {
    if (!this.#hasEnded) await once(this.#child, 'exit');
  }

  /** Stops it, and kills it if that takes too long. Returns a description of the problem if it did not end well, otherwise an empty string. */
  async stop(): Promise<string> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_DEADLINE_MS);
    await this.ended();
    clearTimeout(timer);
    const { exitCode, signalCode } = this.#child;
    return exitCode === 0 ? '' : `the server ended with ${signalCode ?? `exit code ${exitCode}`}:\n${this.#log}`;
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}

/**
 * Starts a server, and resolves when all its workers listen. If it ends before that, it is started again, as a service manager would do. After
 * the death of a primary process, its workers drain first and keep the port until then.
 */
export async function keepStarting(start: () => ServerProcess): Promise<void> {
  const deadline = Date.now() + START_DEADLINE_MS;
  for (;;) {
    try {
      return await start().listening();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}
