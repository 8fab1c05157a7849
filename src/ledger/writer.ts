/**
 * The ledger writer: one process per host, started by the server's primary process before its workers. Only it writes meters: it
 * reserves lookups in advance for the workers, outside their event loops.
 *
 * The parent watches it. A ledger writer that died is started again; one that sends no heartbeat is killed first. Neither loses a charge:
 * what was not committed is in the shared counters, and the next ledger writer continues from there.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type ErrorCode, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { killOnExit } from '../platform/child-cleanup.ts';
import { STABLE_MS, timeoutFactor, Watchdog } from '../platform/watchdog.ts';
import { COUNTERS_VERSION } from './counters/counters.ts';
import type { EngineSource } from './postgres/engine.ts';
import { LEDGER_VERSION } from './store/migrations.ts';
import type { NearLimit } from './writer/near-limits.ts';

/** Versions on which all programs that use one ledger at the same time must agree. */
export interface LedgerVersions {
  /** Version of the ledger's tables. */
  readonly ledger: number;
  /** Version of the shared counters. */
  readonly counters: number;
}

/** The versions of this program. */
export const LEDGER_VERSIONS: LedgerVersions = { ledger: LEDGER_VERSION, counters: COUNTERS_VERSION };

/** A node's membership in its fleet. */
export interface FleetMember {
  readonly engine: EngineSource;
  /** The node's name for operators. */
  readonly nodeName: string;
  /** Seconds without an answer of the fleet's ledger after which the node stops answering lookups. */
  readonly maxStalenessSeconds: number;
  /** The symbolic link to the current generation. */
  readonly currentLink: string;
}

export interface LedgerWriterOptions {
  /** The SQLite file; in a fleet, the node's copy. */
  readonly file: string;
  readonly fleet?: FleetMember;
  /**
   * Time without a heartbeat after which the ledger writer is killed and started again, in milliseconds; 10,000 by default. It doubles with
   * each such timeout in a row, up to 16 times the first value: restarts must not make a slow disk slower.
   */
  readonly timeoutMs?: number;
  /**
   * Starts as the successor of the ledger writer that holds the ledger's lock now: it stands by until that one releases the lock. Meanwhile
   * the workers of both servers charge in the same counters.
   */
  readonly standsBy?: boolean;
}

export type { NearLimit };

/** Messages from the ledger writer's process to its parent. `heartbeat` is sent every `HEARTBEAT_MS`. */
export type WriterMessage =
  | { readonly kind: 'heartbeat' }
  | { readonly kind: 'standing_by' }
  | { readonly kind: 'near_limits'; readonly accounts: readonly NearLimit[] }
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'fatal'; readonly code: ErrorCode; readonly message: string };

export type WriterHealth = { readonly ready: true } | { readonly ready: false; readonly reason: string };

export interface WriterEvents {
  /** Called when charges become possible or impossible. */
  readonly onHealth?: (health: WriterHealth) => void;
  /** Called when the ledger writer is killed, with the reason in words. */
  readonly onKill?: (pid: number, reason: string) => void;
}

/** Delay before a ledger writer that ended is started again. Doubles each time it ends soon after its start. */
const RESTART_FIRST_MS = 100;
const RESTART_MAX_MS = 5_000;
/** Longer than later timeouts: a start may have to apply a write-ahead log. */
const START_TIMEOUT_MS = 60_000;
const CLOSE_MS = 5_000;
/** How long to wait for the end of a killed ledger writer. */
const DEATH_MS = 1_000;

/** One run of the ledger writer's process, from its start to its end. */
interface Run {
  readonly startedMs: number;
  readonly watch: Watchdog;
  /** The heartbeat timeout once it has opened the ledger. */
  readonly timeoutMs: number;
  /** Settles with the first message about its state, or when the process ends. */
  readonly firstReport: PromiseWithResolvers<void>;
}

