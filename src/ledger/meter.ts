/**
 * The hot path of a server worker: authenticates the request, reads the quota, and charges one lookup per served answer. A charge is one
 * atomic operation in the shared counters. A request waits for the next reservation only if a burst has used up what the ledger writer reserved.
 */
import { BoundedCache } from '../bounded-cache.ts';
import { PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { Database } from '../platform/sqlite.ts';
import { CHARGE_REFUSED, type Counters, WRITER_STATE } from './counters/counters.ts';
import { type OpenCounters, openCounters } from './counters/location.ts';
import { isKeyCurrent } from './key-validity.ts';
import { type Account, type CycleUsage, planIn, type QuotaView, quotaView } from './quota.ts';
import { hashApiKey, isApiKeyShaped } from './store/api-key.ts';
import { openDatabase } from './store/database.ts';
import { readIdentity, refuseForeignLedger } from './store/identity.ts';
import { type ApiKeyRecord, createReader, type Reader } from './store/records.ts';
import { asLedgerError } from './store/sqlite-failures.ts';
import { connectToWriter, type WriterLink } from './writer/writer-socket.ts';

export type AuthResult =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'account'; readonly account: Account; readonly activated: boolean; readonly quota: QuotaView };

/** The lookups left after a charge, 0 or more; or why nothing was charged. `wait` means that more must be reserved first. */
export type ChargeOutcome = number | 'not_activated' | 'quota_exhausted' | 'ledger_unavailable' | 'wait';

export interface MeterOptions {
  /** The SQLite file. */
  readonly file: string;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
  /** How long a request waits for a reservation before it is answered `ledger_unavailable`, in milliseconds. */
  readonly timeoutMs?: number;
  /** Connects to the ledger writer; replaced in tests that run it in the same process. */
  readonly connect?: typeof connectToWriter;
}

/** State of the ledger for health and metrics, as one worker sees it. The names are those of the JSON. */
export interface MeterHealth {
  readonly ready: boolean;
  /** Why it is not ready, in words; empty if it is. */
  readonly reason: string;
  /** Number of commits of the ledger writer. */
  readonly commits: number;
  /** Duration of the latest commit, in milliseconds. */
  readonly commit_ms: number;
  readonly wal_bytes: number;
  /** Number of requests of this worker that wait for a reservation. */
  readonly waiting: number;
  /** The node's connection to its fleet's ledger; absent on a single host. */
  readonly fleet?: {
    /** Seconds since the last answer of the fleet's ledger. */
    readonly stale_seconds: number;
    /** Lookups that the node may spend without asking. */
    readonly held: number;
    /** Nothing is granted: the fleet's database has lost commits. */
    readonly learning: boolean;
    /** The current problem, in words; empty if there is none. */
    readonly problem: string;
  };
}

/** A request that waits for a reservation. */
interface Waiting {
  readonly accountId: number;
  readonly untilMs: number;
  readonly resume: (isReserved: boolean) => void;
}

const STARTING = 'The ledger writer is starting.';
const UNKNOWN: AuthResult = { kind: 'unknown' };
/** A node's copy of the keys counts as complete if the fleet's ledger answered within this time, in milliseconds. */
const FRESH_MS = 5_000;
const TICK_MS = 100;
/** Number of API keys that are cached until the ledger changes. */
const KEYS_MAX = 10_000;

/** The account of an API key. Its quota is computed only when it is read. */
class KnownAccount {
  readonly kind = 'account';
  readonly account: Account;
  readonly activated: boolean;
  readonly record: ApiKeyRecord;
  readonly #meter: Meter;

  constructor(account: Account, record: ApiKeyRecord, meter: Meter) {
    this.account = account;
    this.activated = account.state === 'active';
    this.record = record;
    this.#meter = meter;
  }

  get quota(): QuotaView {
    return this.#meter.quotaLeft(this.account);
  }
}

/** The meter of one worker. */
export class Meter {
  readonly #file: string;
  readonly #now: () => number;
  readonly #timeoutMs: number;
  readonly #link: WriterLink;
  readonly #timer: NodeJS.Timeout;
  /**
   * By the text of the key: a SHA-256 for each request would cost more than the charge. Clients cannot force collisions, because the hash of
   * a map is seeded differently in each process.
   */
  readonly #known = new BoundedCache<string, KnownAccount>(KEYS_MAX);
  /** Accounts that the ledger writer was asked to reserve for, and has not answered yet. */
  readonly #asked = new Set<number>();
  /** The shared counters; undefined before the ledger writer has created them. */
  #mapped: OpenCounters | undefined;
  #reading: { readonly database: Database; readonly read: Reader; readonly epoch: number } | undefined;
  #revision = 0;
  #waiting: Waiting[] = [];
  /** Whether the latest attempt to map the current counters succeeded. */
  #isMapped = true;
  /** The ledger writer has not answered in time: requests do not wait for it until it does. */
  #isStalled = false;
  #idle: (() => void)[] = [];

