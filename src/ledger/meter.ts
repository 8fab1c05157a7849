/**
 * The hot path of a server worker: who asks, what is left, and one charge for each served lookup. A charge is one
 * compare-and-exchange in the shared counters; with durability `full` its answer waits for the ledger writer's next commit.
 */
import { PagegateError } from '../errors.ts';
import { hashApiKey, isApiKeyShaped } from './api-key.ts';
import { clockProblem } from './clock.ts';
import { type Counters, openCounters, packWord, STATE, unpackWord } from './counters.ts';
import { cycleAt, cycleEnd } from './cycle.ts';
import { openDatabase } from './database.ts';
import { refuseForeignLedger } from './presence.ts';
import { type Account, planIn, type QuotaView, quotaView } from './quota.ts';
import { type ApiKeyRecord, createReader, isKeyCurrent, type Reader } from './records.ts';
import { asLedgerError, type Database } from './sqlite.ts';
import { connectToWriter, type WriterLink } from './writer-link.ts';

/** An account as a worker holds it between authentication and charge. */
export interface AccountRef extends Account {
  /** Kept by the meter: between which counters the current cycle moves. */
  window?: CycleWindow;
}

export type AuthResult =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'account'; readonly account: AccountRef; readonly activated: boolean; readonly quota: QuotaView };

export type ChargeOutcome =
  | { readonly charged: true; readonly remaining: number }
  | {
      readonly charged: false;
      readonly error: 'unknown_key' | 'not_activated' | 'quota_exhausted' | 'ledger_unavailable';
      readonly quota?: QuotaView;
    };

/** What a charge waits for: `full` the disk (survives loss of power), `relaxed` shared memory (survives any crash). */
export type Durability = 'full' | 'relaxed';

export interface MeterOptions {
  /** The SQLite file; the counters lie beside it. */
  readonly file: string;
  /** The same as the ledger writer's; `full` unless told otherwise. */
  readonly durability?: Durability;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
  /** How long a charge waits for the disk before it is answered `ledger_unavailable`, in milliseconds. */
  readonly timeoutMs?: number;
  /** How the ledger writer is asked; replaced in tests that have it in the same process. */
  readonly connect?: (ledgerFile: string, onAnswer: () => void) => WriterLink;
}

/** What health and metrics tell of the ledger. */
export interface MeterHealth {
  readonly ready: boolean;
  /** Why not, in words; empty when ready. */
  readonly reason: string;
  /** Commits since the counters were made. */
  readonly commits: number;
  readonly walBytes: number;
  /** Charges that wait for the disk, in this worker. */
  readonly waiting: number;
}

export interface Meter {
  /** @throws PagegateError ledger_unavailable when the ledger cannot be asked; never answers `unknown` for that. */
  authenticate(key: string): AuthResult;
  /** What is left now, without charging. */
  quotaLeft(account: AccountRef): QuotaView;
  /**
   * Charges one lookup. `done` is called once: at once when the outcome is certain already, otherwise when the charge is
   * durable or certain to be refused.
   */
  charge(account: AccountRef, done: (outcome: ChargeOutcome) => void): void;
  /**
   * Blocks until every charge so far is durable or refused, or for a short while, and answers them before it returns. For a caller
   * that has nothing else to do and must not answer later.
   */
  settle(): void;
  health(): MeterHealth;
  /** Resolves when every charge so far has been answered. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** A charge that waits for a commit. */
interface Waiting {
  readonly accountId: number;
  readonly word: bigint;
  readonly remaining: number;
  /** The commit that carries it, or any later one. */
  readonly commit: number;
  readonly sinceMs: number;
  readonly done: (outcome: ChargeOutcome) => void;
}

/** The words between which a cycle's counter moves, and until when the clock agrees. */
export interface CycleWindow {
  readonly first: bigint;
  readonly last: bigint;
  /** The first word of the next cycle. */
  readonly beyond: bigint;
  readonly endsAt: number;
}

const UNAVAILABLE: ChargeOutcome = { charged: false, error: 'ledger_unavailable' };
const UNKNOWN: AuthResult = { kind: 'unknown' };
const CHARGE_TIMEOUT_MS = 5_000;
const TICK_MS = 100;
/** The longest that `settle` blocks; the disk takes a millisecond, a stalled ledger writer must not stall the worker. */
const SETTLE_MS = 250;
/** A look at the counters costs 10 µs: one every twentieth of a millisecond, later one every tenth of the time that was waited. */
const SETTLE_STEP_MS = 0.05;
const SETTLE_STEP_SHARE = 0.1;
const SLEEP = new Int32Array(new SharedArrayBuffer(4));
/** Keys remembered between two changes of the ledger; beyond that the memory starts anew. */
const MEMORY_MAX_KEYS = 10_000;

/** A key's account; its quota is worked out only when somebody looks. */
class KnownAccount {
  readonly kind = 'account';
  readonly account: AccountRef;
  readonly activated: boolean;
  readonly record: ApiKeyRecord;
  readonly #meter: Meter;

