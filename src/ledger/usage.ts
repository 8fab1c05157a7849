/** Usage by day (UTC), for the last 400 days. */
import { PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { dayName, dayOf } from './cycle.ts';
import type { Ledger } from './ledger.ts';

export interface UsageDay {
  readonly account: string;
  /** YYYY-MM-DD, UTC. */
  readonly day: string;
  readonly lookups: number;
}

/** Number of accounts read at a time. */
const NAMES_BATCH = 20;

const toUsageDay = ({ account, day, lookups }: { account: string; day: number; lookups: number }): UsageDay => ({
  account,
  day: dayName(day),
  lookups,
});

/**
 * Returns the days with lookups, oldest first. What workers charged in the last seconds may be missing.
 *
 * @param name the account's; all accounts if it is undefined.
 * @param days how many days back, today included; at most 400 are kept.
 * @throws PagegateError account_not_found, usage (days out of range), ledger_unavailable.
 */
export async function usageByDay(
  ledger: Ledger,
  name: string | undefined,
  days: number,
  nowMs = Date.now(),
): Promise<UsageDay[]> {
  if (!Number.isInteger(days) || days < 1 || days > LIMITS.usageDays.value) {
    throw new PagegateError('usage', `--days: expected 1 to ${LIMITS.usageDays.value}, got ${days}.`);
  }
  if (name !== undefined) await ledger.view(name);
  const since = dayOf(Math.floor(nowMs / 1000)) - days + 1;
  return (await ledger.store.usageByDay(since, name ?? null)).map(toUsageDay);
}

/**
 * Returns the usage of the next few accounts in the order of their names, so that the caller does not need all of it in memory.
 *
 * @param after the `last` of the previous call; empty for the first.
 * @returns undefined after the last account.
 * @throws PagegateError ledger_unavailable
 */
export async function usageAfter(
  ledger: Ledger,
  after: string,
): Promise<{ readonly days: readonly UsageDay[]; readonly last: string } | undefined> {
  const since = dayOf(Math.floor(Date.now() / 1000)) - LIMITS.usageDays.value + 1;
  const text = 'SELECT name FROM accounts WHERE name > ? ORDER BY name LIMIT ?';
  const names = await ledger.store.rows<{ name: string }>(text, after, NAMES_BATCH);
  const days: UsageDay[] = [];
  for (const { name } of names) days.push(...(await ledger.store.usageByDay(since, name)).map(toUsageDay));
  const last = names.at(-1)?.name;
  return last === undefined ? undefined : { days, last };
}
