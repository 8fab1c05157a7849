/** Reads and changes accounts and their API keys in a ledger store. */
import { hash } from 'node:crypto';
import { PagegateError } from '../../errors.ts';
import { isKeyCurrent, isLastingKey } from '../key-validity.ts';
import type { Account, AccountState } from '../quota.ts';
import type { ClockReading, Sql } from '../store/ledger-store.ts';
import {
  type AccountRow,
  type ApiKeyRecord,
  type ApiKeyRow,
  KEY_COLUMNS,
  toAccount,
  toApiKey,
} from '../store/records.ts';

/** Number of accounts whose keys one statement reads. */
const KEYS_BATCH = 500;

/** Returns the account; undefined if there is none of that name. */
export async function accountByName(sql: Sql, name: string): Promise<Account | undefined> {
  const row = await sql.row<AccountRow>('SELECT * FROM accounts WHERE name = ?', name);
  return row && toAccount(row);
}

/** @throws PagegateError account_not_found */
export async function existingAccount(sql: Sql, name: string): Promise<Account> {
  const account = await accountByName(sql, name);
  if (account === undefined) throw new PagegateError('account_not_found', `Got "${name.slice(0, 80)}".`);
  return account;
}

/** Returns an account that may still be changed. @throws PagegateError account_not_found, account_state if it is closed */
export async function changeableAccount(sql: Sql, name: string): Promise<Account> {
  const account = await existingAccount(sql, name);
  if (account.state === 'closed') throw new PagegateError('account_state', `"${name}" is closed, for good.`);
  return account;
}

export const setState = (sql: Sql, accountId: number, state: AccountState): Promise<number> =>
  sql.run('UPDATE accounts SET state = ? WHERE id = ?', state, accountId);

/** Returns the keys of accounts, the oldest first. An account without keys is not in the map. */
export async function keysByAccount(sql: Sql, ids: readonly number[]): Promise<ReadonlyMap<number, ApiKeyRecord[]>> {
  const found = new Map<number, ApiKeyRecord[]>();
  for (let i = 0; i < ids.length; i += KEYS_BATCH) {
    const batch = ids.slice(i, i + KEYS_BATCH);
    const text = `SELECT ${KEY_COLUMNS} FROM api_keys WHERE account_id IN (${batch.map(() => '?').join()}) ORDER BY id`;
    for (const row of await sql.rows<ApiKeyRow>(text, ...batch)) {
      const known = found.get(row.account_id);
      if (known === undefined) found.set(row.account_id, [toApiKey(row)]);
      else known.push(toApiKey(row));
    }
  }
  return found;
}

/** Returns the keys of an account, the oldest first. */
export const keysOf = async (sql: Sql, accountId: number): Promise<ApiKeyRecord[]> =>
  (await keysByAccount(sql, [accountId])).get(accountId) ?? [];

/** Returns the keys of an account that are neither revoked nor expired. */
export async function currentKeys(
  sql: Sql,
  accountId: number,
  { latestSeconds }: ClockReading,
): Promise<ApiKeyRecord[]> {
  return (await keysOf(sql, accountId)).filter((key) => isKeyCurrent(key, latestSeconds));
}

/** @throws PagegateError key_not_found */
export async function existingKey(sql: Sql, account: Account, keyId: number): Promise<ApiKeyRecord> {
  const key = (await keysOf(sql, account.id)).find((candidate) => candidate.id === keyId);
  if (key === undefined) throw new PagegateError('key_not_found', `"${account.name}" has no key ${keyId}.`);
  return key;
}

/** @throws PagegateError account_not_found, key_not_found, account_state if the key is revoked or has an expiry time */
export async function requireLastingKey(sql: Sql, name: string, keyId: number): Promise<void> {
  const key = await existingKey(sql, await existingAccount(sql, name), keyId);
  if (!isLastingKey(key))
    throw new PagegateError(
      'account_state',
      `Key ${keyId} of "${name}" was rotated or revoked; sign in with the new key.`,
    );
}

/**
 * What the audit table stores about an account, as JSON: its fields and the states of its keys, never a key or a hash. Keys that ended earlier
 * are left out: earlier lines have them.
 */
export async function auditSnapshot(sql: Sql, name: string, { seconds }: ClockReading): Promise<string | null> {
  const account = await accountByName(sql, name);
  if (account === undefined) return null;
  const keys = (await keysOf(sql, account.id)).filter((key) => endOf(key) >= seconds);
  return JSON.stringify({ ...account, keys });
}

/** When a key stops or stopped being valid, in seconds since 1970; infinity if it has no such time. */
const endOf = ({ revokedAt, expiresAt }: ApiKeyRecord): number =>
  Math.min(revokedAt ?? Number.POSITIVE_INFINITY, expiresAt ?? Number.POSITIVE_INFINITY);

/** A hash over an account's fields and its keys, but not over its usage. It changes with every change of the account. */
export async function stateHash(sql: Sql, name: string): Promise<string> {
  const account = await accountByName(sql, name);
  const state = account === undefined ? null : { ...account, keys: await keysOf(sql, account.id) };
  return hash('sha256', JSON.stringify(state), 'base64url');
}
