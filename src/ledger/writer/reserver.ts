/**
 * Reserves ahead what workers spend: `used ≤ reserved ≤ limit`, and `reserved` is durable before anybody may spend it. A charge is then
 * one step in memory, which no loss of power can undo: whatever is not known afterwards counts as used up to `reserved`.
 *
 * One for each ledger on a host, in the process that holds the ledger writer's lock. All methods are synchronous; a failure becomes the
 * state `failed` with its reason, and everything that is reserved can still be spent.
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

/** How often the files are looked at and the usage is committed, in milliseconds. */
const COMMIT_MS = 1_000;

export interface ReserverOptions {
  /** The SQLite file. */
  readonly file: string;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
  /** Milliseconds to wait for another writer before a commit fails. */
  readonly busyTimeoutMs?: number;
  /** Called when counters were made again, so that workers map the new ones. */
  readonly onNewCounters?: () => void;
  /** It follows one that left its place: what was used meanwhile is no recovery. */
  readonly isSuccession?: boolean;
  /** Who grants lookups to this host; the account's limit alone unless told otherwise. */
  readonly allowance?: (account: Account, cycle: number) => Allowance;
  /** How the fleet's ledger is followed; a host of its own unless told otherwise. */
  readonly fleet?: () => FleetLink & { readonly problem: string };
}

/** What is wrong, for health: that the ledger cannot be asked is said there already, and what callers are to do is not for those who look. */
function reasonOf(error: unknown): string {
  if (error instanceof PagegateError && error.code === 'ledger_unavailable' && error.what !== '') return error.what;
  return failureReason(error) ?? messageOf(error);
}

/** Keeps the reservations of a ledger: makes them durable, publishes them, and recovers from whatever becomes of its files. */
export class Reserver {
  readonly #options: ReserverOptions;
  readonly #clock: WriterClock;
  readonly #reservations: Reservations;
  #opened: OpenedLedger | undefined;
  #mapped: OpenCounters | undefined;
  #state: WriterState = WRITER_STATE.starting;
  #reason = 'The ledger writer is starting.';
  #revision = 0;
  /** Of the ledger that was opened last. */
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

  /** What the active accounts have used of their limits in the current cycle. */
  usage(): Iterable<NearLimit> {
    return this.#reservations.usage();
  }

