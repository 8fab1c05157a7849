/**
 * The ledger writer's state of all accounts: what is used and reserved, and what to reserve next. This class only decides. Its methods return
 * changes; the reserver first makes them durable and then publishes them, in this order.
 */
import { PagegateError } from '../../errors.ts';
import type { Counters, SlotView } from '../counters/counters.ts';
import { cycleAt } from '../cycle.ts';
import { type Account, type CycleUsage, planIn } from '../quota.ts';
import { charged, knownUsage, type MeterRow, type MeterStore, type RequestedCorrection } from '../store/meters.ts';
import { blockSize, ChargeRate } from './block-size.ts';
import type { NearLimit } from './near-limits.ts';
import type { WriterClock } from './writer-clock.ts';

/** How many lookups of an account's cycle this host may reserve. */
export interface Allowance {
  /** The most that this host can use in the cycle: the account's limit, less what other hosts have used. */
  readonly limit: number;
  /** Lookups of the cycle that this host may reserve without asking the fleet's database for more. */
  readonly granted: number;
}

/** An account's usage and reservation in its cycle. */
export interface AccountStanding {
  readonly account: Account;
  readonly cycle: number;
  readonly used: number;
  readonly reserved: number;
  /** All lookups ever charged on this host. */
  readonly total: number;
  /** The recent rate, in lookups per second. */
  readonly perSecond: number;
  /** The latest cycle that ended while this process ran, and its usage; undefined if there is none. */
  readonly ended: CycleUsage | undefined;
}

/** The durable meter of an account with a plan, and the rate of its charges. */
interface AccountMeter {
  readonly id: number;
  account: Account;
  row: MeterRow;
  readonly rate: ChargeRate;
  /** Workers may be spending what is reserved for it. */
  isActive: boolean;
  ended?: CycleUsage;
}

/** A change of one meter: the row to commit, and what to publish afterwards. */
export interface MeterChange {
  readonly meter: AccountMeter;
  readonly row: MeterRow;
  readonly publish?: () => void;
  /** The action for the audit table if the meter changes without charges that this process has seen. */
  readonly jump?: 'ledger.recover' | 'ledger.repair_slot';
  /** The operator's correction that this change applies, and the meter right before it. */
  readonly correction?: { readonly id: number; readonly before: MeterRow };
}

/** What is known when counters are opened or created again. */
export interface Recovery {
  /** The counters in which the workers have charged until now; undefined if there are none. */
  readonly known: Counters | undefined;
  /** Whether these counters stay in use. */
  readonly isKept: boolean;
  /** The previous ledger writer left its place in an orderly way: what was used meanwhile is not a recovery. */
  readonly isSuccession: boolean;
}

/** Keeps what is reserved for each account, and decides what to reserve next. */
export class Reservations {
  /** The counters in which the workers charge; undefined before a ledger was opened. */
  counters: Counters | undefined;
  readonly #clock: WriterClock;
  readonly #allow: ((account: Account, cycle: number) => Allowance) | undefined;
  #meters = new Map<number, AccountMeter>();

  /** @param allow returns what a fleet has granted this host; if undefined, the account's limit is the allowance. */
  constructor(clock: WriterClock, allow: ((account: Account, cycle: number) => Allowance) | undefined) {
    this.#clock = clock;
    this.#allow = allow;
  }

  /** Replaces the accounts by those of a ledger. Keeps the measured rates. */
  load(accounts: Iterable<Account>, meters: MeterStore): void {
    const known = this.#meters;
    const rows = new Map(meters.all().map(({ id, ...row }) => [id, row]));
    this.#meters = new Map();
    for (const account of accounts) {
      const { id, anchor } = account;
      const row = rows.get(id);
      if (row === undefined || anchor === null) continue;
      const { rate = new ChargeRate(), isActive = false, ended } = known.get(id) ?? {};
      this.#meters.set(id, { id, account, row, rate, isActive, ...(ended === undefined ? {} : { ended }) });
    }
  }

  /** Adds or updates an account that a command has created or changed, and publishes its limit. @throws PagegateError ledger_unavailable */
  follow(account: Account, meters: MeterStore): void {
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
    const slot = known === undefined ? undefined : this.counters?.view(id);
    if (known === undefined || slot === undefined) return;
    const { limit } = this.#allowance(account, slot.cycle);
    if (limit !== slot.limit) this.counters?.publish(id, { ...slot, limit }, 0);
  }

