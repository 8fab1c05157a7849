/**
 * The ledger writer: one process for each host, started by the server's primary process before its workers. It alone writes meters: it
 * reserves lookups ahead of the workers, away from their event loops.
 *
 * The parent watches it. A ledger writer that died is started again; one that sends no heartbeat is killed first. Neither loses a charge:
 * what it had not committed stands in the shared counters, and the next ledger writer goes on from there.
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

/** What programs that use one ledger at the same time must agree on. */
export interface LedgerVersions {
  /** Version of the ledger's tables. */
  readonly ledger: number;
  /** Version of the shared counters. */
  readonly counters: number;
}

/** Those of this program. */
export const LEDGER_VERSIONS: LedgerVersions = { ledger: LEDGER_VERSION, counters: COUNTERS_VERSION };

/** How a node belongs to its fleet. */
export interface FleetMember {
  readonly engine: EngineSource;
  /** What people call this node. */
  readonly nodeName: string;
  /** After so many seconds without the fleet's ledger the node stops answering. */
  readonly maxStalenessSeconds: number;
  /** The link to the generation that is served. */
  readonly currentLink: string;
}

export interface LedgerWriterOptions {
  /** The SQLite file; a node's copy where there is a fleet. */
  readonly file: string;
  readonly fleet?: FleetMember;
  /**
   * Time without a heartbeat after which the ledger writer is killed and started again, in milliseconds; 10,000 unless told otherwise. It is
   * doubled after each such end in a row, up to 16 times: restarts must not make a slow disk slower.
   */
  readonly timeoutMs?: number;
  /**
   * Starts as the successor of the ledger writer that holds the ledger's lock now: it stands by until that one gives the lock up, and the
   * workers of both charge in the same counters meanwhile.
   */
  readonly standsBy?: boolean;
}

export type { NearLimit };

/** What the ledger writer's process tells its parent; `heartbeat` comes every `HEARTBEAT_MS`. */
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

/** Before a ledger writer that ended is started again; doubled each time it ends at once. */
const RESTART_FIRST_MS = 100;
const RESTART_MAX_MS = 5_000;
/** A start may have to play in a write-ahead log. */
const START_TIMEOUT_MS = 60_000;
const CLOSE_MS = 5_000;
/** How long a killed ledger writer may take to be gone. */
const DEATH_MS = 1_000;

/** A process from its start to its end. */
interface Life {
  readonly startedMs: number;
  readonly watch: Watchdog;
  /** How long it may send nothing, once it has opened the ledger. */
  readonly timeoutMs: number;
  /** Settles with what it says first that is no heartbeat, or with its end. */
  readonly firstWord: PromiseWithResolvers<void>;
}

/** The ledger writer's process, as its parent sees it. */
export class LedgerWriter {
  /** The accounts that have used at least 80 % of their quota, the largest share first, at most 100; some seconds old. */
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
  /** Times in a row that it was killed because it showed no life. */
  #timeouts = 0;
  /** That we killed it and why, as a sentence without its full stop; undefined where we did not. */
  #killedBecause: string | undefined;

  /** Starts nothing yet: {@link startLedgerWriter} makes one that runs. */
  constructor(options: LedgerWriterOptions, events: WriterEvents) {
    this.#options = options;
    this.#events = events;
    this.#timeoutMs = options.timeoutMs ?? LIMITS.hangTimeoutMs.value;
    this.#standsBy = options.standsBy ?? false;
  }

  /** Resolves when this ledger writer has taken its place: at once, but for one that stood by. */
  get inPlace(): Promise<void> {
    return this.#inPlace.promise;
  }

  /** The process id, for those who watch it; undefined between two lives. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process; settles with its first word. Its end, or that it cannot be started, is followed by another try. */
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
        // Known before its end: one that waits for a disk dies only when the disk answers.
        this.#setHealth({ ready: false, reason: `${this.#killedBecause}; it is started again.` });
      },
    });
    const firstWord = Promise.withResolvers<void>();
    const life: Life = { startedMs: performance.now(), watch, timeoutMs: this.#timeoutMs * factor, firstWord };
    let child: ChildProcess;
    try {
      child = fork(fileURLToPath(new URL('./writer/main.ts', import.meta.url)), [JSON.stringify(options)], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
    } catch (error) {
      this.#onEnd(`cannot be started: ${(error as Error).message}`, life);
      return firstWord.promise;
    }
    this.#child = child;
    killOnExit(child);
    child.on('message', (message: WriterMessage) => this.#onMessage(message, life));
    child.on('error', (error) => {
      // Where there was none to end, no end follows.
      if (child.pid === undefined) this.#onEnd(`cannot be started: ${error.message}`, life);
    });
    child.on('exit', (code, signal) =>
      this.#onEnd(`ended with ${signal === null ? `code ${code}` : `signal ${signal}`}`, life),
    );
    return firstWord.promise;
  }

  #onMessage(message: WriterMessage, { startedMs, watch, timeoutMs, firstWord }: Life): void {
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
        firstWord.reject(error);
        return;
      }
      case 'standing_by':
        watch.timeoutMs = timeoutMs;
        // Its predecessor does the work, and the counters say how that fares.
        this.health = { ready: true };
        firstWord.resolve();
        return;
      case 'ready':
      case 'failed':
        watch.timeoutMs = timeoutMs;
        this.#standsBy = false;
        this.#inPlace.resolve();
        this.#setHealth(message.kind === 'ready' ? { ready: true } : { ready: false, reason: message.reason });
        firstWord.resolve();
    }
  }

  /** `how` is the predicate of a sentence about the ledger writer. */
  #onEnd(how: string, { startedMs, watch, firstWord }: Life): void {
    watch.stop();
    this.#child = undefined;
    const reason = this.#killedBecause ?? `The ledger writer ${how}`;
    firstWord.reject(new PagegateError('ledger_unavailable', `${reason}.`));
    if (this.#isClosing) return;
    if (this.#killedBecause === undefined) this.#setHealth({ ready: false, reason: `${reason}; it is started again.` });
    this.#restartMs = performance.now() - startedMs > STABLE_MS ? RESTART_FIRST_MS : this.#restartMs;
    this.#timer = setTimeout(() => this.start().catch(() => {}), this.#restartMs);
    this.#restartMs = Math.min(2 * this.#restartMs, RESTART_MAX_MS);
  }

  /**
   * Commits what was used and ends the ledger writer. End the workers first. One that has not ended after `limitMs` milliseconds is killed;
   * the next start goes on from what it left.
   */
  close(limitMs = CLOSE_MS): Promise<void> {
    return this.#end('stop', limitMs);
  }

  /**
   * Ends the ledger writer and leaves its place to a successor that stands by. Workers go on charging, in the same counters. One that has not
   * ended after `limitMs` milliseconds is killed.
   */
  handOver(limitMs: number): Promise<void> {
    return this.#end('hand_over', limitMs);
  }

  /** Takes the place back after {@link handOver}: the successor has failed. */
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
        // One that waits for a disk dies only when the disk answers; nobody else waits for that.
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

  /** `why` says what it did or did not do: the predicate of a sentence about the ledger writer. */
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
 * Starts the ledger writer and resolves when workers may open their meters. A ledger that cannot be written now is not a failure here:
 * {@link LedgerWriter.health} says why, workers answer 503, and all goes on when the cause goes.
 *
 * @throws PagegateError ledger_on_network, ledger_in_use (another server keeps it), and what makes a start senseless.
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
