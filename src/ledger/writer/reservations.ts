/**
 * The accounts of a ledger as the ledger writer knows them: what is used and reserved of each, and what to reserve next. It decides: each of
 * its steps is a change that the reserver makes durable first and publishes afterwards, in this order.
 */
import { PagegateError } from '../../errors.ts';
import type { Counters, SlotView } from '../counters/counters.ts';
import { cycleAt } from '../cycle.ts';
import { type Account, type CycleUsage, planIn } from '../quota.ts';
import { charged, knownUsage, type MeterRow, type MeterStore, type RequestedCorrection } from '../store/meters.ts';
import { blockSize, ChargeRate } from './block-size.ts';
import type { NearLimit } from './near-limits.ts';
import type { WriterClock } from './writer-clock.ts';

/** How much of an account's cycle this host may reserve. */
export interface Allowance {
  /** The most that this host can come to in the cycle: the account's limit, less what other hosts have used. */
  readonly limit: number;
  /** Lookups that this host may reserve without asking further. */
  readonly granted: number;
}

export interface AccountStanding {
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

/** An account with a plan, as it is durable, and how fast it is used. */
interface AccountMeter {
  readonly id: number;
  account: Account;
  row: MeterRow;
  readonly rate: ChargeRate;
  /** Somebody may be spending what is reserved for it. */
  isActive: boolean;
  ended?: CycleUsage;
}

/** What a commit makes durable for one account, and what is published afterwards. */
export interface MeterChange {
  readonly meter: AccountMeter;
  readonly row: MeterRow;
  readonly publish?: () => void;
  /** Why the meter jumps: a line of the audit. */
  readonly jump?: 'ledger.recover' | 'ledger.repair_slot';
  /** The operator's correction that is applied with it, and what was used right before. */
  readonly correction?: { readonly id: number; readonly before: MeterRow };
}

/** What is known where counters are opened, or made again. */
export interface Recovery {
  /** What the workers have charged in until now; undefined where nobody knows. */
  readonly known: Counters | undefined;
  /** Those stay in use. */
  readonly isKept: boolean;
  /** The ledger writer before left its place: what was used meanwhile is no recovery. */
  readonly isSuccession: boolean;
}

/** What is reserved for each account, and what to reserve next. */
export class Reservations {
  /** What the workers charge in; undefined before a ledger was opened. */
  counters: Counters | undefined;
  readonly #clock: WriterClock;
  readonly #allow: ((account: Account, cycle: number) => Allowance) | undefined;
  #meters = new Map<number, AccountMeter>();

  /** @param allow who grants lookups to this host; the account's limit alone where it is undefined. */
  constructor(clock: WriterClock, allow: ((account: Account, cycle: number) => Allowance) | undefined) {
    this.#clock = clock;
    this.#allow = allow;
  }

  /** Takes the accounts as a ledger has them; how fast each is used stays known. */
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

  /** An account that a command has made or changed: taken over, and published with its limit. @throws PagegateError ledger_unavailable */
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

  /** What the active accounts have used of their limits in the current cycle. */
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
   * How accounts stand, exact at this moment.
   *
   * @param which `active` are those that somebody may be spending; `all` are also those that have spent anything in their cycle.
   */
  standing(which: 'active' | 'all' | Iterable<number>): AccountStanding[] {
    const meters = [...this.#meters.values()];
    if (which === 'active') return meters.flatMap((meter) => (meter.isActive ? this.#standingOf(meter) : []));
    if (which === 'all')
      return meters.flatMap((meter) => (meter.isActive || meter.row.reserved > 0 ? this.#standingOf(meter) : []));
    return this.#some(which).flatMap((meter) => this.#standingOf(meter));
  }

  #standingOf({ id, account, row, rate, ended }: AccountMeter): AccountStanding[] {
    const slot = this.counters?.view(id);
    if (slot === undefined || slot.cycle !== row.cycle) return [];
    const { cycle, reserved } = row;
    const used = Math.max(row.used, slot.reserved - slot.left);
    return [{ account, cycle, used, reserved, total: row.total + used - row.used, perSecond: rate.perSecond, ended }];
  }

  /** What to reserve for accounts that have run low: the workers are waiting for it. */
  reserve(accountIds: Iterable<number>): MeterChange[] {
    // Each once: a step is what is added.
    return this.#some(new Set(accountIds)).flatMap((meter) => {
      meter.isActive = true;
      return this.#next(meter, true) ?? [];
    });
  }

  /**
   * What to reserve for the accounts that somebody may be spending, or else what each has used since.
   *
   * @param isAsked the workers are waiting for it.
   */
  reserveActive(isAsked: boolean): MeterChange[] {
    const active = [...this.#meters.values()].filter(({ isActive }) => isActive);
    return active.flatMap((meter) => this.#next(meter, isAsked) ?? []);
  }

  /** Gives up what is reserved for accounts and not used; nobody spends more of it from now on. */
  giveBack(accountIds: Iterable<number>): MeterChange[] {
    return this.#some(accountIds).flatMap((meter) => {
      const slot = this.counters?.withdraw(meter.id);
      return slot?.cycle === meter.row.cycle ? this.#exactly(meter, slot) : [];
    });
  }

  /** The same for all accounts, at the end. */
  giveAllBack(): MeterChange[] {
    return [...this.#meters.values()].flatMap((meter) => {
      const slot = this.counters?.withdraw(meter.id);
      return slot === undefined ? [] : this.#exactly(meter, slot);
    });
  }

  /** What was used, and nothing reserved beyond it. */
  #exactly(meter: AccountMeter, withdrawn: SlotView): MeterChange {
    const row = this.#usedBy(meter, withdrawn);
    return { meter, row: { ...row, reserved: row.used } };
  }

