/**
 * The ledger's keeper: one process for each host, started by the server's primary process before its workers. It alone writes
 * meters; it merges the charges of all workers into one commit at a time, away from their event loops.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type ErrorCode, PagegateError } from '../errors.ts';
import type { Durability } from './meter.ts';

export interface KeeperOptions {
  /** The SQLite file. */
  readonly file: string;
  /** `full` unless told otherwise. */
  readonly durability?: Durability;
}

/** What the keeper's process tells its parent. */
export type KeeperMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'fatal'; readonly code: ErrorCode; readonly message: string };

export type KeeperHealth = { readonly ready: true } | { readonly ready: false; readonly reason: string };

export interface Keeper {
  /** Whether charges are possible, and why not. */
  readonly health: KeeperHealth;
  /** The process id, for those who watch it; undefined between two lives. */
  readonly pid: number | undefined;
  /** Commits what is left and ends the keeper. End the workers first. */
  close(): Promise<void>;
}

export interface KeeperEvents {
  /** Called when charges become possible or impossible. */
  readonly onHealth?: (health: KeeperHealth) => void;
}

const RESTART_MS = 100;

class KeeperProcess implements Keeper {
  health: KeeperHealth = { ready: false, reason: 'The keeper of the ledger is starting.' };
  readonly #options: KeeperOptions;
  readonly #events: KeeperEvents;
  #child: ChildProcess | undefined;
  #isClosing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: KeeperOptions, events: KeeperEvents) {
    this.#options = options;
    this.#events = events;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process; settles with its first word. Later deaths are followed by a restart. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const options: KeeperOptions = { file: this.#options.file, durability: this.#options.durability ?? 'full' };
      const child = fork(fileURLToPath(new URL('./keeper-main.ts', import.meta.url)), [JSON.stringify(options)], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      this.#child = child;
      child.on('message', (message: KeeperMessage) => {
        if (message.kind === 'fatal') {
          this.#setHealth({ ready: false, reason: message.message });
          const error = new PagegateError(message.code, '', { file: options.file });
          error.message = message.message;
          reject(error);
          return;
        }
        this.#setHealth(message.kind === 'ready' ? { ready: true } : { ready: false, reason: message.reason });
        resolve();
      });
      child.on('error', () => {});
      child.on('exit', (code, signal) => {
        this.#child = undefined;
        const how = signal === null ? `code ${code}` : `signal ${signal}`;
        reject(new PagegateError('ledger_unavailable', `The keeper of the ledger ended with ${how}.`));
        if (this.#isClosing) return;
        this.#setHealth({ ready: false, reason: `The keeper of the ledger ended with ${how}; it is started again.` });
        this.#timer = setTimeout(() => this.start().catch(() => {}), RESTART_MS);
      });
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === undefined) return;
    await new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      if (child.connected) child.send('stop');
    });
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
