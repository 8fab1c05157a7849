/** The audit table: who changed what and when. Rows are only ever added; triggers refuse the rest. */
import { rfc3339 } from '../times.ts';
import type { Ledger } from './ledger.ts';
import { likeContaining } from './store/like.ts';

export interface AuditEntry {
  readonly id: number;
  /** Seconds since 1970. */
  readonly at: number;
  readonly actor: string;
  /** The word for what was done; after a space a note, such as a payment's reference. */
  readonly action: string;
  readonly account: string | null;
  /** The account and its keys' states as JSON; null where there was none. */
  readonly before: string | null;
  readonly after: string | null;
}

/** Which lines are wanted. What is not given is not asked for. */
export interface AuditFilter {
  /** A part of who, and of what, in any case; of letters beyond ASCII a database may know none but their own. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** The first and the last moment, in seconds since 1970. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/**
 * The latest lines that are wanted, newest first; of one account or of all.
 *
 * @throws PagegateError account_not_found, ledger_unavailable
 */
export async function readAudit(
  ledger: Ledger,
  name: string | undefined,
  count: number,
  { actor, action, from, to }: AuditFilter = {},
): Promise<AuditEntry[]> {
  const id = name === undefined ? undefined : (await ledger.view(name)).account.id;
  // Databases know the cases of different letters: each makes both sides small by itself.
  const conditions: readonly (readonly [text: string, value: string | number | undefined])[] = [
    ['account_id = ?', id],
    ["lower(actor) LIKE lower(?) ESCAPE '!'", actor && likeContaining(actor)],
    ["lower(action) LIKE lower(?) ESCAPE '!'", action && likeContaining(action)],
    ['at >= ?', from],
    ['at <= ?', to],
  ];
  const asked = conditions.flatMap(([text, value]) => (value === undefined ? [] : [{ text, value }]));
  const where = asked.length === 0 ? '' : `WHERE ${asked.map(({ text }) => text).join(' AND ')}`;
  const text = `SELECT audit.id, at, actor, action, accounts.name AS account, before, after
    FROM audit LEFT JOIN accounts ON accounts.id = account_id ${where} ORDER BY audit.id DESC LIMIT ?`;
  return ledger.store.rows(text, ...asked.map(({ value }) => value), count);
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

/** Columns of these whose value is a second since 1970. */
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
