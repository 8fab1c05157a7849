/**
 * Reserves in advance what workers spend: `used ≤ reserved ≤ limit`, and `reserved` is durable before a worker may spend it. A charge is then
 * one step in memory. A loss of power cannot refund it: if the exact usage is unknown afterwards, all of `reserved` counts as used.
 *
 * There is one per ledger on a host, in the process that holds the ledger writer's lock. All methods are synchronous. A failure sets the
 * state `failed` with its reason; what is reserved can still be spent.
 */
import { messageOf, PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { type Counters, type FleetLink, NO_FLEET, WRITER_STATE, type WriterState } from '../counters/counters.ts';
import { createCounters, type OpenCounters, openCounters, removeCounters } from '../counters/location.ts';
import { dayOf } from '../cycle.ts';
import type { Account } from '../quota.ts';
import { noteIdentity, readIdentity } from '../store/identity.ts';
import { METER_CORRECTED } from '../store/meters.ts';
import { failureReason, isTemporary } from '../store/sqlite-failures.ts';
import type { NearLimit } from './near-limits.ts';
import { type OpenedLedger, openForWriting } from './opened-ledger.ts';
import { type AccountStanding, type Allowance, type MeterChange, Reservations } from './reservations.ts';
import { WriterClock } from './writer-clock.ts';

/** How often the files are checked and the usage is committed, in milliseconds. */
const COMMIT_MS = 1_000;

export interface ReserverOptions {
  /** The SQLite file. */
  readonly file: string;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
  /** Milliseconds to wait for another writer before a commit fails. */
  readonly busyTimeoutMs?: number;
  /** Called when counters were created again, so that workers map the new ones. */
  readonly onNewCounters?: () => void;
  /** The previous ledger writer left its place in an orderly way: what was used meanwhile is not a recovery. */
  readonly isSuccession?: boolean;
  /** Returns what a fleet has granted this host; by default the account's limit is the allowance. */
  readonly allowance?: (account: Account, cycle: number) => Allowance;
  /** Returns the state of the connection to the fleet's ledger; absent on a single host. */
  readonly fleet?: () => FleetLink & { readonly problem: string };
}

/** The reason of a failure, for health: without the general sentence and the advice of `ledger_unavailable`. */
function reasonOf(error: unknown): string {
  if (error instanceof PagegateError && error.code === 'ledger_unavailable' && error.what !== '') return error.what;
  return failureReason(error) ?? messageOf(error);
}

/** Commits and publishes the reservations of a ledger, and recovers from damage to its files. */
export class Reserver {
  readonly #options: ReserverOptions;
  readonly #clock: WriterClock;
  readonly #reservations: Reservations;
  #opened: OpenedLedger | undefined;
  #mapped: OpenCounters | undefined;
  #state: WriterState = WRITER_STATE.starting;
  #reason = 'The ledger writer is starting.';
  #revision = 0;
  /** The id of the ledger that was opened last. */
  #ledgerId: string | undefined;
  #hasCorrections = false;
  #lastAudit = 0;
  #commits = 0;
  #published = 0;
  #commitMs = 0;
  #nextCommitMs = 0;
  #isSuccession: boolean;

  constructor(options: ReserverOptions) {
    this.#options = options;
    this.#isSuccession = options.isSuccession ?? false;
    this.#clock = new WriterClock(options.now ?? Date.now);
    this.#reservations = new Reservations(this.#clock, options.allowance);
  }

  /** Undefined before a ledger was opened. */
  get counters(): Counters | undefined {
    return this.#mapped?.counters;
  }

  get state(): { readonly ready: boolean; readonly reason: string } {
    return { ready: this.#state === WRITER_STATE.ready, reason: this.#reason };
  }

  /** Usage and limit of each active account in the current cycle. */
  usage(): Iterable<NearLimit> {
    return this.#reservations.usage();
  }

  /** Opens the ledger, or opens it again, and sets its meters to what is known to be used. Returns whether the ledger can be written. */
  open(): boolean {
    this.#release();
    const { file, busyTimeoutMs } = this.#options;
    try {
      this.#opened = openForWriting(file, { earlierId: this.#ledgerId, nowMs: this.#clock.nowMs(), busyTimeoutMs });
      this.#ledgerId = this.#opened.ledgerId;
      this.#load(this.#opened);
      this.#openCounters(this.#opened);
      this.#mapped?.counters.nextEpoch();
      this.#isSuccession = false;
    } catch (error) {
      // Reservations that are no longer durable must not be spent. A temporary failure, such as a full disk, loses none.
      if (this.#opened === undefined && !isTemporary(error)) this.#withdrawLost();
      // Makes workers stop reading a file that may be gone.
      this.#mapped?.counters.nextEpoch();
      this.#fail(error);
      this.#release();
      return false;
    }
    return true;
  }

  /**
   * Reserves more for accounts that have run low, in one commit. Returns whether it is durable. {@link tick} repeats a commit that
   * failed.
   */
  reserve(accountIds: Iterable<number>): boolean {
    return this.#opened !== undefined && this.#commit(this.#reservations.reserve(accountIds));
  }

  /** Does the periodic work, a few times per second: changes of accounts, the clock, the files, usage, recovery after a failure. */
  tick(): void {
    const nowMs = this.#clock.nowMs();
    if (this.#opened === undefined) {
      this.open();
      this.#publishHealth();
      return;
    }
    this.publishChanges();
    if (this.#hasCorrections) this.#correct(this.#opened);
    if (nowMs >= this.#nextCommitMs || nowMs < this.#nextCommitMs - 2 * COMMIT_MS) {
      this.#nextCommitMs = nowMs + COMMIT_MS;
      if (this.#checkFiles(this.#opened)) this.#commit(this.#reservations.reserveActive(false));
    } else if (this.#state === WRITER_STATE.failed) this.#commit([]);
    this.#publishHealth();
  }

  /** Applies what commands have changed in the ledger, and publishes it to the workers. */
  publishChanges(): void {
    const opened = this.#opened;
    if (opened === undefined) return;
    try {
      const revision = opened.read.revision();
      if (revision === this.#revision) return;
      const changed = opened.read.accountsSince(this.#lastAudit);
      this.#lastAudit = changed.lastAudit;
      this.#clock.see(opened.read.lastSeenSeconds());
      for (const account of changed.accounts) this.#reservations.follow(account, opened.meters);
      this.#revision = revision;
      this.#hasCorrections = true;
      this.#correct(opened);
      this.#publishHealth();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Commits exactly what was used and gives the rest back. The workers must have ended. Returns whether that is durable. */
  close(): boolean {
    let isDurable = false;
    if (this.#opened !== undefined && this.#mapped !== undefined) {
      const { ledgerId } = this.#opened;
      // After this commit the ledger has everything, and the counters are not needed.
      isDurable = this.#commit(this.#reservations.giveAllBack());
      if (isDurable) removeCounters(this.#options.file, ledgerId);
    }
    this.abandon();
    return isDurable;
  }

  /** Commits what was used by now and closes the ledger. Workers keep charging what is reserved; the successor continues from there. */
  handOver(): void {
    if (this.#opened !== undefined) this.#commit(this.#reservations.reserveActive(true));
    this.abandon();
  }

  /**
   * Returns the current usage of accounts, exact at this moment.
   *
   * @param which `active`: accounts that workers may be charging; `all`: also those with anything reserved in their cycle; or account ids.
   */
  standing(which: 'active' | 'all' | Iterable<number> = 'active'): AccountStanding[] {
    return this.#reservations.standing(which);
  }

  /**
   * Gives up what is reserved for accounts and not used. Workers cannot spend it until {@link reserve} is called again.
   *
   * @returns whether that is durable. Only then may other nodes have it.
   */
  giveBack(accountIds: Iterable<number>): boolean {
    if (this.#opened === undefined || this.#mapped === undefined) return false;
    return this.#commit(this.#reservations.giveBack(accountIds));
  }

  /** Ends all charging from what is reserved, for good, because it no longer belongs to this host. */
  forfeit(): void {
    this.#mapped?.counters.withdrawAll();
    if (this.#opened !== undefined) removeCounters(this.#options.file, this.#opened.ledgerId);
    this.abandon();
  }

  /** Closes the ledger as it is. The next reserver continues from there. */
  abandon(): void {
    this.#release();
    this.#mapped?.close();
    this.#use(undefined);
  }

  #use(mapped: OpenCounters | undefined): void {
    this.#mapped = mapped;
    this.#reservations.counters = mapped?.counters;
  }

  #load({ read, meters }: OpenedLedger): void {
    // Read before the accounts, so that whatever changes meanwhile is read again.
    this.#revision = read.revision();
    this.#lastAudit = read.lastAudit();
    this.#hasCorrections = true;
    this.#reservations.load(read.allAccounts(), meters);
    this.#commits = meters.commits();
    this.#clock.open(read.lastSeenSeconds());
  }

  /** Maps the counters, or creates them again, and sets ledger and counters to the greater of their counts. */
  #openCounters({ ledgerId }: OpenedLedger): void {
    const { file, onNewCounters } = this.#options;
    noteIdentity(file, ledgerId);
    const mapped = this.#mapped;
    const isGone = mapped !== undefined && !mapped.isCurrent();
    // This process still has the memory of counters whose file is gone. Withdrawing ends all charging there.
    if (isGone) mapped.counters.withdrawAll();
    const known = mapped ?? openCounters(file, ledgerId);
    const kept = isGone ? undefined : known;
    this.#use(kept ?? createCounters(file, ledgerId));
    const isDurable = this.#commit(
      this.#reservations.recover({
        known: known?.counters,
        isKept: kept !== undefined,
        isSuccession: this.#isSuccession,
      }),
    );
    if (known !== this.#mapped) known?.close();
    if (kept === undefined) onNewCounters?.();
    if (!isDurable) throw new PagegateError('ledger_unavailable', this.#reason);
    // Record the identity again: now there is a write-ahead log, too.
    noteIdentity(file, ledgerId);
  }

  /** Applies the corrections that operators have requested. */
  #correct({ meters }: OpenedLedger): void {
    this.#hasCorrections = false;
    for (const requested of meters.corrections()) {
      // First commit exactly what was used, so that only the ledger has this number when the correction lowers it.
      const isExact = this.#commit(this.#reservations.giveBack([requested.accountId]));
      const change = isExact ? this.#reservations.correct(requested) : undefined;
      if (!isExact || (change !== undefined && !this.#commit([change]))) this.#hasCorrections = true;
    }
  }

  /** Makes changes durable in one transaction, then publishes them. */
  #commit(changes: readonly MeterChange[]): boolean {
    const opened = this.#opened;
    if (opened === undefined) return false;
    const { seconds, problem } = this.#clock;
    try {
      if (problem !== undefined) throw new PagegateError('ledger_unavailable', problem);
      const changed = changes.filter(({ meter, row }) => row !== meter.row);
      // After a failure, write even if nothing has changed: only a write proves that the ledger has recovered.
      if (changed.length > 0 || this.#clock.isSaveDue(seconds) || this.#state !== WRITER_STATE.ready)
        this.#write(opened, changed, seconds);
    } catch (error) {
      this.#fail(error);
      this.#reload(opened, changes);
      return false;
    }
    for (const { meter, row } of changes) meter.row = row;
    for (const { publish } of changes) publish?.();
    this.#published = this.#commits;
    this.#clock.see(seconds);
    this.#state = WRITER_STATE.ready;
    this.#reason = '';
    this.#publishHealth();
    return true;
  }

  #write({ database, meters }: OpenedLedger, changes: readonly MeterChange[], seconds: number): void {
    const startedMs = performance.now();
    database
      .transaction(() => {
        for (const { meter, row, jump, correction } of changes) {
          // A correction does not change what was charged by now on the day and in total, so that is saved first.
          meters.save(meter.id, meter.row, correction?.before ?? row);
          if (correction !== undefined) {
            meters.correct(meter.id, row, correction.id);
            meters.audit(seconds, METER_CORRECTED, meter.id, correction.before, row);
          }
          if (jump !== undefined && row.used !== meter.row.used) meters.audit(seconds, jump, meter.id, meter.row, row);
        }
        meters.saveCommit(this.#commits + 1, seconds);
        if (this.#clock.isOtherDay(seconds)) meters.forgetDaysBefore(dayOf(seconds) - LIMITS.usageDays.value);
      })
      .immediate();
    this.#commits += 1;
    this.#clock.saved(seconds);
    this.#commitMs = performance.now() - startedMs;
  }

  /** Reads the rows of a failed commit again, because it is unknown whether the commit reached the disk. */
  #reload({ meters }: OpenedLedger, changes: readonly MeterChange[]): void {
    try {
      for (const { meter } of changes) meter.row = meters.one(meter.id) ?? meter.row;
      this.#commits = meters.commits();
    } catch {
      this.#release();
    }
  }

  /** Checks that the files are still those that were opened, and opens the ledger again if not. Returns whether nothing had changed. */
  #checkFiles({ database, watch }: OpenedLedger): boolean {
    try {
      const found = watch.look();
      if (found === 'intact' && this.#mapped?.isCurrent() === true) return true;
      // SQLite still has the removed log open. The checkpoint copies its content into the file; then a new log begins.
      if (found === 'log_removed') database.pragma('wal_checkpoint(TRUNCATE)');
    } catch (error) {
      this.#mapped?.counters.withdrawAll();
      this.#fail(error);
    }
    this.open();
    return false;
  }

  /** Ends all charging because the ledger is lost, even if this process has never opened it. */
  #withdrawLost(): void {
    const { file } = this.#options;
    const identity = this.#mapped === undefined ? readIdentity(file) : undefined;
    if (identity !== undefined) this.#use(openCounters(file, identity.ledgerId));
    this.#mapped?.counters.withdrawAll();
  }

  #fail(error: unknown): void {
    this.#reason = reasonOf(error);
    this.#state = WRITER_STATE.failed;
    this.#publishHealth();
  }

  /** Writes the ledger writer's state into the counters. Repeating this corrects damage there within a moment. */
  #publishHealth(): void {
    const counters = this.#mapped?.counters;
    if (counters === undefined) return;
    const { watch } = this.#opened ?? {};
    counters.status = {
      heartbeatMs: this.#clock.nowMs(),
      commits: this.#published,
      commitMs: this.#commitMs,
      walBytes: watch?.logSizeBytes() ?? 0,
    };
    const fleet = this.#options.fleet?.();
    counters.fleet = fleet ?? NO_FLEET;
    const reason = this.#reason || (fleet?.problem ?? '');
    counters.lastSeenSeconds = this.#clock.latestSeconds;
    if (counters.reason !== reason) counters.reason = reason;
    counters.state = this.#state;
    if (this.#opened !== undefined && this.#revision !== counters.revision) counters.revision = this.#revision;
  }

  #release(): void {
    this.#opened?.database.close();
    this.#opened = undefined;
  }
}