  /** Usage and limit of each active account in the current cycle. */
  *usage(): Generator<NearLimit> {
    for (const { id, account, row } of this.#meters.values()) {
      if (account.state !== 'active' || account.anchor === null) continue;
      const slot = this.counters?.view(id);
      const used = slot === undefined || slot.cycle < row.cycle ? row.used : slot.reserved - slot.left;
      const cycle = Math.max(row.cycle, slot?.cycle ?? 0);
      const isOver = cycleAt(account.anchor, this.#clock.seconds) > cycle;
      const limit = planIn(account, cycle)?.limit ?? 0;
      yield { account: account.name, used: isOver ? 0 : used, limit };
    }
  }

  /**
   * Returns the current usage of accounts, exact at this moment.
   *
   * @param which `active`: accounts that workers may be charging; `all`: also those with anything reserved in their cycle; or account ids.
   */
  standing(which: 'active' | 'all' | Iterable<number>): AccountStanding[] {
    const meters = [...this.#meters.values()];
    if (which === 'active') return meters.flatMap((meter) => (meter.isActive ? this.#standingOf(meter) : []));
    if (which === 'all')
      return meters.flatMap((meter) => (meter.isActive || meter.row.reserved > 0 ? this.#standingOf(meter) : []));
    return this.#metersOf(which).flatMap((meter) => this.#standingOf(meter));
  }

  #standingOf({ id, account, row, rate, ended }: AccountMeter): AccountStanding[] {
    const slot = this.counters?.view(id);
    if (slot === undefined || slot.cycle !== row.cycle) return [];
    const { cycle, reserved } = row;
    const used = Math.max(row.used, slot.reserved - slot.left);
    return [{ account, cycle, used, reserved, total: row.total + used - row.used, perSecond: rate.perSecond, ended }];
  }

  /** Returns what to reserve for accounts that have run low. Workers are waiting for it. */
  reserve(accountIds: Iterable<number>): MeterChange[] {
    // Each account only once: publishing a change adds lookups, so applying it twice would add too many.
    return this.#metersOf(new Set(accountIds)).flatMap((meter) => {
      meter.isActive = true;
      return this.#next(meter, true) ?? [];
    });
  }

  /**
   * Returns, for each account that workers may be charging, what to reserve, or otherwise what it has used since.
   *
   * @param isRequested workers are waiting for it.
   */
  reserveActive(isRequested: boolean): MeterChange[] {
    const active = [...this.#meters.values()].filter(({ isActive }) => isActive);
    return active.flatMap((meter) => this.#next(meter, isRequested) ?? []);
  }

  /** Gives up what is reserved for accounts and not used. Workers cannot spend it from now on. */
  giveBack(accountIds: Iterable<number>): MeterChange[] {
    return this.#metersOf(accountIds).flatMap((meter) => {
      const slot = this.counters?.withdraw(meter.id);
      return slot?.cycle === meter.row.cycle ? this.#reserveOnlyUsed(meter, slot) : [];
    });
  }

  /** Does the same for all accounts, at the end. */
  giveAllBack(): MeterChange[] {
    return [...this.#meters.values()].flatMap((meter) => {
      const slot = this.counters?.withdraw(meter.id);
      return slot === undefined ? [] : this.#reserveOnlyUsed(meter, slot);
    });
  }

  /** The change after which exactly what was used is reserved. */
  #reserveOnlyUsed(meter: AccountMeter, withdrawn: SlotView): MeterChange {
    const row = this.#usedBy(meter, withdrawn);
    return { meter, row: { ...row, reserved: row.used } };
  }

  /** Returns changes that set all meters to what was used according to the ledger and the counters. */
  recover({ known, isKept, isSuccession }: Recovery): MeterChange[] {
    return [...this.#meters.values()].map((meter): MeterChange => {
      const slot = known?.view(meter.id);
      if (slot !== undefined && slot.left > 0) meter.isActive = true;
      const row = this.#knownUsage(meter, slot);
      const isPublished = isKept && slot !== undefined && row.used === slot.reserved - slot.left;
      const isDamaged = slot === undefined && known !== undefined;
      const jump = isDamaged ? 'ledger.repair_slot' : isPublished && isSuccession ? undefined : 'ledger.recover';
      return {
        meter,
        row,
        ...(jump === undefined ? {} : { jump }),
        ...(isPublished ? {} : { publish: () => this.#reset(meter) }),
      };
    });
  }

  /**
   * Returns the change that applies an operator's correction; undefined if the account has no meter. Also invalidates the account's slot,
   * which may show more usage than the corrected meter: if this process died after the commit, the next one would trust the slot.
   */
  correct({ id, accountId, cycle, used, credit }: RequestedCorrection): MeterChange | undefined {
    const meter = this.#meters.get(accountId);
    const slot = this.counters?.withdraw(accountId);
    if (meter === undefined) return undefined;
    const before = slot === undefined ? this.#knownUsage(meter, undefined) : this.#usedBy(meter, slot);
    this.counters?.forget(accountId);
    const lookups = Math.max(0, (used ?? (cycle === null ? before.used : 0)) - credit);
    const row = { ...before, cycle: cycle ?? before.cycle, used: lookups, reserved: lookups };
    return { meter, row, publish: () => this.#reset(meter), correction: { id, before } };
  }

  /** Returns what to reserve for an account now, or otherwise what it has used since; undefined if there is nothing to do. */
  #next(meter: AccountMeter, isRequested: boolean): MeterChange | undefined {
    const { account, id, row: before } = meter;
    const counters = this.counters!;
    const slot = counters.view(id);
    if (slot === undefined || !isPublishedFrom(before, slot)) return this.#repair(meter);
    const row = this.#usedBy(meter, slot);
    meter.rate.observe(row.used, this.#clock.nowMs());
    const cycle = Math.max(row.cycle, cycleAt(account.anchor!, this.#clock.seconds));
    const { limit, granted } = this.#allowance(account, cycle);
    const usage = row === before ? undefined : { meter, row };
    if (account.state !== 'active' || this.#clock.problem !== undefined) return usage;
    if (cycle > row.cycle) return this.#nextCycle(meter, cycle, { limit, granted });
    const block = blockSize(meter.rate.perSecond, limit);
    const isLow = 2 * (row.reserved - row.used) <= block;
    const reserved = isLow ? Math.max(row.reserved, Math.min(row.used + block, granted)) : row.reserved;
    const published = slot.cycle === cycle ? slot.reserved : row.used;
    const isPublished = reserved === published && slot.cycle === cycle && limit === slot.limit;
    if (isPublished && !isRequested) return usage;
    // Publishing again makes what is left a block of its own. The workers ask again only when half of it is used.
    const publish = (): void => void counters.publish(id, { cycle, limit, reserved }, reserved - published);
    return isPublished ? { meter, row: before, publish } : { meter, row: { ...row, reserved }, publish };
  }

  /** Begins a cycle with its first block. Nothing else does, so nothing is reserved before the cycle begins. */
  #nextCycle(meter: AccountMeter, cycle: number, { limit, granted }: Allowance): MeterChange {
    const counters = this.counters!;
    const ended = counters.withdraw(meter.id);
    if (ended === undefined) return this.#repair(meter);
    const row = this.#usedBy(meter, ended);
    const reserved = Math.min(blockSize(meter.rate.perSecond, limit), granted);
    const publish = (): void => {
      meter.ended = { cycle: row.cycle, used: row.used };
      counters.publish(meter.id, { cycle, limit, reserved }, reserved);
    };
    return { meter, row: { ...row, cycle, used: 0, reserved }, publish };
  }

  /** Repairs a slot that holds what this process never wrote. Workers refuse to charge in it. */
  #repair(meter: AccountMeter): MeterChange {
    const row = this.#knownUsage(meter, undefined);
    return { meter, row, jump: 'ledger.repair_slot', publish: () => this.#reset(meter) };
  }

  #metersOf(accountIds: Iterable<number>): AccountMeter[] {
    return [...accountIds].flatMap((id) => this.#meters.get(id) ?? []);
  }

  #knownUsage({ account, row }: AccountMeter, slot: SlotView | undefined): MeterRow {
    const latestCycle = cycleAt(account.anchor!, this.#clock.latestPossibleSeconds);
    return knownUsage(row, slot, { today: this.#clock.today, latestCycle });
  }

  /** Returns the row with the usage of a slot, if the slot is of the same cycle. */
  #usedBy({ row }: AccountMeter, slot: SlotView): MeterRow {
    if (slot.cycle !== row.cycle) return row;
    const used = Math.max(row.used, slot.reserved - slot.left);
    return used === row.used ? row : { ...charged(row, used - row.used, this.#clock.today), used };
  }

  /** Publishes an account with nothing left to spend. */
  #reset({ id, account, row }: AccountMeter): void {
    const { limit } = this.#allowance(account, row.cycle);
    this.counters?.reset(id, { cycle: row.cycle, limit, reserved: row.used, left: 0 });
  }

  #allowance(account: Account, cycle: number): Allowance {
    const limit = planIn(account, cycle)?.limit ?? 0;
    return this.#allow?.(account, cycle) ?? { limit, granted: limit };
  }
}

/** Whether the content of a slot can result from publishing a row and charging since. A slot of an earlier cycle always can. */
function isPublishedFrom(row: MeterRow, slot: SlotView): boolean {
  if (slot.cycle !== row.cycle) return slot.cycle < row.cycle;
  return slot.reserved - slot.left >= row.used && slot.reserved <= row.reserved;
}