/** The ledger writer's process, as its parent sees it. */
export class LedgerWriter {
  /** The accounts that have used at least 80 % of their quota, the largest share first, at most 100. Some seconds old. */
  nearLimits: readonly NearLimit[] = [];
  /** Whether charges are possible, and why not. */
  health: WriterHealth = { ready: false, reason: 'The ledger writer is starting.' };
  readonly #options: LedgerWriterOptions;
  readonly #events: WriterEvents;
  readonly #timeoutMs: number;
  readonly #inPlace = Promise.withResolvers<void>();
  #standsBy: boolean;
  #child: ChildProcess | undefined;
  #isClosing = false;
  #timer: NodeJS.Timeout | undefined;
  #restartMs = RESTART_FIRST_MS;
  /** How many times in a row it was killed because it sent no heartbeat. */
  #timeouts = 0;
  /** Says why this parent killed it, as a sentence without its full stop; undefined if it did not. */
  #killedBecause: string | undefined;

  /** Does not start the process: use {@link startLedgerWriter}. */
  constructor(options: LedgerWriterOptions, events: WriterEvents) {
    this.#options = options;
    this.#events = events;
    this.#timeoutMs = options.timeoutMs ?? LIMITS.hangTimeoutMs.value;
    this.#standsBy = options.standsBy ?? false;
  }

  /** Resolves when this ledger writer has taken its place: with its first report, or later if it stands by first. */
  get inPlace(): Promise<void> {
    return this.#inPlace.promise;
  }

