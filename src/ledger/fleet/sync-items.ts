/** What a node reports to the engine about each account, and requests: how much it holds, has spent, and wants to hold. */
import { LIMITS } from '../../limits.ts';
import type { SyncItem, SyncReply } from '../postgres/sync.ts';
import type { AccountStanding } from '../writer/reservations.ts';
import type { Reserver } from '../writer/reserver.ts';
import type { HeldGrant, HeldGrants } from './held-grants.ts';

/** How long a block should last at the account's recent rate, in seconds. More is requested when half is left. */
const BLOCK_SECONDS = 4;
/** An account counts as active if it was charged within this time, in milliseconds. */
const ACTIVE_MS = 1_000;
/** If an account was not charged for this long, in milliseconds, its lookups are given back. An account at its limit is reported this often. */
const IDLE_MS = 30_000;

/** Decides what the next message contains, and applies what its answer grants. */
export class SyncItems {
  readonly #grants: HeldGrants;
  readonly #reserver: Reserver;
  /** Accounts that run low, and may have requests waiting. */
  #requested = new Set<number>();
  /** Accounts whose lookups other nodes need. */
  #recalled = new Set<number>();
  /** Accounts that an operator has changed. */
  #changed = new Set<number>();

  constructor(grants: HeldGrants, reserver: Reserver) {
    this.#grants = grants;
    this.#reserver = reserver;
  }

  /** Whether the next message will request more. */
  get hasRequests(): boolean {
    return this.#requested.size > 0;
  }

  /** Notes accounts that operators have changed, so that the next answer shows what is left of them. */
  changed(accountIds: readonly number[]): void {
    for (const id of accountIds) this.#changed.add(id);
  }