  /** Opens the ledger (again) and brings it to what is known to be used. Returns whether it can be written. */
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
      // Reservations that are not durable any more must not be spent; a full disk loses none.
      if (this.#opened === undefined && !isTemporary(error)) this.#withdrawLost();
      // Workers must not go on reading a file that is not there any more.
      this.#mapped?.counters.nextEpoch();
      this.#fail(error);
      this.#release();
      return false;
    }
    return true;
  }

  /**
   * Reserves more for accounts that have run low, in one commit. Returns whether it is durable; a commit that failed is tried again by
   * {@link tick}.
   */
  reserve(accountIds: Iterable<number>): boolean {
    return this.#opened !== undefined && this.#commit(this.#reservations.reserve(accountIds));
  }

  /** What is due a few times a second: changes of accounts, the clock, the files, usage, recovery after a failure. */
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
      if (this.#lookAtFiles(this.#opened)) this.#commit(this.#reservations.reserveActive(false));
    } else if (this.#state === WRITER_STATE.failed) this.#commit([]);
    this.#publishHealth();
  }

  /** Takes over what a command has changed, and tells the workers. */
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

  /** Commits exactly what was used, and gives the rest back; the workers must have ended. Returns whether that is durable. */
  close(): boolean {
    let isDurable = false;
    if (this.#opened !== undefined && this.#mapped !== undefined) {
      const { ledgerId } = this.#opened;
      // Then the ledger knows all, and the counters hold nothing more.
      isDurable = this.#commit(this.#reservations.giveAllBack());
      if (isDurable) removeCounters(this.#options.file, ledgerId);
    }
    this.abandon();
    return isDurable;
  }

  /** Commits what was used by now and lets go of the ledger; workers go on charging what is reserved, and the successor goes on from there. */
  handOver(): void {
    if (this.#opened !== undefined) this.#commit(this.#reservations.reserveActive(true));
    this.abandon();
  }

  /**
   * How accounts stand, exact at this moment.
   *
   * @param which `active` are those that somebody may be spending; `all` are also those that have spent anything in their cycle.
   */
  standing(which: 'active' | 'all' | Iterable<number> = 'active'): AccountStanding[] {
    return this.#reservations.standing(which);
  }

  /**
   * Gives up what is reserved for accounts and not used; nobody spends more of it until {@link reserve} is asked again.
   *
   * @returns whether that is durable: only then others may have it.
   */
  giveBack(accountIds: Iterable<number>): boolean {
    if (this.#opened === undefined || this.#mapped === undefined) return false;
    return this.#commit(this.#reservations.giveBack(accountIds));
  }

  /** Ends all charging from what is reserved, for good: it is not this host's any more. */
  forfeit(): void {
    this.#mapped?.counters.withdrawAll();
    if (this.#opened !== undefined) removeCounters(this.#options.file, this.#opened.ledgerId);
    this.abandon();
  }

  /** Lets go of the ledger as it is; the next reserver goes on from there. */
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
    // Before the accounts: what changes meanwhile is read again.
    this.#revision = read.revision();
    this.#lastAudit = read.lastAudit();
    this.#hasCorrections = true;
    this.#reservations.load(read.allAccounts(), meters);
    this.#commits = meters.commits();
    this.#clock.open(read.lastSeenSeconds());
  }

  /** Maps the counters, or makes them again, and brings ledger and counters to the greater of their counts. */
  #openCounters({ ledgerId }: OpenedLedger): void {
    const { file, onNewCounters } = this.#options;
    noteIdentity(file, ledgerId);
    const mapped = this.#mapped;
    const isGone = mapped !== undefined && !mapped.isCurrent();
    // Of counters whose file is gone this process still has the memory; nobody charges there after this.
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
    // Now there is a log, too.
    noteIdentity(file, ledgerId);
  }

  /** Applies the corrections that operators have asked for. */
  #correct({ meters }: OpenedLedger): void {
    this.#hasCorrections = false;
    for (const asked of meters.corrections()) {
      // First what was used, exactly: then nothing but the ledger needs to know it, while it goes back.
      const isExact = this.#commit(this.#reservations.giveBack([asked.accountId]));
      const step = isExact ? this.#reservations.correct(asked) : undefined;
      if (!isExact || (step !== undefined && !this.#commit([step]))) this.#hasCorrections = true;
    }
  }

  /** Makes steps durable, all or none, and publishes them. */
  #commit(steps: readonly MeterChange[]): boolean {
    const opened = this.#opened;
    if (opened === undefined) return false;
    const { seconds, problem } = this.#clock;
    try {
      if (problem !== undefined) throw new PagegateError('ledger_unavailable', problem);
      const changed = steps.filter(({ meter, row }) => row !== meter.row);
      // Writing anything at all is also how a recovery is proved.
      if (changed.length > 0 || this.#clock.isSaveDue(seconds) || this.#state !== WRITER_STATE.ready)
        this.#write(opened, changed, seconds);
    } catch (error) {
      this.#fail(error);
      this.#reload(opened, steps);
      return false;
    }
    for (const { meter, row } of steps) meter.row = row;
    for (const { publish } of steps) publish?.();
    this.#published = this.#commits;
    this.#clock.see(seconds);
    this.#state = WRITER_STATE.ready;
    this.#reason = '';
    this.#publishHealth();
    return true;
  }

  #write({ database, meters }: OpenedLedger, steps: readonly MeterChange[], seconds: number): void {
    const startedMs = performance.now();
    database
      .transaction(() => {
        for (const { meter, row, jump, correction } of steps) {
          // What was charged by now belongs to its day and to the total, whatever a correction makes of the cycle.
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

  /** Whether a failed commit reached the disk is not known: what it was about is read again. */
  #reload({ meters }: OpenedLedger, steps: readonly MeterChange[]): void {
    try {
      for (const { meter } of steps) meter.row = meters.one(meter.id) ?? meter.row;
      this.#commits = meters.commits();
    } catch {
      this.#release();
    }
  }

  /** Looks whether the files are still ours; returns whether work can go on. */
  #lookAtFiles({ database, watch }: OpenedLedger): boolean {
    try {
      const found = watch.look();
      if (found === 'intact' && this.#mapped?.isCurrent() === true) return true;
      // SQLite still has the removed log open: what it holds goes into the file, and a new log begins.
      if (found === 'log_removed') database.pragma('wal_checkpoint(TRUNCATE)');
    } catch (error) {
      this.#mapped?.counters.withdrawAll();
      this.#fail(error);
    }
    this.open();
    return false;
  }

  /** Ends all charging where the ledger is lost, also before it was ever opened by this process. */
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

  /** Writes what only we write into the counters, again and again: whatever became of it there is right a moment later. */
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