  /** Brings all accounts to what is known to be used, in the ledger and in the counters. */
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
   * What an operator has asked for; undefined where the account has no meter. Its slot holds more than the meter will: where this process
   * dies behind the commit, the next one would believe the slot.
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

  /** What to reserve for an account now, or else what it has used since; undefined where nothing is to be done. */
  #next(meter: AccountMeter, isAsked: boolean): MeterChange | undefined {
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
    if (isPublished && !isAsked) return usage;
    // Published again, what is left is a block of its own, of which half must be gone before the next question.
    const publish = (): void => void counters.publish(id, { cycle, limit, reserved }, reserved - published);
    return isPublished ? { meter, row: before, publish } : { meter, row: { ...row, reserved }, publish };
  }

  /** Only here a cycle begins, and with it its first block: nothing is reserved before the boundary. */
  #nextCycle(meter: AccountMeter, cycle: number, { limit, granted }: Allowance): MeterChange {
    const counters = this.counters!;
    const over = counters.withdraw(meter.id);
    if (over === undefined) return this.#repair(meter);
    const row = this.#usedBy(meter, over);
    const reserved = Math.min(blockSize(meter.rate.perSecond, limit), granted);
    const publish = (): void => {
      meter.ended = { cycle: row.cycle, used: row.used };
      counters.publish(meter.id, { cycle, limit, reserved }, reserved);
    };
    return { meter, row: { ...row, cycle, used: 0, reserved }, publish };
  }

  /** A slot that holds what we never wrote: refused by the workers, and set right here. */
  #repair(meter: AccountMeter): MeterChange {
    const row = this.#knownUsage(meter, undefined);
    return { meter, row, jump: 'ledger.repair_slot', publish: () => this.#reset(meter) };
  }

  #some(accountIds: Iterable<number>): AccountMeter[] {
    return [...accountIds].flatMap((id) => this.#meters.get(id) ?? []);
  }

  #knownUsage({ account, row }: AccountMeter, slot: SlotView | undefined): MeterRow {
    const latestCycle = cycleAt(account.anchor!, this.#clock.latestPossibleSeconds);
    return knownUsage(row, slot, { today: this.#clock.today, latestCycle });
  }

  /** The row with what a slot says was used in its cycle. */
  #usedBy({ row }: AccountMeter, slot: SlotView): MeterRow {
    if (slot.cycle !== row.cycle) return row;
    const used = Math.max(row.used, slot.reserved - slot.left);
    return used === row.used ? row : { ...charged(row, used - row.used, this.#clock.today), used };
  }

  /** Publishes an account without anything to spend. */
  #reset({ id, account, row }: AccountMeter): void {
    const { limit } = this.#allowance(account, row.cycle);
    this.counters?.reset(id, { cycle: row.cycle, limit, reserved: row.used, left: 0 });
  }

  #allowance(account: Account, cycle: number): Allowance {
    const limit = planIn(account, cycle)?.limit ?? 0;
    return this.#allow?.(account, cycle) ?? { limit, granted: limit };
  }
}

/** Whether a slot can be what was published of a row, and charged in since; of an earlier cycle anything can. */
function isPublishedFrom(row: MeterRow, slot: SlotView): boolean {
  if (slot.cycle !== row.cycle) return slot.cycle < row.cycle;
  return slot.reserved - slot.left >= row.used && slot.reserved <= row.reserved;
}