  /** The ledger writer must have been started. @throws PagegateError ledger_unavailable, mapping_failed */
  constructor(options: MeterOptions) {
    this.#file = options.file;
    this.#now = options.now ?? Date.now;
    this.#timeoutMs = options.timeoutMs ?? LIMITS.reservationWaitMs.value;
    this.#map();
    this.#link = (options.connect ?? connectToWriter)(options.file, {
      onConnect: () => this.#reconnected(),
      onAnswer: () => this.#answered(),
    });
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  /** Finds the account of a key. @throws PagegateError ledger_unavailable if the ledger cannot be read; never returns `unknown` for that. */
  authenticate(key: string): AuthResult {
    const { revision } = this.#counters;
    if (this.#revision !== revision) {
      this.#revision = revision;
      this.#known.clear();
    }
    const known = this.#known.get(key) ?? this.#lookUp(key);
    if (known === undefined) return isApiKeyShaped(key) ? this.#unknown() : UNKNOWN;
    if (known.record.expiresAt !== null && !isKeyCurrent(known.record, this.#latest())) return UNKNOWN;
    return known;
  }

  /** What is left now, without charging. @throws PagegateError ledger_unavailable */
  quotaLeft(account: Account): QuotaView {
    const counters = this.#counters;
    const slot = counters.view(account.id);
    const used: CycleUsage =
      slot === undefined
        ? this.#openReading().read.cycleUsage(account.id)
        : { cycle: slot.cycle, used: slot.reserved - slot.left };
    // The limit in a slot excludes what other nodes have used.
    const others = slot === undefined || counters.isAlone ? 0 : (planIn(account, slot.cycle)?.limit ?? 0) - slot.limit;
    if (others !== 0) return quotaView(account, { ...used, used: Math.max(0, used.used + others) }, this.#seconds());
    return quotaView(account, used, this.#seconds());
  }

  /** Charges one lookup. */
  charge({ id, state, anchor }: Account): ChargeOutcome {
    if (state !== 'active' || anchor === null) return 'not_activated';
    const counters = this.#counters;
    const nowMs = this.#now();
    if (!counters.isHeard(nowMs)) return 'ledger_unavailable';
    const left = counters.charge(id, anchor, this.#seconds(nowMs));
    if (left >= 0) {
      if (counters.isLow) this.#ask(id);
      return left;
    }
    if (left === CHARGE_REFUSED.exhausted) return 'quota_exhausted';
    this.#ask(id);
    return this.#isStalled || counters.state === WRITER_STATE.failed ? 'ledger_unavailable' : 'wait';
  }

  /**
   * Waits until a charge may be possible again.
   *
   * @param sinceMs when the request began to wait, on the clock of `performance.now`.
   * @param resume called with `true` when a charge should be tried again, with `false` after the timeout.
   */
  wait({ id }: Account, sinceMs: number, resume: (isReserved: boolean) => void): void {
    this.#waiting.push({ accountId: id, untilMs: sinceMs + this.#timeoutMs, resume });
  }

  health(): MeterHealth {
    const waiting = this.#waiting.length;
    const counters = this.#mapped?.counters;
    if (counters === undefined || counters.state === WRITER_STATE.starting)
      return { ready: false, reason: STARTING, commits: 0, commit_ms: 0, wal_bytes: 0, waiting };
    const { commits, commitMs, walBytes } = counters.status;
    const stalled = this.#isStalled ? `The ledger writer has not answered for ${this.#timeoutMs} ms.` : '';
    const reason = counters.state === WRITER_STATE.failed ? counters.reason : this.#staleness() || stalled;
    const commit_ms = Number(commitMs.toFixed(3));
    const health = { ready: reason === '', reason, commits, commit_ms, wal_bytes: walBytes, waiting };
    if (counters.isAlone) return health;
    const { heardMs, held, learning } = counters.fleet;
    const stale_seconds = heardMs === 0 ? Number.MAX_SAFE_INTEGER : Math.max(0, (this.#now() - heardMs) / 1_000);
    return { ...health, fleet: { stale_seconds, held, learning: learning !== 0, problem: counters.reason } };
  }

  /** Resolves when no request waits. */
  async flush(): Promise<void> {
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async close(): Promise<void> {
    await this.flush();
    clearInterval(this.#timer);
    this.#link.close();
    this.#closeReading();
    this.#mapped?.close();
  }

  /** @throws PagegateError ledger_unavailable */
  get #counters(): Counters {
    if (this.#mapped === undefined) throw new PagegateError('ledger_unavailable', STARTING, { file: this.#file });
    return this.#mapped.counters;
  }

  /** Maps the counters, or those that have replaced them. The earlier ones stay mapped until there are new ones. */
  #map(): void {
    if (this.#mapped?.isCurrent() === true) return;
    const identity = readIdentity(this.#file);
    const mapped = identity === undefined ? undefined : openCounters(this.#file, identity.ledgerId);
    if (mapped === undefined) return;
    this.#mapped?.close();
    this.#mapped = mapped;
    this.#known.clear();
    this.#closeReading();
  }

  #ask(accountId: number): void {
    if (this.#asked.has(accountId)) return;
    this.#asked.add(accountId);
    this.#link.ask([accountId]);
  }

  /** Calls {@link #map} where no caller could handle an error: a failed attempt is repeated by the next tick. */
  #mapAgain(): void {
    try {
      this.#map();
      this.#isMapped = true;
    } catch {
      this.#isMapped = false;
    }
  }

  /** Called when a ledger writer has accepted the connection. It may be a new one, which does not know the earlier requests: they are repeated. */
  #reconnected(): void {
    this.#mapAgain();
    for (const { accountId } of this.#waiting) this.#asked.add(accountId);
    this.#link.ask([...this.#asked]);
  }

  #answered(): void {
    this.#isStalled = false;
    this.#asked.clear();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { resume } of waiting) resume(true);
    this.#rest();
  }

  /** Ends requests that have waited too long. Also repeats reservation requests, which may have been lost with an earlier ledger writer. */
  #tick(): void {
    if (this.#mapped === undefined || !this.#isMapped) this.#mapAgain();
    const nowMs = performance.now();
    const late = this.#waiting.filter(({ untilMs }) => untilMs <= nowMs);
    if (late.length > 0) {
      this.#isStalled = true;
      this.#waiting = this.#waiting.filter(({ untilMs }) => untilMs > nowMs);
      for (const { resume } of late) resume(false);
      this.#rest();
    }
    this.#link.ask([...this.#asked]);
  }

  #rest(): void {
    if (this.#waiting.length > 0) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  /** The time on the ledger's clock, in seconds since 1970. */
  #seconds(nowMs = this.#now()): number {
    return Math.floor((nowMs + this.#counters.clockOffsetMs) / 1000);
  }

  /** A node's copy of the keys may lack a new key, which must not be answered 401. @throws PagegateError ledger_unavailable */
  #unknown(): AuthResult {
    if (this.#counters.isHeard(this.#now(), FRESH_MS)) return UNKNOWN;
    throw new PagegateError('ledger_unavailable', this.#staleness());
  }

  /** Why a node refuses to answer; empty if it does answer, and always on a single host. */
  #staleness(): string {
    const counters = this.#mapped?.counters;
    if (counters === undefined || counters.isHeard(this.#now())) return '';
    const seconds = Math.floor((this.#now() - counters.fleet.heardMs) / 1000);
    const since = counters.fleet.heardMs === 0 ? 'yet' : `for ${seconds} s`;
    return `The fleet’s ledger was not heard ${since}. ${counters.reason}`.trimEnd();
  }

  /** The latest second that this worker or the ledger writer has seen: a clock that is set back must not make an expired key valid again. */
  #latest(): number {
    return Math.max(this.#seconds(), this.#counters.lastSeenSeconds);
  }

  #lookUp(key: string): KnownAccount | undefined {
    if (!isApiKeyShaped(key)) return undefined;
    try {
      const { read } = this.#openReading();
      const record = read.apiKeyByHash(hashApiKey(key));
      if (record === undefined || !isKeyCurrent(record, this.#latest())) return undefined;
      const account = read.accountById(record.accountId);
      if (account === undefined || account.state === 'closed') return undefined;
      return this.#known.keep(key, new KnownAccount(account, record, this));
    } catch (error) {
      this.#closeReading();
      throw asLedgerError(error, this.#file);
    }
  }

  #openReading(): { readonly read: Reader } {
    const { epoch } = this.#counters;
    if (this.#reading !== undefined && this.#reading.epoch !== epoch) this.#closeReading();
    if (this.#reading === undefined) {
      const database = openDatabase(this.#file, { readonly: true, busyTimeoutMs: 200 });
      const read = createReader(database);
      this.#reading = { database, read, epoch };
      // Another ledger would not know our keys, which must not be answered 401.
      refuseForeignLedger(this.#file, read.ledgerId());
    }
    return this.#reading;
  }

  #closeReading(): void {
    this.#reading?.database.close();
    this.#reading = undefined;
  }
}
