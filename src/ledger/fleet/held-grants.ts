/** What a node of a fleet holds: the blocks of lookups that PostgreSQL has granted it, and what is known of the database's clock and state. */
import { type FleetLink, NO_FLEET } from '../counters/counters.ts';
import { readCounters } from '../counters/location.ts';
import { type Account, planIn } from '../quota.ts';
import { readIdentity } from '../store/identity.ts';
import type { Allowance } from '../writer/reservations.ts';

/** What the node holds of an account's cycle. */
export interface HeldGrant {
  cycle: number;
  granted: number;
  others: number;
  used: number;
  /** When `used` last moved, in milliseconds of this process. */
  movedMs: number;
  /** What the engine was told last. */
  toldGranted: number;
  toldUsed: number;
  /** When that was, in milliseconds of this process. */
  toldMs: number;
  /** The engine knows what was used of the cycle before. */
  isEndedTold: boolean;
}

/** What PostgreSQL has granted this node, and when it was heard. Made before the session and the reserver, which both use it. */
export class HeldGrants {
  readonly held = new Map<number, HeldGrant>();
  offsetMs = 0;
  heardMs = 0;
  heardAtMs = 0;
  isLearning = false;
  /** The session that the engine knows; at first that of an earlier ledger writer. */
  session = 0;
  problem = 'The fleet’s ledger was not asked yet.';
  readonly #maxStalenessMs: number;

  /**
   * Goes on from what an earlier ledger writer of this host has published: the copy is as it left it, and what is reserved can be spent.
   *
   * @param file the node's copy.
   */
  constructor(file: string, maxStalenessSeconds: number) {
    this.#maxStalenessMs = maxStalenessSeconds * 1_000;
    const identity = readIdentity(file);
    const before = (identity && readCounters(file, identity.ledgerId, { headerOnly: true })?.fleet) ?? NO_FLEET;
    this.offsetMs = before.clockOffsetMs;
    this.isLearning = before.learning === 1;
    this.session = before.session;
    const agoMs = Math.max(0, Date.now() - before.heardMs);
    this.heardMs = before.heardMs === 0 ? 0 : Date.now() - agoMs;
    this.heardAtMs = performance.now() - agoMs;
  }

  /** Takes over what the engine's clock said between two moments of this host's; what agrees with that stays, however slow the answer was. */
  setClock(engineMs: number, sentMs: number, readMs: number): void {
    const agrees = this.offsetMs >= engineMs - readMs && this.offsetMs <= engineMs - sentMs;
    if (!agrees) this.offsetMs = engineMs - (sentMs + readMs) / 2;
  }

  /** The engine's clock, in milliseconds since 1970. */
  readonly now = (): number => Date.now() + this.offsetMs;

  readonly allowance = (account: Account, cycle: number): Allowance => {
    const limit = planIn(account, cycle)?.limit ?? 0;
    const held = this.held.get(account.id);
    return held?.cycle === cycle
      ? { limit: Math.max(0, limit - held.others), granted: held.granted }
      : { limit, granted: 0 };
  };

  readonly link = (): FleetLink & { problem: string } => {
    // A clock that was set back makes nothing younger.
    if (this.heardMs > 0) this.heardMs = Math.min(this.heardMs, Date.now() - (performance.now() - this.heardAtMs));
    let held = 0;
    for (const { granted, used } of this.held.values()) held += granted - used;
    return {
      heardMs: this.heardMs,
      clockOffsetMs: this.offsetMs,
      maxStalenessMs: this.#maxStalenessMs,
      held,
      learning: this.isLearning ? 1 : 0,
      session: this.session,
      problem: this.problem,
    };
  };
}
