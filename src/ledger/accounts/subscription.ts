/** Applies paid plans: the first begins cycle 0, an upgrade is in force at once, a downgrade from the next cycle on. */
import { PagegateError } from '../../errors.ts';
import { type Account, currentUsage, NO_USAGE, withEffectivePlan } from '../quota.ts';
import type { ClockReading, Sql, Transaction } from '../store/ledger-store.ts';

/** A plan of the catalog, and its lookups per cycle. */
export interface PaidPlan {
  readonly plan: string;
  readonly limit: number;
}

const REFERENCE = /^[\x21-\x7e][\x20-\x7e]{0,127}$/;

/** @throws PagegateError bad_payment_reference */
export function checkReference(reference: string): void {
  if (!REFERENCE.test(reference)) throw new PagegateError('bad_payment_reference', '');
}

/**
 * Records a payment and sets the account's plan. The first plan begins cycle 0 at this second. A larger plan is in force at once, while
 * usage and cycle stay. A smaller plan is in force from the next cycle on.
 *
 * @throws PagegateError payment_known
 */
export async function applyPayment(
  sql: Transaction,
  account: Account,
  wanted: PaidPlan,
  reference: string,
  moment: ClockReading,
): Promise<void> {
  await recordPayment(sql, account.id, wanted, reference, moment);
  if (account.anchor === null) {
    await writePlan(sql, { ...account, ...wanted, anchor: moment.seconds });
    return;
  }
  const { cycle, effective } = await standing(sql, account, moment);
  const isUpgrade = wanted.limit >= effective.limit!;
  const next = isUpgrade ? null : { ...wanted, fromCycle: cycle + 1 };
  await writePlan(sql, { ...effective, ...(isUpgrade ? wanted : {}), next });
}

/** Withdraws a pending downgrade. @throws PagegateError account_state */
export async function withdrawDowngrade(sql: Transaction, account: Account, moment: ClockReading): Promise<void> {
  const { effective } = await standing(sql, account, moment);
  if (effective.next === null) throw new PagegateError('account_state', `"${account.name}" has no waiting downgrade.`);
  await writePlan(sql, { ...effective, next: null });
}

/** The current cycle, and the account with the plan that is in force in it. */
async function standing(
  sql: Transaction,
  account: Account,
  { seconds }: ClockReading,
): Promise<{ cycle: number; effective: Account }> {
  const seen = (await sql.usage([account])).get(account.id) ?? NO_USAGE;
  const { cycle } = currentUsage(account, seen, seconds);
  return { cycle, effective: withEffectivePlan(account, cycle) };
}

async function recordPayment(
  sql: Sql,
  accountId: number,
  wanted: PaidPlan,
  reference: string,
  { seconds }: ClockReading,
): Promise<void> {
  const known = await sql.row('SELECT 1 AS one FROM payments WHERE reference = ?', reference);
  if (known !== undefined) throw new PagegateError('payment_known', `Got "${reference}".`);
  const insert = 'INSERT INTO payments (account_id, at, plan, quota_limit, reference) VALUES (?, ?, ?, ?, ?)';
  await sql.run(insert, accountId, seconds, wanted.plan, wanted.limit, reference);
}

/** Writes an account's plan, the anchor of its cycles, and the pending plan. */
function writePlan(sql: Sql, { id, plan, limit, anchor, next }: Account): Promise<number> {
  const text = `UPDATE accounts SET plan = ?, quota_limit = ?, cycle_anchor = ?, next_plan = ?, next_limit = ?, next_from_cycle = ?
     WHERE id = ?`;
  return sql.run(text, plan, limit, anchor, next?.plan ?? null, next?.limit ?? null, next?.fromCycle ?? null, id);
}
