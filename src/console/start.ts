/**
 * Starts the console of a running server in a separate process. The primary watches this process: if it dies or hangs, it is started
 * again, without any effect on lookups.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Config, isPlainBeyondLoopback } from '../config/config.ts';
import { messageOf, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { killOnExit } from '../platform/child-cleanup.ts';
import { lowerPriority } from '../platform/priority.ts';
import { STABLE_MS, timeoutFactor, Watchdog } from '../platform/watchdog.ts';
import type { Log } from '../server/log.ts';
import { LOG_EVENTS } from '../server/log-events.ts';
import type { RunningServer } from '../server/server.ts';
import type { FromConsole, LoggedWarning, PrimaryAnswers, PrimaryQuestion, ToConsole } from './process/messages.ts';
import { Sampler } from './process/metrics-sampler.ts';

/** Longer than for workers: the console may be slow, for example when it compiles a policy on a busy host, and no lookup waits for it. */
const TIMEOUT_MS = 3 * LIMITS.hangTimeoutMs.value;
const RESTART_FIRST_MS = 200;
const RESTART_MAX_MS = 30_000;
const STOP_MS = 2_000;
/** By how much the nice value is raised: lookups have priority over the console. */
const LOWER_BY = 5;

/** Keeps the latest warnings of a log for the console. */
export class WarningLog {
  readonly warnings: LoggedWarning[] = [];
  readonly log: Log;

  /** @param log receives every line */
  constructor(log: Log) {
    this.log = (event, fields) => {
      if (LOG_EVENTS[event].level !== 'info') {
        this.warnings.push({ time: new Date().toISOString(), event, fields: { ...fields } });
        this.warnings.splice(0, this.warnings.length - LIMITS.consoleWarnings.value);
      }
      log(event, fields);
    };
  }
}

/** @throws PagegateError plain_http_refused if the console would serve plain HTTP beyond loopback */
export function checkConsole(config: Config): void {
  const { enabled, host } = config.console;
  if (!enabled || !isPlainBeyondLoopback(config, host)) return;
  throw new PagegateError('plain_http_refused', `console.host is ${host}; the console needs tls there.`, { host });
}

export interface ConsoleParts {
  readonly config: Config;
  readonly server: Pick<RunningServer, 'status' | 'snapshot' | 'metrics'>;
  readonly log: Log;
  readonly warnings: readonly LoggedWarning[];
  /** Time without a heartbeat after which the console is killed and started again, in milliseconds; by default 30,000. */
  readonly timeoutMs?: number;
}

/** The console's process, as the primary sees it. */
export class ConsoleProcess {
  /** Resolves with the address when the console first listens. */
  readonly listening: Promise<string>;
  readonly #parts: ConsoleParts;
  readonly #sampler: Sampler;
  readonly #resolveListening: (address: string) => void;
  #child: ChildProcess | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;
  #restartMs = RESTART_FIRST_MS;
  #timeouts = 0;

  /** Starts the process at once. */
  constructor(parts: ConsoleParts) {
    this.#parts = parts;
    this.#sampler = new Sampler(() => parts.server.snapshot());
    const { promise, resolve } = Promise.withResolvers<string>();
    this.listening = promise;
    this.#resolveListening = resolve;
    this.#start();
  }

  /** Undefined while no console runs, for example before it is started again. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#sampler.stop();
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === undefined) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    send(child, { type: 'stop' });
    await ended;
    clearTimeout(late);
  }

  #start(): void {
    const { log, config, timeoutMs = TIMEOUT_MS } = this.#parts;
    const startedMs = performance.now();
    const child = fork(fileURLToPath(new URL('./main.ts', import.meta.url)), [], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: [`--max-old-space-size=${LIMITS.consoleHeapMib.value}`],
      serialization: 'advanced',
    });
    this.#child = child;
    killOnExit(child);
    const watch = new Watchdog({
      timeoutMs: timeoutMs * timeoutFactor(this.#timeouts),
      onTimeout: (quietMs) => {
        this.#timeouts += 1;
        log('console_hung', { pid: child.pid ?? 0, quiet_seconds: quietMs / 1_000 });
        child.kill('SIGKILL');
      },
    });
    const ended = (how: string): void => {
      watch.stop();
      if (this.#child !== child) return;
      this.#child = undefined;
      if (this.#isStopping) return;
      if (performance.now() - startedMs > STABLE_MS) {
        this.#restartMs = RESTART_FIRST_MS;
        this.#timeouts = 0;
      }
      log('console_died', { pid: child.pid ?? 0, how });
      this.#timer = setTimeout(() => this.#start(), this.#restartMs);
      this.#restartMs = Math.min(2 * this.#restartMs, RESTART_MAX_MS);
    };
    child.on('error', (error) => {
      if (child.pid === undefined) ended(`cannot be started: ${error.message}`);
    });
    child.on('exit', (code, signal) => ended(signal === null ? `code ${code}` : `signal ${signal}`));
    child.on('message', (message: FromConsole) => {
      watch.heard();
      this.#onMessage(child, message);
    });
    if (child.pid !== undefined) lowerPriority(child.pid, LOWER_BY);
    send(child, { type: 'start', config });
  }

  #onMessage(child: ChildProcess, message: FromConsole): void {
    const { log } = this.#parts;
    if (message.type === 'listening') {
      log('console_listening', { address: message.address, pid: child.pid ?? 0 });
      this.#resolveListening(message.address);
    } else if (message.type === 'failed') {
      log('console_failed', message.failure);
    } else if (message.type === 'ask') {
      void this.#answer(message.question).then(
        (answer) => send(child, { type: 'answer', id: message.id, answer }),
        (error: unknown) =>
          send(child, {
            type: 'answer',
            id: message.id,
            failure: messageOf(error),
          }),
      );
    }
  }

  async #answer(question: PrimaryQuestion): Promise<PrimaryAnswers[PrimaryQuestion]> {
    const { server, warnings } = this.#parts;
    if (question === 'status') return server.status();
    if (question === 'metrics') return server.metrics();
    return question === 'samples' ? this.#sampler.samples : warnings;
  }
}

function send(child: ChildProcess, message: ToConsole): void {
  // A console that is gone is handled by its `exit` event.
  if (child.connected) child.send(message, () => {});
}
