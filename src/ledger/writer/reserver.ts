/**
 * Reserves ahead what workers spend: `used ≤ reserved ≤ limit`, and `reserved` is durable before anybody may spend it. A charge is then
 * one step in memory, which no loss of power can undo: whatever is not known afterwards counts as used up to `reserved`.
 *
 * One for each ledger on a host, in the process that holds the ledger writer's lock. All methods are synchronous; a failure becomes the
 * state `failed` with its reason, and everything that is reserved can still be spent.
 */
import { PagegateError } from '../../errors.ts';
import {
  type Counters,
  type FleetStatus,
  NO_FLEET,
  SLOT_COUNT,
  type SlotView,
  STATE,
  type State,
} from '../counters/counters.ts';
import { createCounters, type OpenCounters, openCounters, removeCounters } from '../counters/location.ts';
import { cycleAt, dayOf } from '../cycle.ts';
import { type Account, type CycleUsage, planIn } from '../quota.ts';
import { CLOCK_LEAP_SECONDS, clockProblem } from '../store/clock.ts';
import { openDatabase } from '../store/database.ts';
import {
  noteIdentity,
  readIdentity,
  refuseForeignLedger,
  refuseLostLedger,
  refuseMovedLedger,
  setEarlierLogAside,
} from '../store/identity.ts';
import {
  charged,
  createMeterStore,
  knownUsage,
  METER_CORRECTED,
  type MeterRow,
  type MeterStore,
  USAGE_DAYS,
} from '../store/meters.ts';
import { createReader, type Reader } from '../store/records.ts';
import { type Database, failureReason, isTemporary } from '../store/sqlite.ts';
import { blockSize, ChargeRate } from './block-size.ts';
import { FileWatch } from './file-watch.ts';
import type { NearLimit } from './near-limits.ts';

/** How often the files are looked at and the usage is committed, in milliseconds. */
const COMMIT_MS = 1_000;
/** How long a commit waits for another program that has the ledger locked; less than requests wait. */
const BUSY_TIMEOUT_MS = 4_000;
/** How often the latest second seen is written down, in seconds. */
const SAVE_SEEN_SECONDS = 60;

/** How much of an account's cycle this host may reserve. */
export interface Allowance {
  /** The most that this host can come to in the cycle: the account's limit, less what other hosts have used. */
  readonly limit: number;
  /** Lookups that this host may reserve without asking further. */
  readonly granted: number;
}

/** An account as it stands at this moment. */
export interface Standing {
  readonly account: Account;
  readonly cycle: number;
  readonly used: number;
  readonly reserved: number;
  /** Lookups charged on this host ever. */
  readonly total: number;
  /** The recent rate. */
  readonly perSecond: number;
  /** The cycle that this process has ended last, and what was used of it; undefined where it has ended none. */
  readonly ended: CycleUsage | undefined;
}

export interface ReserverOptions {
  /** The SQLite file. */
  readonly file: string;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
  /** Milliseconds to wait for another writer before a commit fails. */
  readonly busyTimeoutMs?: number;
  /** Called when counters were made anew, so that workers map the new ones. */
  readonly onNewCounters?: () => void;
  /** It follows one that left its place: what was used meanwhile is no recovery. */
  readonly isSuccession?: boolean;
  /** Who grants lookups to this host; the account's limit alone unless told otherwise. */
  readonly allowance?: (account: Account, cycle: number) => Allowance;
  /** How the fleet's ledger is followed; a host of its own unless told otherwise. */
  readonly fleet?: () => FleetStatus & { readonly problem: string };
}

interface Opened {
  readonly database: Database;
  readonly read: Reader;
  readonly meters: MeterStore;
  readonly watch: FileWatch;
  readonly ledgerId: string;
}

/** An account with a plan, as it is durable, and how fast it is used. */
interface Meter {
  readonly id: number;
  account: Account;
  row: MeterRow;
  readonly rate: ChargeRate;
  /** Somebody may be spending what is reserved for it. */
  isActive: boolean;
  ended?: CycleUsage;
}

/** What a commit makes durable for one meter, and what is published afterwards. */
interface Step {
  readonly meter: Meter;
  readonly row: MeterRow;
  readonly publish?: () => void;
  /** Why the meter jumps: a line of the audit. */
  readonly jump?: 'ledger.recover' | 'ledger.repair_slot';
}

