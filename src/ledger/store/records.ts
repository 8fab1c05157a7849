/** Reads the ledger's rows and converts them to the program's types. */

import type { Database } from '../../platform/sqlite.ts';
import type { Account, AccountState, CycleUsage } from '../quota.ts';

export interface AccountRow {
  readonly id: number;
  readonly name: string;
  readonly state: AccountState;
  readonly created_at: number;
  readonly plan: string | null;
  readonly quota_limit: number | null;
  readonly cycle_anchor: number | null;
  readonly next_plan: string | null;
  readonly next_limit: number | null;
  readonly next_from_cycle: number | null;
}

/** The columns of an account, which all ledger stores have. */
export const ACCOUNT_COLUMNS: readonly (keyof AccountRow)[] = [
  'id',
  'name',
  'state',
  'created_at',
  'plan',
  'quota_limit',
  'cycle_anchor',
  'next_plan',
  'next_limit',
  'next_from_cycle',
];

/** A stored key without its sealed form: what a node's copy has. */
export interface StoredKeyRow extends ApiKeyRow {
  readonly hash: string;
  readonly vault_id: string;
}

export const STORED_KEY_COLUMNS: readonly (keyof StoredKeyRow)[] = [
  'id',
  'account_id',
  'hash',
  'vault_id',
  'created_at',
  'expires_at',
  'revoked_at',
];

/** What may be shown of an API key: neither the key nor its hash. */
export interface ApiKeyRecord {
  readonly id: number;
  readonly accountId: number;
  /** Seconds since 1970. */
  readonly createdAt: number;
  /** The second from which on the key is refused; null if it does not expire. */
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

export interface ApiKeyRow {
  readonly id: number;
  readonly account_id: number;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
}

export const toAccount = (row: AccountRow): Account => ({
  id: row.id,
  name: row.name,
  state: row.state,
  createdAt: row.created_at,
  plan: row.plan,
  limit: row.quota_limit,
  anchor: row.cycle_anchor,
  next:
    row.next_plan === null || row.next_limit === null || row.next_from_cycle === null
      ? null
      : { plan: row.next_plan, limit: row.next_limit, fromCycle: row.next_from_cycle },
});

export const toApiKey = (row: ApiKeyRow): ApiKeyRecord => ({
  id: row.id,
  accountId: row.account_id,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
});

export const KEY_COLUMNS = 'id, account_id, created_at, expires_at, revoked_at';

/** Reads accounts, keys and meters. The statements are prepared once per connection. */
export function createReader(database: Database) {
  const accountById = database.prepare<[number], AccountRow>('SELECT * FROM accounts WHERE id = ?');
  const allAccounts = database.prepare<[], AccountRow>('SELECT * FROM accounts ORDER BY name');
  const meter = database.prepare<[number], CycleUsage>(
    'SELECT cycle, reserved AS used FROM meters WHERE account_id = ?',
  );
  const keyByHash = database.prepare<[string], ApiKeyRow>(`SELECT ${KEY_COLUMNS} FROM api_keys WHERE hash = ?`);
  const revision = database.prepare<[], number>('SELECT revision FROM ledger').pluck();
  const lastSeen = database.prepare<[], number>('SELECT last_seen_at FROM ledger').pluck();
  const lastAudit = database.prepare<[], number>('SELECT max(id) FROM audit').pluck();
  const changedAccounts = database.prepare<[number], AccountRow>(
    'SELECT * FROM accounts WHERE id IN (SELECT account_id FROM audit WHERE id > ?)',
  );
  const movedTo = database.prepare<[], string | null>('SELECT moved_to FROM ledger').pluck();
  const ledgerId = database.prepare<[], string>('SELECT ledger_id FROM ledger').pluck();
  return {
    accountById: (id: number): Account | undefined => {
      const row = accountById.get(id);
      return row && toAccount(row);
    },
    allAccounts: (): Account[] => allAccounts.all().map(toAccount),
    /** What counts as used if the shared counters have no better information: all that is reserved. */
    cycleUsage: (accountId: number): CycleUsage => meter.get(accountId) ?? { cycle: 0, used: 0 },
    apiKeyByHash: (hash: string): ApiKeyRecord | undefined => {
      const row = keyByHash.get(hash);
      return row && toApiKey(row);
    },
    lastAudit: (): number => lastAudit.get() ?? 0,
    /** The accounts that changed after a line of the audit table. */
    accountsSince: (line: number): { readonly accounts: Account[]; readonly lastAudit: number } => ({
      lastAudit: lastAudit.get() ?? 0,
      accounts: changedAccounts.all(line).map(toAccount),
    }),
    revision: (): number => revision.get() ?? 0,
    /** The latest second that the ledger writer has stored; 0 before the first. */
    lastSeenSeconds: (): number => lastSeen.get() ?? 0,
    /** Where the ledger was moved to; null if it is served from here. */
    movedTo: (): string | null => movedTo.get() ?? null,
    /** 32 hexadecimal digits, generated with the file. Its counters and backups carry the same id. */
    ledgerId: (): string => ledgerId.get() ?? '',
  };
}

export type Reader = ReturnType<typeof createReader>;
