/** The audit table: who changed what, and when. It is append-only: triggers refuse updates and deletions. */
import { rfc3339 } from '../times.ts';
import type { Ledger } from './ledger.ts';
import { likeContaining } from './store/like.ts';

export interface AuditEntry {
  readonly id: number;
  /** Seconds since 1970. */
  readonly at: number;
  readonly actor: string;
  /** A word for what was done, optionally followed by a space and a note, such as a payment reference. */
  readonly action: string;
  readonly account: string | null;
  /** JSON of the account and the state of its keys; null if there was none. */
  readonly before: string | null;
  readonly after: string | null;
}

/** Selects lines of the audit table. A field that is undefined does not filter. */
export interface AuditFilter {
  /** A substring of the actor, or of the action, case-insensitive. Whether that holds for non-ASCII letters depends on the database. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** The first and the last moment, in seconds since 1970. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/**
 * Returns the latest lines that match the filter, newest first.
 *
 * @param name the account's; the lines of all accounts if it is undefined.
 * @param count how many lines at most.
 * @throws PagegateError account_not_found, ledger_unavailable
 */
export async function readAudit(
  ledger: Ledger,
  name: string | undefined,
  count: number,
  { actor, action, from, to }: AuditFilter = {},
): Promise<AuditEntry[]> {
  const id = name === undefined ? undefined : (await ledger.view(name)).account.id;
  // Databases differ in which letters they can convert to lower case, so each converts both sides itself.
  const conditions: readonly (readonly [text: string, value: string | number | undefined])[] = [
    ['account_id = ?', id],
    ["lower(actor) LIKE lower(?) ESCAPE '!'", actor && likeContaining(actor)],
    ["lower(action) LIKE lower(?) ESCAPE '!'", action && likeContaining(action)],
    ['at >= ?', from],
    ['at <= ?', to],
  ];
  const given = conditions.flatMap(([text, value]) => (value === undefined ? [] : [{ text, value }]));
  const where = given.length === 0 ? '' : `WHERE ${given.map(({ text }) => text).join(' AND ')}`;
  const text = `SELECT audit.id, at, actor, action, accounts.name AS account, before, after
    FROM audit LEFT JOIN accounts ON accounts.id = account_id ${where} ORDER BY audit.id DESC LIMIT ?`;
  return ledger.store.rows(text, ...given.map(({ value }) => value), count);
}

/** Output names of fields whose name in the stored JSON is the program's own. All others are output unchanged. */
const OUTPUT_NAMES: ReadonlyMap<string, string> = new Map([
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

/** Stored fields whose value is a time in seconds since 1970. */
const TIMES = new Set(['anchor', 'createdAt', 'expiresAt', 'last_seen_at', 'revokedAt']);

/** Splits a stored action into its word, which programs can compare, and its note; the note is null if there is none. */
export function auditActionJson(stored: string): { readonly action: string; readonly note: string | null } {
  const end = stored.indexOf(' ');
  return end < 0 ? { action: stored, note: null } : { action: stored.slice(0, end), note: stored.slice(end + 1) };
}

/** Converts a stored `before` or `after` to the field names and times of all other output. Returns a text that is not JSON unchanged. */
export function auditStateJson(stored: string | null): unknown {
  if (stored === null) return null;
  try {
    return toOutput(JSON.parse(stored));
  } catch {
    return stored;
  }
}

function toOutput(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toOutput);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      OUTPUT_NAMES.get(name) ?? name,
      TIMES.has(name) && typeof field === 'number' ? rfc3339(field) : toOutput(field),
    ]),
  );
}
