/** The audit table: who changed what and when. Rows are only ever added; triggers refuse the rest. */
import { rfc3339 } from '../times.ts';
import type { Ledger } from './ledger.ts';

export interface AuditEntry {
  readonly id: number;
  /** Seconds since 1970. */
  readonly at: number;
  readonly actor: string;
  /** The word for what was done; behind a space a note, such as a payment's reference. */
  readonly action: string;
  readonly account: string | null;
  /** The account and its keys' states as JSON; null where there was none. */
  readonly before: string | null;
  readonly after: string | null;
}

/** The latest lines, newest first; of one account or of all. @throws PagegateError account_not_found, ledger_unavailable */
export async function readAudit(ledger: Ledger, name: string | undefined, count: number): Promise<AuditEntry[]> {
  const id = name === undefined ? null : (await ledger.view(name)).account.id;
  const text = `SELECT audit.id, at, actor, action, accounts.name AS account, before, after
    FROM audit LEFT JOIN accounts ON accounts.id = account_id`;
  return id === null
    ? ledger.store.rows(`${text} ORDER BY audit.id DESC LIMIT ?`, count)
    : ledger.store.rows(`${text} WHERE account_id = ? ORDER BY audit.id DESC LIMIT ?`, id, count);
}

/** The table keeps records as the program has them. These names are shown in place of those that it keeps; any other is shown as it is. */
const NAMES: ReadonlyMap<string, string> = new Map([
  // an account and its keys
  ['accountId', 'account_id'],
  ['anchor', 'subscribed_at'],
  ['createdAt', 'created_at'],
  ['expiresAt', 'expires_at'],
  ['fromCycle', 'from_cycle'],
  ['next', 'next_plan'],
  ['revokedAt', 'revoked_at'],
  // a restore
  ['keptKeys', 'kept_keys'],
  ['keptStricter', 'kept_stricter'],
  ['knownFrom', 'known_from'],
]);

/** Of these, what is kept is a second since 1970. */
const TIMES = new Set(['anchor', 'createdAt', 'expiresAt', 'last_seen_at', 'revokedAt']);

/** The word for what was done and its note apart, so that programs can compare the word; the note is null where there is none. */
export function auditActionJson(kept: string): { readonly action: string; readonly note: string | null } {
  const end = kept.indexOf(' ');
  return end < 0 ? { action: kept, note: null } : { action: kept.slice(0, end), note: kept.slice(end + 1) };
}

/** What stood before or after a change, under the names, and with the times, that all output has; a text where it is no JSON. */
export function auditStateJson(kept: string | null): unknown {
  if (kept === null) return null;
  try {
    return shown(JSON.parse(kept));
  } catch {
    return kept;
  }
}

function shown(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      NAMES.get(name) ?? name,
      TIMES.has(name) && typeof one === 'number' ? rfc3339(one) : shown(one),
    ]),
  );
}
