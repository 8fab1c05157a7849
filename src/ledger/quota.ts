/** Pure functions that compute the quota fields shown to a client from an account and its usage. */
import { rfc3339 } from '../times.ts';
import { cycleAt, cycleEnd } from './cycle.ts';

export type AccountState = 'created' | 'active' | 'suspended' | 'closed';

/** An account, as read from the ledger. */
export interface Account {
  readonly id: number;
  readonly name: string;
  readonly state: AccountState;
  /** Seconds since 1970, UTC. */
  readonly createdAt: number;
  /** Null before the first subscription; afterwards plan, limit (lookups per cycle) and anchor (seconds since 1970) are all set. */
  readonly plan: string | null;
  readonly limit: number | null;
  readonly anchor: number | null;
  /** A pending downgrade, which takes effect when cycle `fromCycle` begins. */
  readonly next: { readonly plan: string; readonly limit: number; readonly fromCycle: number } | null;
}

/** The highest cycle that an account's meter has reached, and the lookups charged in it. */
export interface CycleUsage {
  readonly cycle: number;
  readonly used: number;
}

/** Usage of an account that has no meter yet. */
export const NO_USAGE: CycleUsage = { cycle: 0, used: 0 };

/** What a client may see of its quota: exactly the quota fields of a 403. */
export interface QuotaView {
  readonly plan: string | null;
  readonly activated: boolean;
  readonly quota_limit: number | null;
  readonly quota_used: number;
  readonly quota_remaining: number;
  /** RFC 3339, UTC; null if there is no plan yet. */
  readonly quota_resets_at: string | null;
}

/** Returns the account as it is in a cycle: a downgrade that has taken effect by then replaces the plan. */
export function withEffectivePlan(account: Account, cycle: number): Account {
  const { next } = account;
  if (next === null || cycle < next.fromCycle) return account;
  return { ...account, plan: next.plan, limit: next.limit, next: null };
}

/** The plan and limit in force in a cycle, with a downgrade that takes effect by then; null if there is no plan. */
export function planIn(account: Account, cycle: number): { plan: string; limit: number } | null {
  const { plan, limit } = withEffectivePlan(account, cycle);
  return plan === null || limit === null ? null : { plan, limit };
}

/** The usage in the current cycle: the clock's, but never an earlier one than was seen. */
export function currentUsage(account: Account, seen: CycleUsage, nowSeconds: number): CycleUsage {
  if (account.anchor === null) return seen;
  const cycle = cycleAt(account.anchor, nowSeconds);
  return cycle > seen.cycle ? { cycle, used: 0 } : seen;
}

/** Returns the quota fields of an account at a given time. */
export function quotaView(account: Account, seen: CycleUsage, nowSeconds: number): QuotaView {
  const activated = account.state === 'active';
  const { cycle, used } = currentUsage(account, seen, nowSeconds);
  const inForce = planIn(account, cycle);
  if (inForce === null || account.anchor === null) {
    return { plan: null, activated, quota_limit: null, quota_used: 0, quota_remaining: 0, quota_resets_at: null };
  }
  return {
    plan: inForce.plan,
    activated,
    quota_limit: inForce.limit,
    quota_used: used,
    quota_remaining: Math.max(0, inForce.limit - used),
    quota_resets_at: rfc3339(cycleEnd(account.anchor, cycle)),
  };
}
