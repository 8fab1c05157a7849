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
export function usageByDay(ledger: Ledger, name: string | undefined, days: number, nowMs = Date.now()): UsageDay[] {
  if (!Number.isInteger(days) || days < 1 || days > USAGE_DAYS) {
    throw new PagegateError('usage', `--days: expected 1 to ${USAGE_DAYS}, got ${days}.`);
  }
  if (name !== undefined) ledger.view(name);
  const rows = ledger.database
    .prepare<[{ name: string | null; since: number }], { account: string; day: number; lookups: number }>(
      `SELECT accounts.name AS account, day, sum(lookups) AS lookups FROM (
         SELECT account_id, day, lookups FROM usage_days
         UNION ALL SELECT account_id, day, day_used FROM meters WHERE day_used > 0
       ) JOIN accounts ON accounts.id = account_id
       WHERE day >= @since AND (@name IS NULL OR accounts.name = @name)
       GROUP BY account_id, day ORDER BY day, account`,
    )
    .all({ name: name ?? null, since: dayOf(Math.floor(nowMs / 1000)) - days + 1 });
  return rows.map(({ account, day, lookups }) => ({ account, day: dayName(day), lookups }));
}