/** An operator's correction of one meter. */
interface AppliedCorrection {
  readonly id: number;
  /** What was used right before. */
  readonly before: MeterRow;
}

/** What is wrong, for health: that the ledger cannot be asked is said there already, and what callers are to do is not for those who look. */
function reasonOf(error: unknown): string {
  if (error instanceof PagegateError && error.code === 'ledger_unavailable' && error.what !== '') return error.what;
  return failureReason(error) ?? (error instanceof Error ? error.message : String(error));
}

/** Keeps the reservations of a ledger. */
export class Reserver {
  readonly #options: ReserverOptions;
  readonly #now: () => number;
  #meters = new Map<number, Meter>();
  #opened: Opened | undefined;
  #mapped: OpenCounters | undefined;
  #state: State = STATE.starting;
  #reason = 'The ledger writer is starting.';
  #revision = 0;
  #ledgerId: string | undefined;
  #hasCorrections = false;
  #lastAudit = 0;
  #lastSeen = 0;
  #savedSeen = 0;
  #commits = 0;
  #published = 0;
  #commitMs = 0;
  #nextCommitMs = 0;
  #isSuccession: boolean;

  constructor(options: ReserverOptions) {
    this.#options = options;
    this.#isSuccession = options.isSuccession ?? false;
    this.#now = options.now ?? Date.now;
  }

  /** Undefined before a ledger was opened. */
  get counters(): Counters | undefined {
    return this.#mapped?.counters;
  }