  constructor(account: AccountRef, record: ApiKeyRecord, meter: Meter) {
    this.account = account;
    this.activated = account.state === 'active';
    this.record = record;
    this.#meter = meter;
  }

  get quota(): QuotaView {
    return this.#meter.quotaLeft(this.account);
  }
}

class WorkerMeter implements Meter {
  readonly #file: string;
  readonly #waits: boolean;
  readonly #now: () => number;
  readonly #timeoutMs: number;
  readonly #counters: Counters;
  readonly #link: WriterLink;
  readonly #timer: NodeJS.Timeout;
  readonly #known = new Map<string, KnownAccount>();
  #reading: { readonly database: Database; readonly read: Reader; readonly epoch: number } | undefined;
  #revision = 0;
  #waiting: Waiting[] = [];
  /** The commit that the ledger writer was last asked for. */
  #asked = 0;
  #isAsking = false;
  /** The ledger writer has not answered in time: nothing is charged until it does. */
  #isStalled = false;
  /** The second whose clock was last checked, and what came out. */
  #checkedSecond = -1;
  #clockReason: string | undefined;
  #idle: (() => void)[] = [];

  constructor(options: MeterOptions) {
    this.#file = options.file;
    this.#waits = options.durability !== 'relaxed';
    this.#now = options.now ?? Date.now;
    this.#timeoutMs = options.timeoutMs ?? CHARGE_TIMEOUT_MS;
    this.#counters = openCounters(options.file, { create: false });
    this.#revision = this.#counters.revision;
    this.#link = (options.connect ?? connectToWriter)(options.file, () => this.#settle());
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  authenticate(key: string): AuthResult {
    if (this.#revision !== this.#counters.revision) {
      this.#revision = this.#counters.revision;
      this.#known.clear();
    }
    const hash = hashApiKey(key);
    let known = this.#known.get(hash);
    if (known === undefined) {
      if (!isApiKeyShaped(key)) return UNKNOWN;
      known = this.#lookUp(hash);
      if (known === undefined) return UNKNOWN;
    }
    if (known.record.expiresAt !== null && !isKeyCurrent(known.record, this.#latest())) return UNKNOWN;
    return known;
  }

  quotaLeft(account: AccountRef): QuotaView {
    return quotaView(account, unpackWord(this.#counters.word(account.id)), this.#seconds());
  }

  charge(account: AccountRef, done: (outcome: ChargeOutcome) => void): void {
    const outcome = this.#chargeNow(account);
    if (typeof outcome !== 'bigint') {
      done(outcome);
      return;
    }
    const remaining = Number(account.window!.last - outcome);
    if (!this.#waits) {
      done({ charged: true, remaining });
      return;
    }
    const commit = this.#counters.started + 1;
    this.#waiting.push({ accountId: account.id, word: outcome, remaining, commit, sinceMs: performance.now(), done });
    if (commit > this.#asked && !this.#isAsking) {
      this.#isAsking = true;
      setImmediate(this.#ask);
    }
  }

  /** Charges in the shared counters: the new word, or why not. */
  #chargeNow(account: AccountRef): bigint | ChargeOutcome {
    const seconds = this.#seconds();
    if (this.#counters.state !== STATE.ready || this.#isStalled || !this.#isClockGood(seconds)) return UNAVAILABLE;
    const window = account.state === 'active' ? this.#window(account, seconds) : undefined;
    if (window === undefined) return { charged: false, error: 'not_activated', quota: this.quotaLeft(account) };
    const word = this.#counters.charge(account.id, window.first, window.last);
    if (word === -1n) return { charged: false, error: 'quota_exhausted', quota: this.quotaLeft(account) };
    return word;
  }

  health(): MeterHealth {
    const { counters, waiting } = { counters: this.#counters, waiting: this.#waiting.length };
    const { commits, walBytes } = counters;
    let reason = '';
    if (counters.state === STATE.starting) reason = 'The ledger writer is starting.';
    else if (counters.state === STATE.failed) reason = counters.reason;
    else if (this.#isStalled) reason = `The ledger writer has not answered for ${this.#timeoutMs} ms.`;
    else if (!this.#isClockGood(this.#seconds())) reason = this.#clockReason ?? '';
    return { ready: reason === '', reason, commits, walBytes, waiting };
  }

  settle(): void {
    const last = this.#waiting.at(-1);
    if (last === undefined) return;
    this.#ask();
    const startMs = performance.now();
    let spentMs = 0;
    while (Math.max(this.#counters.done, this.#counters.failed) < last.commit && spentMs < SETTLE_MS) {
      Atomics.wait(SLEEP, 0, 0, Math.max(SETTLE_STEP_MS, spentMs * SETTLE_STEP_SHARE));
      spentMs = performance.now() - startMs;
    }
    this.#settle();
  }

  async flush(): Promise<void> {
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async close(): Promise<void> {
    await this.flush();
    clearInterval(this.#timer);
    this.#link.close();
    this.#reading?.database.close();
    this.#reading = undefined;
    this.#counters.close();
  }

  readonly #ask = (): void => {
    this.#isAsking = false;
    const last = this.#waiting.at(-1);
    if (last === undefined || last.commit <= this.#asked) return;
    this.#asked = last.commit;
    this.#link.ask();
  };

  /** Answers what the ledger writer has made durable, and what it certainly could not. */
  #settle(): void {
    const { done, failed } = this.#counters;
    const waiting = this.#waiting;
    let count = 0;
    while (count < waiting.length && waiting[count]!.commit <= Math.max(done, failed)) count += 1;
    if (count === 0) return;
    this.#isStalled = false;
    this.#waiting = waiting.slice(count);
    for (let i = 0; i < count; i += 1) {
      const { commit, done: answer, remaining } = waiting[i]!;
      if (commit <= done) answer({ charged: true, remaining });
      else this.#takeBack(waiting[i]!);
    }
    this.#rest();
  }

  #takeBack({ accountId, word, done }: Waiting): void {
    this.#counters.uncharge(accountId, word);
    done(UNAVAILABLE);
  }

  #rest(): void {
    if (this.#waiting.length > 0) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  #tick(): void {
    this.#settle();
    // The numbers begin anew when the counters had to be made anew.
    this.#asked = Math.min(this.#asked, this.#counters.started + 1);
    if (this.#isStalled) {
      const { done, failed } = this.#counters;
      this.#isStalled = Math.max(done, failed) < this.#asked;
      if (this.#isStalled) this.#link.ask();
      return;
    }
    const oldest = this.#waiting[0];
    if (oldest === undefined) return;
    // A question may have died with the ledger writer that it was put to.
    this.#link.ask();
    if (performance.now() - oldest.sinceMs < this.#timeoutMs) return;
    this.#isStalled = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) this.#takeBack(one);
    this.#rest();
  }

  #seconds(): number {
    return Math.floor(this.#now() / 1000);
  }

  /** The latest second seen by anybody: a clock that was set back makes no key valid again. */
  #latest(): number {
    return Math.max(this.#seconds(), this.#counters.lastSeenSeconds);
  }

  #isClockGood(seconds: number): boolean {
    // A clock that was refused is looked at each time: an operator may confirm it at any moment.
    if (seconds !== this.#checkedSecond || this.#clockReason !== undefined) {
      this.#checkedSecond = seconds;
      this.#clockReason = clockProblem(this.#counters.lastSeenSeconds, seconds);
    }
    return this.#clockReason === undefined;
  }

  /** The cycle that counts now: the clock's, but never an earlier one than was charged in. */
  #window(account: AccountRef, seconds: number): CycleWindow | undefined {
    if (account.anchor === null) return undefined;
    let { window } = account;
    if (window === undefined || seconds >= window.endsAt || this.#counters.word(account.id) >= window.beyond) {
      const seen = unpackWord(this.#counters.word(account.id));
      const cycle = Math.max(seen.cycle, cycleAt(account.anchor, seconds));
      const plan = planIn(account, cycle);
      if (plan === null) return undefined;
      const endsAt = cycleEnd(account.anchor, cycle);
      window = {
        first: packWord(cycle, 0),
        last: packWord(cycle, plan.limit),
        beyond: packWord(cycle + 1, 0),
        endsAt,
      };
      account.window = window;
    }
    return window;
  }

  #lookUp(hash: string): KnownAccount | undefined {
    try {
      const { read } = this.#openReading();
      const record = read.apiKeyByHash(hash);
      if (record === undefined || !isKeyCurrent(record, this.#latest())) return undefined;
      const account = read.accountById(record.accountId);
      if (account === undefined || account.state === 'closed') return undefined;
      const known = new KnownAccount(account, record, this);
      if (this.#known.size >= MEMORY_MAX_KEYS) this.#known.clear();
      this.#known.set(hash, known);
      return known;
    } catch (error) {
      this.#reading?.database.close();
      this.#reading = undefined;
      throw asLedgerError(error, this.#file);
    }
  }

  #openReading(): { readonly read: Reader } {
    const { epoch, state } = this.#counters;
    if (state === STATE.starting) throw new PagegateError('ledger_unavailable', 'The ledger writer is starting.');
    if (this.#reading !== undefined && this.#reading.epoch !== epoch) {
      this.#reading.database.close();
      this.#reading = undefined;
    }
    if (this.#reading === undefined) {
      const database = openDatabase(this.#file, { readonly: true, busyTimeoutMs: 200 });
      const read = createReader(database);
      this.#reading = { database, read, epoch };
      // A ledger that the ledger writer does not keep knows none of our keys: that is no 401.
      const { owner } = this.#counters;
      if (owner !== undefined) refuseForeignLedger(this.#file, read.ledgerId(), owner);
    }
    return this.#reading;
  }
}

/** Opens the meter of a worker process; the ledger writer must have been started. @throws PagegateError mapping_failed */
export async function openMeter(options: MeterOptions): Promise<Meter> {
  return new WorkerMeter(options);
}