  /** Requests more with the next message if an account runs low. */
  requestIfLow(standing: AccountStanding): void {
    if (this.#isLow(standing)) this.#requested.add(standing.account.id);
  }

  /**
   * Returns what to report now. Before that, makes durable what the node gives back. Call it once per round.
   *
   * @param isFull reports everything, not only what has changed.
   */
  collect(isFull: boolean): SyncItem[] {
    const reserver = this.#reserver;
    const nowMs = performance.now();
    const requested = this.#requested;
    const recalled = this.#recalled;
    const changed = this.#changed;
    this.#requested = new Set();
    this.#recalled = new Set();
    this.#changed = new Set();
    const standings = new Map(reserver.standing(isFull ? 'all' : 'active').map((each) => [each.account.id, each]));
    // The engine may have granted something of which this node never heard. That is given back, too.
    for (const each of reserver.standing(recalled)) standings.set(each.account.id, each);
    const returning = new Set<number>();
    for (const [id, { cycle, used, reserved }] of standings) {
      const held = this.#heldOf(id, cycle, reserved);
      if (used !== held.used) Object.assign(held, { used, changedMs: nowMs });
      const isIdle = nowMs - held.changedMs > IDLE_MS && !requested.has(id);
      if (held.granted > used && (isIdle || recalled.has(id))) returning.add(id);
    }
    for (const each of this.#giveBack(returning)) standings.set(each.account.id, each);
    return [...standings].flatMap(([id, standing]) => {
      const { used, cycle, reserved } = standing;
      const held = this.#heldOf(id, cycle, reserved);
      const isActive = nowMs - held.changedMs < ACTIVE_MS;
      const needsMore = requested.has(id) || (!returning.has(id) && isActive && this.#isLow(standing));
      const target = needsMore ? used + blockOf(standing) : held.granted;
      const isNews = used !== held.reportedUsed || held.granted !== held.reportedGranted || target > held.granted;
      // While an account is in use, this node needs to know what other nodes use of it. The answer has that.
      const isInUse = nowMs - held.changedMs < IDLE_MS;
      // At the limit nothing more is requested, and only an answer shows what other nodes or an operator have given back.
      const mayHaveMore = changed.has(id) || (nowMs - held.reportedMs > IDLE_MS && this.#isAtLimit(standing));
      const isReported = isNews || isInUse || mayHaveMore || isFull || recalled.has(id);
      return isReported ? this.#itemsOf(standing, held.granted, target) : [];
    });
  }

  /** Returns what to report at the end, after everything that was not used has been given back. */
  last(standings: readonly AccountStanding[]): SyncItem[] {
    return standings.flatMap((each) => this.#itemsOf(each, each.used, each.used));
  }

  /** Records that the engine has received a message with these items. */
  markReported(items: readonly SyncItem[]): void {
    const reportedMs = performance.now();
    for (const { id, cycle, granted, spent } of items) {
      const held = this.#grants.held.get(id);
      if (held?.cycle === cycle)
        Object.assign(held, { reportedGranted: granted, reportedUsed: spent, reportedMs, isEndedReported: true });
    }
  }

  /** Applies what the engine has granted. Returns whether it recalls something, which the next message gives back. */
  apply({ accounts, recalled }: SyncReply): boolean {
    for (const { id, cycle, granted, others } of accounts) {
      const held = this.#grants.held.get(id);
      if (held?.cycle === cycle) Object.assign(held, { granted, others, reportedGranted: granted });
    }
    this.#recalled = new Set(recalled);
    return recalled.length > 0;
  }

  /**
   * Gives back what accounts have not used. Nothing of it may be reserved again until the engine grants it. If giving back cannot be made
   * durable, the node keeps the lookups.
   *
   * @returns the usage of the accounts afterwards.
   */
  #giveBack(accountIds: ReadonlySet<number>): AccountStanding[] {
    if (accountIds.size === 0) return [];
    const reserver = this.#reserver;
    const before = new Map([...accountIds].map((id) => [id, this.#grants.held.get(id)!.granted]));
    for (const id of accountIds) this.#grants.held.get(id)!.granted = 0;
    const isDurable = reserver.giveBack(accountIds);
    const standings = reserver.standing(accountIds);
    for (const [id, granted] of before) this.#grants.held.get(id)!.granted = granted;
    if (isDurable) for (const { account, used } of standings) this.#grants.held.get(account.id)!.granted = used;
    return standings;
  }

  /** Returns what the node holds of a cycle. For a cycle that this process has not seen yet, that is what is reserved. */
  #heldOf(accountId: number, cycle: number, reserved: number): HeldGrant {
    const known = this.#grants.held.get(accountId);
    if (known?.cycle === cycle) return known;
    const held = {
      cycle,
      granted: reserved,
      others: 0,
      used: -1,
      changedMs: performance.now(),
      reportedGranted: -1,
      reportedUsed: -1,
      reportedMs: 0,
      isEndedReported: false,
    };
    this.#grants.held.set(accountId, held);
    return held;
  }

  #isAtLimit({ account, cycle, used }: AccountStanding): boolean {
    return account.state === 'active' && used >= this.#grants.allowance(account, cycle).limit;
  }

  #isLow(standing: AccountStanding): boolean {
    const held = this.#grants.held.get(standing.account.id);
    const granted = held?.cycle === standing.cycle ? held.granted : standing.reserved;
    return 2 * (granted - standing.used) <= blockOf(standing);
  }

  /** The report about an account. Also reports the usage of the previous cycle, of which the node holds nothing more, unless the engine knows it. */
  #itemsOf(
    { account: { id }, cycle, used, total, ended }: AccountStanding,
    granted: number,
    target: number,
  ): SyncItem[] {
    const item = { id, cycle, granted: Math.max(granted, used), spent: used, target, total };
    if (ended === undefined || this.#grants.held.get(id)?.isEndedReported === true) return [item];
    const previous = { id, cycle: ended.cycle, granted: ended.used, spent: ended.used, target: ended.used, total };
    return [previous, item];
  }
}

/** The number of lookups that the node should hold for an account beyond what is used. */
const blockOf = ({ perSecond }: AccountStanding): number =>
  Math.max(LIMITS.blockLookups.value, Math.ceil(perSecond * BLOCK_SECONDS));