  /** The process id; undefined while no process runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process; settles with its first report. If it ends or cannot be started, it is started again after a delay. */
  start(): Promise<void> {
    const { file, fleet } = this.#options;
    const options: LedgerWriterOptions = {
      file,
      standsBy: this.#standsBy,
      ...(fleet === undefined ? {} : { fleet }),
    };
    this.#killedBecause = undefined;
    const factor = timeoutFactor(this.#timeouts);
    const watch = new Watchdog({
      timeoutMs: Math.max(this.#timeoutMs, START_TIMEOUT_MS) * factor,
      onTimeout: (quietMs) => {
        this.#timeouts += 1;
        this.#kill(`sent no heartbeat for ${quietMs / 1_000} s`);
        // Reported before its end: a process that waits for a disk dies only when the disk answers.
        this.#setHealth({ ready: false, reason: `${this.#killedBecause}; it is started again.` });
      },
    });
    const firstReport = Promise.withResolvers<void>();
    const run: Run = { startedMs: performance.now(), watch, timeoutMs: this.#timeoutMs * factor, firstReport };
    let child: ChildProcess;
    try {
      child = fork(fileURLToPath(new URL('./writer/main.ts', import.meta.url)), [JSON.stringify(options)], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
    } catch (error) {
      this.#onEnd(`cannot be started: ${(error as Error).message}`, run);
      return firstReport.promise;
    }
    this.#child = child;
    killOnExit(child);
    child.on('message', (message: WriterMessage) => this.#onMessage(message, run));
    child.on('error', (error) => {
      // No 'exit' event follows if the process never started.
      if (child.pid === undefined) this.#onEnd(`cannot be started: ${error.message}`, run);
    });
    child.on('exit', (code, signal) =>
      this.#onEnd(`ended with ${signal === null ? `code ${code}` : `signal ${signal}`}`, run),
    );
    return firstReport.promise;
  }

  #onMessage(message: WriterMessage, { startedMs, watch, timeoutMs, firstReport }: Run): void {
    watch.heard();
    switch (message.kind) {
      case 'heartbeat':
        if (performance.now() - startedMs > STABLE_MS) this.#timeouts = 0;
        return;
      case 'near_limits':
        this.nearLimits = message.accounts;
        return;
      case 'fatal': {
        this.#setHealth({ ready: false, reason: message.message });
        const error = new PagegateError(message.code, '', { file: this.#options.file });
        error.message = message.message;
        firstReport.reject(error);
        return;
      }
      case 'standing_by':
        watch.timeoutMs = timeoutMs;
        // Its predecessor does the work until then; the counters have the state of that one.
        this.health = { ready: true };
        firstReport.resolve();
        return;
      case 'ready':
      case 'failed':
        watch.timeoutMs = timeoutMs;
        this.#standsBy = false;
        this.#inPlace.resolve();
        this.#setHealth(message.kind === 'ready' ? { ready: true } : { ready: false, reason: message.reason });
        firstReport.resolve();
    }
  }

  /** @param how the predicate of a sentence about the ledger writer. */
  #onEnd(how: string, { startedMs, watch, firstReport }: Run): void {
    watch.stop();
    this.#child = undefined;
    const reason = this.#killedBecause ?? `The ledger writer ${how}`;
    firstReport.reject(new PagegateError('ledger_unavailable', `${reason}.`));
    if (this.#isClosing) return;
    if (this.#killedBecause === undefined) this.#setHealth({ ready: false, reason: `${reason}; it is started again.` });
    this.#restartMs = performance.now() - startedMs > STABLE_MS ? RESTART_FIRST_MS : this.#restartMs;
    this.#timer = setTimeout(() => this.start().catch(() => {}), this.#restartMs);
    this.#restartMs = Math.min(2 * this.#restartMs, RESTART_MAX_MS);
  }

  /**
   * Commits what was used and ends the ledger writer. End the workers first. If it has not ended after `limitMs` milliseconds, it is killed;
   * the next start continues from what it left.
   */
  close(limitMs = CLOSE_MS): Promise<void> {
    return this.#end('stop', limitMs);
  }

  /**
   * Ends the ledger writer and leaves its place to a successor that stands by. Workers keep charging in the same counters. If it has not
   * ended after `limitMs` milliseconds, it is killed.
   */
  handOver(limitMs: number): Promise<void> {
    return this.#end('hand_over', limitMs);
  }

  /** Takes the place back after {@link handOver}, because the successor has failed. */
  resume(): void {
    this.#isClosing = false;
    // The successor may need a moment to end.
    this.#standsBy = true;
    this.start().catch(() => {});
  }

  async #end(message: 'stop' | 'hand_over', limitMs: number): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === undefined) return;
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    child.once('exit', () => resolve());
    const late = setTimeout(
      () => {
        this.#kill('did not end in time');
        // A process that waits for a disk dies only when the disk answers. This process does not wait for that.
        setTimeout(() => {
          child.unref();
          child.channel?.unref();
          resolve();
        }, DEATH_MS).unref();
      },
      Math.max(0, limitMs),
    );
    if (child.connected) child.send(message, () => {});
    await ended;
    clearTimeout(late);
  }

  /** @param why what it did or did not do: the predicate of a sentence about the ledger writer. */
  #kill(why: string): void {
    const child = this.#child;
    if (child === undefined) return;
    this.#killedBecause = `The ledger writer ${why} and was killed`;
    this.#events.onKill?.(child.pid ?? 0, `It ${why}; the next one goes on from what it left.`);
    child.kill('SIGKILL');
  }

  #setHealth(health: WriterHealth): void {
    this.health = health;
    this.#events.onHealth?.(health);
  }
}

/**
 * Starts the ledger writer and resolves when workers may open their meters. A ledger that cannot be written now does not fail the start:
 * {@link LedgerWriter.health} has the reason, workers answer 503, and service resumes when the cause is gone.
 *
 * @throws PagegateError ledger_on_network, ledger_in_use (another server uses it), and every other error with which a start cannot succeed.
 */
export async function startLedgerWriter(
  options: LedgerWriterOptions,
  events: WriterEvents = {},
): Promise<LedgerWriter> {
  const ledgerWriter = new LedgerWriter(options, events);
  try {
    await ledgerWriter.start();
  } catch (error) {
    await ledgerWriter.close();
    throw error;
  }
  return ledgerWriter;
}
