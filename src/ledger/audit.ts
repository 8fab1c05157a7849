/** The audit table: who changed what and when. Rows are only ever added; triggers refuse the rest. */
import type { Ledger } from './ledger.ts';

export interface AuditEntry {
  readonly id: number;
  /** Seconds since 1970. */
  readonly at: number;
  readonly actor: string;
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
