/** What a node of a fleet holds: the lookups that PostgreSQL has granted it, and what it knows of the database's clock and state. */
import { type FleetLink, NO_FLEET } from '../counters/counters.ts';
import { readCounters } from '../counters/location.ts';
import { type Account, planIn } from '../quota.ts';
import { readIdentity } from '../store/identity.ts';
import type { Allowance } from '../writer/reservations.ts';

/** What the node holds of an account's cycle, in lookups. */
export interface HeldGrant {
  cycle: number;
  granted: number;
  /** What other nodes have used, less what an operator gave back. */
  others: number;
  used: number;
  /** When `used` last changed, in milliseconds on the clock of `performance.now`. */
  changedMs: number;
  /** `granted` and `used`, as the engine knows them since the last exchange. */
  reportedGranted: number;
  reportedUsed: number;
  /** When this node last reported them, in milliseconds on the clock of `performance.now`. */
  reportedMs: number;
  /** The engine knows the usage of the previous cycle. */
  isEndedReported: boolean;
}

/** What PostgreSQL has granted this node, and when it last answered. Created before the session and the reserver, which share it. */
export class HeldGrants {
  /** By account id. */
  readonly held = new Map<number, HeldGrant>();
  /** What to add to this host's clock to get the engine's, in milliseconds. */
  offsetMs = 0;
  /** When the last message that the engine answered was sent, in milliseconds since 1970 on this host's clock; 0 if there is none. */
  heardMs = 0;
  /** The same moment on the clock of `performance.now`. */
  heardAtMs = 0;
  isLearning = false;
  /** The session that the engine knows; at first that of an earlier ledger writer. */
  session = 0;
  problem = 'The fleet’s ledger was not asked yet.';
  readonly #maxStalenessMs: number;

  /**
   * Continues from what an earlier ledger writer of this host has published: the copy is as that one left it, and what is reserved can be spent.
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

  /**
   * Sets the clock offset from a reading of the engine's clock, which was taken between two readings of this host's. Keeps the present offset
   * if it is consistent with them, so that a slow answer does not change it.
   */
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
    // A clock that was set back must not make the last contact look more recent.
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