  get state(): { readonly ready: boolean; readonly reason: string } {
    return { ready: this.#state === STATE.ready, reason: this.#reason };
  }

  /** What the active accounts have used of their limits in the current cycle. */
  *usage(): Generator<NearLimit> {
    for (const { id, account, row } of this.#meters.values()) {
      if (account.state !== 'active' || account.anchor === null) continue;
      const slot = this.#mapped?.counters.view(id);
      const used = slot === undefined || slot.cycle < row.cycle ? row.used : slot.reserved - slot.left;
      const cycle = Math.max(row.cycle, slot?.cycle ?? 0);
      const isOver = cycleAt(account.anchor, this.#seconds()) > cycle;
      const limit = planIn(account, cycle)?.limit ?? 0;
      yield { account: account.name, used: isOver ? 0 : used, limit };
    }
  }

  /** Opens the ledger (again) and brings it to what is known to be used. Returns whether it can be written. */
  open(): boolean {
    this.#release();
    try {
      this.#opened = this.#connect();
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
    if (this.#opened === undefined) return false;
    const steps: Step[] = [];
    // Each once: a step is what is added.
    for (const id of new Set(accountIds)) {
      const meter = this.#meters.get(id);
      if (meter === undefined) continue;
      meter.isActive = true;
      const step = this.#next(meter, true);
      if (step !== undefined) steps.push(step);
    }
    return this.#commit(steps);
  }

  /** What is due a few times a second: changes of accounts, the clock, the files, usage, recovery after a failure. */
  tick(): void {
    const nowMs = this.#now();
    if (this.#opened === undefined) {
      this.open();
      this.#publishHealth();
      return;
    }
    this.publishChanges();
    if (this.#hasCorrections) this.#correct(this.#opened);
    if (nowMs >= this.#nextCommitMs || nowMs < this.#nextCommitMs - 2 * COMMIT_MS) {
      this.#nextCommitMs = nowMs + COMMIT_MS;
      if (this.#lookAtFiles(this.#opened)) {
        const active = [...this.#meters.values()].filter(({ isActive }) => isActive);
        this.#commit(active.flatMap((meter) => this.#next(meter, false) ?? []));
      }
    } else if (this.#state === STATE.failed) this.#commit([]);
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
      this.#lastSeen = Math.max(this.#lastSeen, opened.read.lastSeenSeconds());
      for (const account of changed.accounts) this.#take(opened, account);
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
      const { counters } = this.#mapped;
      const { ledgerId } = this.#opened;
      const steps = [...this.#meters.values()].flatMap((meter): Step[] => {
        const slot = counters.take(meter.id);
        if (slot === undefined) return [];
        const row = this.#usedBy(meter, slot);
        return [{ meter, row: { ...row, reserved: row.used } }];
      });
      // Then the ledger knows all, and the counters hold nothing more.
      isDurable = this.#commit(steps);
      if (isDurable) removeCounters(this.#options.file, ledgerId);
    }
    this.abandon();
    return isDurable;
  }

  /** Commits what was used by now and lets go of the ledger; workers go on charging what is reserved, and the successor goes on from there. */
  handOver(): void {
    const active = [...this.#meters.values()].filter(({ isActive }) => isActive);
    if (this.#opened !== undefined) this.#commit(active.flatMap((meter) => this.#next(meter, true) ?? []));
    this.abandon();
  }

  /**
   * How accounts stand, exact at this moment.
   *
   * @param which `active` are those that somebody may be spending; `all` are also those that have spent anything in their cycle.
   */
  standing(which: 'active' | 'all' | Iterable<number> = 'active'): Standing[] {
    const meters = [...this.#meters.values()];
    if (which === 'active') return meters.flatMap((meter) => (meter.isActive ? this.#standingOf(meter) : []));
    if (which === 'all')
      return meters.flatMap((meter) => (meter.isActive || meter.row.reserved > 0 ? this.#standingOf(meter) : []));
    return [...which].flatMap((id) => {
      const meter = this.#meters.get(id);
      return meter === undefined ? [] : this.#standingOf(meter);
    });
  }

  #standingOf({ id, account, row, rate, ended }: Meter): Standing[] {
    const slot = this.#mapped?.counters.view(id);
    if (slot === undefined || slot.cycle !== row.cycle) return [];
    const { cycle, reserved } = row;
    const used = Math.max(row.used, slot.reserved - slot.left);
    return [{ account, cycle, used, reserved, total: row.total + used - row.used, perSecond: rate.perSecond, ended }];
  }

  /**
   * Gives up what is reserved for accounts and not used; nobody spends more of it until {@link reserve} is asked again.
   *
   * @returns whether that is durable: only then others may have it.
   */
  giveBack(accountIds: Iterable<number>): boolean {
    if (this.#opened === undefined || this.#mapped === undefined) return false;
    const { counters } = this.#mapped;
    const steps = [...accountIds].flatMap((id): Step[] => {
      const meter = this.#meters.get(id);
      const slot = meter === undefined ? undefined : counters.take(id);
      if (meter === undefined || slot === undefined || slot.cycle !== meter.row.cycle) return [];
      const row = this.#usedBy(meter, slot);
      return [{ meter, row: { ...row, reserved: row.used } }];
    });
    return this.#commit(steps);
  }

  /** Ends all charging from what is reserved, for good: it is not this host's any more. */
  forfeit(): void {
    this.#withdraw();
    if (this.#opened !== undefined) removeCounters(this.#options.file, this.#opened.ledgerId);
    this.abandon();
  }

  /** Lets go of the ledger as it is; the next reserver goes on from there. */
  abandon(): void {
    this.#release();
    this.#mapped?.close();
    this.#mapped = undefined;
  }

  #connect(): Opened {
    const { file, busyTimeoutMs = BUSY_TIMEOUT_MS } = this.#options;
    refuseLostLedger(file, this.#ledgerId);
    setEarlierLogAside(file, this.#now());
    const isKnown = this.#ledgerId !== undefined || readIdentity(file) !== undefined;
    const database = openDatabase(file, { mustExist: isKnown, isLocked: true, busyTimeoutMs });
    try {
      const read = createReader(database);
      const ledgerId = read.ledgerId();
      refuseForeignLedger(file, ledgerId);
      refuseMovedLedger(file, read.movedTo());
      this.#ledgerId = ledgerId;
      return {
        database,
        read,
        meters: createMeterStore(database),
        watch: new FileWatch(file),
        ledgerId,
      };
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #load({ read, meters }: Opened): void {
    // Before the accounts: what changes meanwhile is read again.
    this.#revision = read.revision();
    this.#lastAudit = read.lastAudit();
    this.#hasCorrections = true;
    const known = this.#meters;
    const rows = new Map(meters.all().map(({ id, ...row }) => [id, row]));
    this.#meters = new Map();
    for (const account of read.allAccounts()) {
      const { id, anchor } = account;
      const row = rows.get(id);
      if (row === undefined || anchor === null) continue;
      const { rate = new ChargeRate(), isActive = false, ended } = known.get(id) ?? {};
      this.#meters.set(id, { id, account, row, rate, isActive, ...(ended === undefined ? {} : { ended }) });
    }
    this.#commits = meters.commits();
    const saved = read.lastSeenSeconds();
    this.#savedSeen = saved;
    this.#lastSeen = Math.max(this.#lastSeen, saved === 0 ? this.#seconds() : saved);
  }

  /** Maps the counters, or makes them anew, and brings ledger and counters to the greater of their counts. */
  #openCounters({ ledgerId }: Opened): void {
    const { file, onNewCounters } = this.#options;
    noteIdentity(file, ledgerId);
    const before = this.#mapped;
    const isCurrent = before?.isCurrent() === true;
    // Of counters whose file is gone this process still has the memory; nobody charges there after this.
    if (!isCurrent) this.#withdraw();
    const known = before ?? openCounters(file, ledgerId);
    const mapped = isCurrent || before === undefined ? known : undefined;
    this.#mapped = mapped ?? createCounters(file, ledgerId);
    const steps = [...this.#meters.values()].map((meter): Step => {
      const slot = known?.counters.view(meter.id);
      if (slot !== undefined && slot.left > 0) meter.isActive = true;
      const row = this.#knownUsage(meter, slot);
      const isPublished = mapped !== undefined && slot !== undefined && row.used === slot.reserved - slot.left;
      const isDamaged = slot === undefined && known !== undefined;
      const jump = isDamaged ? 'ledger.repair_slot' : isPublished && this.#isSuccession ? undefined : 'ledger.recover';
      return {
        meter,
        row,
        ...(jump === undefined ? {} : { jump }),
        ...(isPublished ? {} : { publish: () => this.#reset(meter) }),
      };
    });
    const isDurable = this.#commit(steps);
    if (known !== this.#mapped) known?.close();
    if (mapped === undefined) onNewCounters?.();
    if (!isDurable) throw new PagegateError('ledger_unavailable', this.#reason);
    // Now there is a log, too.
    noteIdentity(file, ledgerId);
  }

  /** An account that a command has made or changed: taken over, and published with its limit. */
  #take({ meters }: Opened, account: Account): void {
    const { id, anchor } = account;
    const known = this.#meters.get(id);
    if (known !== undefined) known.account = account;
    else if (anchor !== null) {
      const row = meters.one(id);
      if (row === undefined) throw new PagegateError('ledger_unavailable', `Account ${id} has no meter.`);
      const meter = { id, account, row, rate: new ChargeRate(), isActive: false };
      this.#meters.set(id, meter);
      this.#reset(meter);
    }
    const slot = known === undefined ? undefined : this.#mapped?.counters.view(id);
    if (known === undefined || slot === undefined) return;
    const { limit } = this.#allowance(account, slot.cycle);
    if (limit !== slot.limit) this.#mapped?.counters.publish(id, { ...slot, limit }, 0);
  }

  #knownUsage({ account, row }: Meter, slot: SlotView | undefined): MeterRow {
    const latest = Math.max(this.#seconds(), this.#lastSeen) + SAVE_SEEN_SECONDS + CLOCK_LEAP_SECONDS;
    return knownUsage(row, slot, { today: this.#today(), latestCycle: cycleAt(account.anchor!, latest) });
  }

  /** Publishes an account without anything to spend. */
  #reset({ id, account, row }: Meter): void {
    const { limit } = this.#allowance(account, row.cycle);
    this.#mapped?.counters.reset(id, { cycle: row.cycle, limit, reserved: row.used, left: 0 });
  }

  #allowance(account: Account, cycle: number): Allowance {
    const limit = planIn(account, cycle)?.limit ?? 0;
    return this.#options.allowance?.(account, cycle) ?? { limit, granted: limit };
  }

  /** The row with what a slot says was used in its cycle. */
  #usedBy({ row }: Meter, slot: SlotView): MeterRow {
    if (slot.cycle !== row.cycle) return row;
    const used = Math.max(row.used, slot.reserved - slot.left);
    return used === row.used ? row : { ...charged(row, used - row.used, this.#today()), used };
  }

  /** What to reserve for an account now, or else what it has used since; undefined where nothing is to be done. */
  #next(meter: Meter, isAsked: boolean): Step | undefined {
    const { account, id, row: before } = meter;
    const { counters } = this.#mapped!;
    const slot = counters.view(id);
    const used = slot === undefined ? 0 : slot.reserved - slot.left;
    const isOurs = slot?.cycle === before.cycle && used >= before.used && slot.reserved <= before.reserved;
    if (slot === undefined || !(isOurs || slot.cycle < before.cycle)) return this.#repair(meter);
    const row = this.#usedBy(meter, slot);
    meter.rate.observe(row.used, this.#now());
    const cycle = Math.max(row.cycle, cycleAt(account.anchor!, this.#seconds()));
    const { limit, granted } = this.#allowance(account, cycle);
    const usage = row === before ? undefined : { meter, row };
    if (account.state !== 'active' || this.#clockProblem() !== undefined) return usage;
    if (cycle > row.cycle) return this.#nextCycle(meter, cycle, { limit, granted });
    const block = blockSize(meter.rate.perSecond, limit);
    const isLow = 2 * (row.reserved - row.used) <= block;
    const reserved = isLow ? Math.max(row.reserved, Math.min(row.used + block, granted)) : row.reserved;
    const published = slot.cycle === cycle ? slot.reserved : row.used;
    const isPublished = reserved === published && slot.cycle === cycle && limit === slot.limit;
    if (isPublished && !isAsked) return usage;
    // Published anew, what is left is a block of its own, of which half must be gone before the next question.
    const publish = (): void => void counters.publish(id, { cycle, limit, reserved }, reserved - published);
    return isPublished ? { meter, row: before, publish } : { meter, row: { ...row, reserved }, publish };
  }

  /** A slot that holds what we never wrote: refused by the workers, and set right here. */
  #repair(meter: Meter): Step {
    const row = this.#knownUsage(meter, undefined);
    return { meter, row, jump: 'ledger.repair_slot', publish: () => this.#reset(meter) };
  }

  /** Only here a cycle begins, and with it its first block: nothing is reserved before the boundary. */
  #nextCycle(meter: Meter, cycle: number, { limit, granted }: Allowance): Step {
    const { counters } = this.#mapped!;
    const over = counters.take(meter.id);
    if (over === undefined) return this.#repair(meter);
    const row = this.#usedBy(meter, over);
    const reserved = Math.min(blockSize(meter.rate.perSecond, limit), granted);
    const publish = (): void => {
      meter.ended = { cycle: row.cycle, used: row.used };
      counters.publish(meter.id, { cycle, limit, reserved }, reserved);
    };
    return { meter, row: { ...row, cycle, used: 0, reserved }, publish };
  }

  /** Applies the corrections that operators have asked for. */
  #correct({ meters }: Opened): void {
    this.#hasCorrections = false;
    for (const { id, accountId, cycle, used, credit } of meters.corrections()) {
      const meter = this.#meters.get(accountId);
      const slot = this.#mapped?.counters.take(accountId);
      if (meter === undefined) continue;
      const row = slot === undefined ? this.#knownUsage(meter, undefined) : this.#usedBy(meter, slot);
      const lookups = Math.max(0, (used ?? (cycle === null ? row.used : 0)) - credit);
      const after = { ...row, cycle: cycle ?? row.cycle, used: lookups, reserved: lookups };
      const step: Step = { meter, row: after, publish: () => this.#reset(meter) };
      if (!this.#commit([step], { id, before: row })) this.#hasCorrections = true;
    }
  }

  /** Makes steps durable, all or none, and publishes them. */
  #commit(steps: readonly Step[], correction?: AppliedCorrection): boolean {
    const opened = this.#opened;
    if (opened === undefined) return false;
    const seconds = this.#seconds();
    try {
      const problem = this.#clockProblem();
      if (problem !== undefined) throw new PagegateError('ledger_unavailable', problem);
      const changed = steps.filter(({ meter, row }) => row !== meter.row);
      const isMinuteOver = seconds >= this.#savedSeen + SAVE_SEEN_SECONDS;
      // Writing anything at all is also how a recovery is proved.
      if (changed.length > 0 || isMinuteOver || this.#state !== STATE.ready)
        this.#write(opened, changed, seconds, correction);
    } catch (error) {
      this.#fail(error);
      this.#reload(opened, steps);
      return false;
    }
    for (const { meter, row } of steps) meter.row = row;
    for (const { publish } of steps) publish?.();
    this.#published = this.#commits;
    this.#lastSeen = Math.max(this.#lastSeen, seconds);
    this.#state = STATE.ready;
    this.#reason = '';
    this.#publishHealth();
    return true;
  }

  #write({ database, meters }: Opened, steps: readonly Step[], seconds: number, correction?: AppliedCorrection): void {
    const startedMs = performance.now();
    database
      .transaction(() => {
        for (const { meter, row, jump } of steps) {
          if (correction === undefined) meters.save(meter.id, meter.row, row);
          else {
            // What was charged by now belongs to its day and to the total, whatever the correction makes of the cycle.
            meters.save(meter.id, meter.row, correction.before);
            meters.correct(meter.id, row, correction.id);
            meters.audit(seconds, METER_CORRECTED, meter.id, correction.before, row);
          }
          if (jump !== undefined && row.used !== meter.row.used) meters.audit(seconds, jump, meter.id, meter.row, row);
        }
        meters.saveCommit(this.#commits + 1, seconds);
        if (dayOf(seconds) !== dayOf(this.#savedSeen)) meters.forgetDaysBefore(dayOf(seconds) - USAGE_DAYS);
      })
      .immediate();
    this.#commits += 1;
    this.#savedSeen = seconds;
    this.#commitMs = performance.now() - startedMs;
  }

  /** Whether a failed commit reached the disk is not known: what it was about is read anew. */
  #reload({ meters }: Opened, steps: readonly Step[]): void {
    try {
      for (const { meter } of steps) meter.row = meters.one(meter.id) ?? meter.row;
      this.#commits = meters.commits();
    } catch {
      this.#release();
    }
  }

  /** Looks whether the files are still ours; returns whether work can go on. */
  #lookAtFiles({ database, watch }: Opened): boolean {
    try {
      const found = watch.look();
      if (found === 'intact' && this.#mapped?.isCurrent() === true) return true;
      // SQLite still has the removed log open: what it holds goes into the file, and a new log begins.
      if (found === 'log_removed') database.pragma('wal_checkpoint(TRUNCATE)');
    } catch (error) {
      this.#withdraw();
      this.#fail(error);
    }
    this.open();
    return false;
  }

  /** Takes what is left out of all slots: what was used is then exact, and nobody charges. */
  #withdraw(): void {
    for (let id = 1; id < SLOT_COUNT; id += 1) this.#mapped?.counters.take(id);
  }

  /** The same where the ledger is lost, also before it was ever opened by this process. */
  #withdrawLost(): void {
    const { file } = this.#options;
    const identity = this.#mapped === undefined ? readIdentity(file) : undefined;
    if (identity !== undefined) this.#mapped = openCounters(file, identity.ledgerId);
    this.#withdraw();
  }

  #clockProblem(): string | undefined {
    return clockProblem(this.#lastSeen, this.#seconds());
  }

  #fail(error: unknown): void {
    this.#reason = reasonOf(error);
    this.#state = STATE.failed;
    this.#publishHealth();
  }

  /** Writes what only we write into the counters, again and again: whatever became of it there is right a moment later. */
  #publishHealth(): void {
    const counters = this.#mapped?.counters;
    if (counters === undefined) return;
    const { watch } = this.#opened ?? {};
    counters.status = {
      heartbeatMs: this.#now(),
      commits: this.#published,
      commitMs: this.#commitMs,
      walBytes: watch?.logSizeBytes() ?? 0,
    };
    const fleet = this.#options.fleet?.();
    counters.fleet = fleet ?? NO_FLEET;
    const reason = this.#reason || (fleet?.problem ?? '');
    counters.lastSeenSeconds = Math.max(this.#lastSeen, this.#clockProblem() === undefined ? this.#seconds() : 0);
    if (counters.reason !== reason) counters.reason = reason;
    counters.state = this.#state;
    if (this.#opened !== undefined && this.#revision !== counters.revision) counters.revision = this.#revision;
  }

  #release(): void {
    this.#opened?.database.close();
    this.#opened = undefined;
  }

  #seconds(): number {
    return Math.floor(this.#now() / 1000);
  }

  #today(): number {
    return dayOf(this.#seconds());
  }
}
