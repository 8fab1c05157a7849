/**
 * The ledger's keeper: one process for each host, started by the server's primary process before its workers. It alone writes
 * meters; it merges the charges of all workers into one commit at a time, away from their event loops.
 *
 * The parent watches it: a keeper that died is started again, one that shows no life is killed first. Killing it loses no charge:
 * what it had not committed stands in the shared counters, and the next keeper commits it before it reports `ready`.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type ErrorCode, PagegateError } from '../errors.ts';
import { killWithUs } from '../platform/orphans.ts';
import { PATIENCE_MS, patienceFactor, SilenceWatch, STABLE_MS } from '../platform/silence.ts';
import type { Durability } from './meter.ts';

export interface KeeperOptions {
  /** The SQLite file. */
  readonly file: string;
  /** `full` unless told otherwise. */
  readonly durability?: Durability;
  /**
   * How long the keeper may show no life before it is killed and started again, in milliseconds; 10,000 unless told otherwise. After
   * each such end in a row it may take twice as long, up to 16 times: a disk that is slow must not become slower by new starts.
   */
  readonly patienceMs?: number;
}

/** What the keeper's process tells its parent; `alive` comes every `LIFE_SIGN_MS`. */
export type KeeperMessage =
  | { readonly kind: 'alive' }
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'fatal'; readonly code: ErrorCode; readonly message: string };

export type KeeperHealth = { readonly ready: true } | { readonly ready: false; readonly reason: string };

export interface Keeper {
  /** Whether charges are possible, and why not. */
  readonly health: KeeperHealth;
  /** The process id, for those who watch it; undefined between two lives. */
  readonly pid: number | undefined;
  /**
   * Commits what is left and ends the keeper. End the workers first. One that has not ended after `limitMs` milliseconds (5,000
   * unless told otherwise) is killed; the next start commits what it left.
   */
  close(limitMs?: number): Promise<void>;
}

export interface KeeperEvents {
  /** Called when charges become possible or impossible. */
  readonly onHealth?: (health: KeeperHealth) => void;
  /** Called when the keeper is killed, with the reason in words. */
  readonly onKill?: (pid: number, reason: string) => void;
}

const RESTART_MS = 100;
/** Until its first word, a keeper may have to play in a write-ahead log. */
const START_PATIENCE_MS = 60_000;
const CLOSE_MS = 5_000;
/** How long a killed keeper may take to be gone. */
const DEATH_MS = 1_000;

class KeeperProcess implements Keeper {
  health: KeeperHealth = { ready: false, reason: 'The keeper of the ledger is starting.' };
  readonly #options: KeeperOptions;
  readonly #events: KeeperEvents;
  readonly #patienceMs: number;
  #child: ChildProcess | undefined;
  #isClosing = false;
  #timer: NodeJS.Timeout | undefined;
  /** Times in a row that it was killed because it showed no life. */
  #silences = 0;
  /** That we killed it and why, as a sentence without its full stop; undefined where we did not. */
  #howKilled: string | undefined;

  constructor(options: KeeperOptions, events: KeeperEvents) {
    this.#options = options;
    this.#events = events;
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process; settles with its first word. Its end, or that it cannot be started, is followed by another try. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const options: KeeperOptions = { file: this.#options.file, durability: this.#options.durability ?? 'full' };
      this.#howKilled = undefined;
      const factor = patienceFactor(this.#silences);
      const watch = new SilenceWatch({
        patienceMs: Math.max(this.#patienceMs, START_PATIENCE_MS) * factor,
        onSilence: (silentMs) => {
          this.#silences += 1;
          this.#kill(`showed no life for ${silentMs / 1_000} s`);
          // Known before its end: one that waits for a disk dies only when the disk answers.
          this.#setHealth({ ready: false, reason: `${this.#howKilled}; it is started again.` });
        },
      });
      const ended = (how: string): void => {
        watch.stop();
        this.#child = undefined;
        const reason = this.#howKilled ?? `The keeper of the ledger ${how}`;
        reject(new PagegateError('ledger_unavailable', `${reason}.`));
        if (this.#isClosing) return;
        if (this.#howKilled === undefined) this.#setHealth({ ready: false, reason: `${reason}; it is started again.` });
        this.#timer = setTimeout(() => this.start().catch(() => {}), RESTART_MS);
      };
      let child: ChildProcess;
      try {
        child = fork(fileURLToPath(new URL('./keeper-main.ts', import.meta.url)), [JSON.stringify(options)], {
          stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        });
      } catch (error) {
        ended(`cannot be started: ${(error as Error).message}`);
        return;
      }
      this.#child = child;
      killWithUs(child);
      const startedMs = performance.now();
      child.on('message', (message: KeeperMessage) => {
        watch.heard();
        if (message.kind === 'alive') {
          if (performance.now() - startedMs > STABLE_MS) this.#silences = 0;
          return;
        }
        if (message.kind === 'fatal') {
          this.#setHealth({ ready: false, reason: message.message });
          const error = new PagegateError(message.code, '', { file: options.file });
          error.message = message.message;
          reject(error);
          return;
        }
        watch.patienceMs = this.#patienceMs * factor;
        this.#setHealth(message.kind === 'ready' ? { ready: true } : { ready: false, reason: message.reason });
        resolve();
      });
      child.on('error', (error) => {
        // Where there was none to end, no end follows.
        if (child.pid === undefined) ended(`cannot be started: ${error.message}`);
      });
      child.on('exit', (code, signal) => ended(`ended with ${signal === null ? `code ${code}` : `signal ${signal}`}`));
    });
  }

  async close(limitMs = CLOSE_MS): Promise<void> {
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
    if (child.connected) child.send('stop', () => {});
    await ended;
    clearTimeout(late);
  }

  /** `why` says what it did or did not do: the predicate of a sentence about the keeper. */
  #kill(why: string): void {
    const child = this.#child;
    if (child === undefined) return;
    this.#howKilled = `The keeper of the ledger ${why} and was killed`;
    this.#events.onKill?.(child.pid ?? 0, `It ${why}; what it had not committed is committed at the next start.`);
    child.kill('SIGKILL');
  }

  #setHealth(health: KeeperHealth): void {
    this.health = health;
    this.#events.onHealth?.(health);
  }
}

/**
 * Starts the keeper and resolves when workers may open their meters. A ledger that cannot be written now is not a failure here:
 * {@link Keeper.health} says why, workers answer 503, and all goes on when the cause goes.
 *
 * @throws PagegateError ledger_on_network, ledger_in_use (another server keeps it), and what makes a start senseless.
 */
export async function startKeeper(options: KeeperOptions, events: KeeperEvents = {}): Promise<Keeper> {
  const keeper = new KeeperProcess(options, events);
  try {
    await keeper.start();
  } catch (error) {
    await keeper.close();
    throw error;
  }
  return keeper;
}
