/** Usage by day (UTC), for the last 400 days. */
import { PagegateError } from '../errors.ts';
import { dayName, dayOf } from './cycle.ts';
import type { Ledger } from './ledger.ts';
import { USAGE_DAYS } from './store/meters.ts';

export interface UsageDay {
  readonly account: string;
  /** YYYY-MM-DD, UTC. */
  readonly day: string;
  readonly lookups: number;
}

/**
 * The days with lookups, oldest first; of one account or of all. What workers charged in the last moments may still be missing.
 *
 * @param days how many days back, today included; at most 400 are kept.
 * @throws PagegateError account_not_found, usage (days out of range), ledger_unavailable.
 */
export async function usageByDay(
  ledger: Ledger,
  name: string | undefined,
  days: number,
  nowMs = Date.now(),
): Promise<UsageDay[]> {
  if (!Number.isInteger(days) || days < 1 || days > USAGE_DAYS) {
    throw new PagegateError('usage', `--days: expected 1 to ${USAGE_DAYS}, got ${days}.`);
  }
  if (name !== undefined) await ledger.view(name);
  const since = dayOf(Math.floor(nowMs / 1000)) - days + 1;
  const rows = await ledger.store.usageByDay(since, name ?? null);
  return rows.map(({ account, day, lookups }) => ({ account, day: dayName(day), lookups }));
}
