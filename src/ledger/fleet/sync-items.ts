/** What a node tells the engine of its accounts, and asks of it: how much it holds, how much it has spent, how much it wants. */
import { LIMITS } from '../../limits.ts';
import type { SyncItem, SyncReply } from '../postgres/sync.ts';
import type { AccountStanding } from '../writer/reservations.ts';
import type { Reserver } from '../writer/reserver.ts';
import type { HeldGrant, HeldGrants } from './held-grants.ts';

/** A block lasts about so long at the account's recent rate, in seconds; asked for when half is left. */
const BLOCK_SECONDS = 4;
/** An account that was used within this time is being used, in milliseconds. */
const MOVING_MS = 1_000;
/** What an account has not used for so long is given back. An account at its limit is told of so often. */
const IDLE_MS = 30_000;

/** Decides what the next message says, and takes over what its answer grants. */
export class SyncItems {
  readonly #grants: HeldGrants;
  readonly #reserver: Reserver;
  /** Accounts for which a request waits, or that run low. */
  #wanted = new Set<number>();
  /** Accounts whose grants other nodes need. */
  #recalled = new Set<number>();
  /** Accounts that an operator has changed. */
  #changed = new Set<number>();

  constructor(grants: HeldGrants, reserver: Reserver) {
    this.#grants = grants;
    this.#reserver = reserver;
  }

  /** Whether the next message will ask for more. */
  get hasWanted(): boolean {
    return this.#wanted.size > 0;
  }

  /** Operators have changed accounts, perhaps how much is left of them: the next answer says. */
  changed(accountIds: readonly number[]): void {
    for (const id of accountIds) this.#changed.add(id);
  }

  /** Asks for more with the next message, where an account runs low. */
  want(standing: AccountStanding): void {
    if (this.#isLow(standing)) this.#wanted.add(standing.account.id);
  }

  /**
   * What there is to tell now; what is given up is made durable here first. To be called once for each message.
   *
   * @param isFull tells everything, and not only what has changed.
   */
  collect(isFull: boolean): SyncItem[] {
    const reserver = this.#reserver;
    const nowMs = performance.now();
    const wanted = this.#wanted;
    const recalled = this.#recalled;
    const changed = this.#changed;
    this.#wanted = new Set();
    this.#recalled = new Set();
    this.#changed = new Set();
    const standings = new Map(reserver.standing(isFull ? 'all' : 'active').map((each) => [each.account.id, each]));
    // The engine may know of a grant that this node has never heard of: it is given back, too.
    for (const each of reserver.standing(recalled)) standings.set(each.account.id, each);
    const returning = new Set<number>();
    for (const [id, { cycle, used, reserved }] of standings) {
      const held = this.#heldOf(id, cycle, reserved);
      if (used !== held.used) Object.assign(held, { used, movedMs: nowMs });
      const isIdle = nowMs - held.movedMs > IDLE_MS && !wanted.has(id);
      if (held.granted > used && (isIdle || recalled.has(id))) returning.add(id);
    }
    for (const each of this.#giveBack(returning)) standings.set(each.account.id, each);
    return [...standings].flatMap(([id, standing]) => {
      const { used, cycle, reserved } = standing;
      const held = this.#heldOf(id, cycle, reserved);
      const isMoving = nowMs - held.movedMs < MOVING_MS;
      const wants = wanted.has(id) || (!returning.has(id) && isMoving && this.#isLow(standing));
      const target = wants ? used + blockOf(standing) : held.granted;
      const isNews = used !== held.toldUsed || held.granted !== held.toldGranted || target > held.granted;
      // While it is in use, what others use is of interest.
      const isInUse = nowMs - held.movedMs < IDLE_MS;
      // Nobody asks for more at the limit, and what others or an operator give back is heard of with an answer alone.
      const mayHaveMore = changed.has(id) || (nowMs - held.toldMs > IDLE_MS && this.#isAtLimit(standing));
      const isTold = isNews || isInUse || mayHaveMore || isFull || recalled.has(id);
      return isTold ? this.#itemsOf(standing, held.granted, target) : [];
    });
  }

  /** What there is to tell at the end, where all that was not used has been given back. */
  last(standings: readonly AccountStanding[]): SyncItem[] {
    return standings.flatMap((each) => this.#itemsOf(each, each.used, each.used));
  }

  /** The engine has heard a message. */
  told(items: readonly SyncItem[]): void {
    const toldMs = performance.now();
    for (const { id, cycle, granted, spent } of items) {
      const held = this.#grants.held.get(id);
      if (held?.cycle === cycle)
        Object.assign(held, { toldGranted: granted, toldUsed: spent, toldMs, isEndedTold: true });
    }
  }

  /** Takes over what the engine has granted. Returns whether it wants something back, which the next message tells. */
  take({ accounts, recalled }: SyncReply): boolean {
    for (const { id, cycle, granted, others } of accounts) {
      const held = this.#grants.held.get(id);
      if (held?.cycle === cycle) Object.assign(held, { granted, others, toldGranted: granted });
    }
    this.#recalled = new Set(recalled);
    return recalled.length > 0;
  }

  /**
   * Nothing of it may be reserved again until the engine has said so; where that is not durable, it stays ours.
   *
   * @returns how the accounts stand afterwards.
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

  /** What is held of a cycle; of one that this process has not seen yet, what is reserved. */
  #heldOf(accountId: number, cycle: number, reserved: number): HeldGrant {
    const known = this.#grants.held.get(accountId);
    if (known?.cycle === cycle) return known;
    const held = {
      cycle,
      granted: reserved,
      others: 0,
      used: -1,
      movedMs: performance.now(),
      toldGranted: -1,
      toldUsed: -1,
      toldMs: 0,
      isEndedTold: false,
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

  /** An account as the engine is told of it; with it what was used of the cycle before, of which nothing is held any more. */
  #itemsOf(
    { account: { id }, cycle, used, total, ended }: AccountStanding,
    granted: number,
    target: number,
  ): SyncItem[] {
    const item = { id, cycle, granted: Math.max(granted, used), spent: used, target, total };
    if (ended === undefined || this.#grants.held.get(id)?.isEndedTold === true) return [item];
    const over = { id, cycle: ended.cycle, granted: ended.used, spent: ended.used, target: ended.used, total };
    return [over, item];
  }
}

/** Lookups to hold for an account. */
const blockOf = ({ perSecond }: AccountStanding): number =>
  Math.max(LIMITS.blockLookups.value, Math.ceil(perSecond * BLOCK_SECONDS));
