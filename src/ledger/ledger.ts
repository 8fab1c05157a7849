/** Administration of accounts. Each change is one transaction, together with its line in the audit table. */
import { PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import {
  accountByName,
  auditSnapshot,
  changeableAccount,
  currentKeys,
  existingAccount,
  existingKey,
  keysByAccount,
  requireLastingKey,
  setState,
  stateHash,
} from './accounts/account-rows.ts';
import { type Correction, checkCorrectionNote, requestCorrection } from './accounts/correction.ts';
import { type IssuedKey, KeyIssuer } from './accounts/key-issuer.ts';
import { applyPayment, checkReference, withdrawDowngrade } from './accounts/subscription.ts';
import { loadPlans, type Plan, resolvePlan } from './plans.ts';
import { type Account, currentUsage, NO_USAGE, type QuotaView, quotaView, withEffectivePlan } from './quota.ts';
import { hashApiKey, isApiKeyShaped } from './store/api-key.ts';
import type { ClockReading, LedgerStore, Sql, Transaction } from './store/ledger-store.ts';
import { likeContaining } from './store/like.ts';
import { type AccountRow, type ApiKeyRecord, type ApiKeyRow, KEY_COLUMNS, toAccount } from './store/records.ts';

export type { Correction } from './accounts/correction.ts';
export type { IssuedKey } from './accounts/key-issuer.ts';

export interface LedgerOptions {
  /** The file with the key that encrypts stored API keys. It must not be in the directory of the ledger's file. */
  readonly keyFile: string;
  /** The name for the audit table. */
  readonly actor?: string;
  /** The API key that changes are made with. A change is refused if this key has an expiry time, because it was rotated elsewhere. */
  readonly actingKeyId?: number;
  /** What {@link Ledger.stateOf} returned for the account that is to be changed. A change is refused if the account was changed since. */
  readonly expectedState?: string;
  /** Reads the catalog when a plan is chosen; the shipped catalog by default. */
  readonly plans?: () => readonly Plan[];
}

export interface AccountView {
  /** As it is in the current cycle: a downgrade that has taken effect is no longer pending. */
  readonly account: Account;
  readonly quota: QuotaView;
  readonly cycle: number;
  readonly keys: readonly ApiKeyRecord[];
  /** The latest second ever seen. Keys expire by it. */
  readonly latestSeconds: number;
}

export interface PageRequest {
  /** A substring of the account names. */
  readonly contains?: string;
  /** The last name of the previous page. */
  readonly after?: string;
  readonly count: number;
}

export interface AccountPage {
  readonly views: readonly AccountView[];
  /** Number of matching accounts on all pages. */
  readonly total: number;
  readonly isLast: boolean;
}

const ACCOUNT_NAME = /^[a-z0-9][a-z0-9._@-]{0,63}$/;

/** A line of the audit table. */
interface AuditLine {
  readonly action: string;
  /** Seconds since 1970. */
  readonly at: number;
  /** Null if the line is not about an account. */
  readonly accountId: number | null;
  readonly before: string | null;
  readonly after: string | null;
}

/** Administration of the accounts in a ledger store. */
export class Ledger {
  readonly store: LedgerStore;
  readonly #keys: KeyIssuer;
  readonly #actor: string;
  readonly #actingKeyId: number | undefined;
  readonly #expectedState: string | undefined;
  readonly #plans: () => readonly Plan[];
  /** Servers that did not apply the latest change in time. */
  #unreached: readonly string[] = [];

  /** @param store closed by {@link close}. */
  constructor(store: LedgerStore, options: LedgerOptions) {
    this.store = store;
    this.#keys = new KeyIssuer(store, options.keyFile);
    this.#actor = (options.actor ?? 'unknown').slice(0, 64);
    this.#actingKeyId = options.actingKeyId;
    this.#expectedState = options.expectedState;
    this.#plans = options.plans ?? loadPlans;
  }

  close(): Promise<void> {
    return this.store.close();
  }

  /** A message that names the servers that have not applied the latest change yet; undefined if all have. */
  get lag(): string | undefined {
    if (this.#unreached.length === 0) return undefined;
    return `These servers do not follow yet: ${this.#unreached.join(', ')}. Until they do, or refuse to answer, they go by what was before.`;
  }

  /**
   * Creates an account without a plan. It is not activated until it subscribes.
   *
   * @throws PagegateError bad_account_name, account_exists, too_many_accounts, ledger_unavailable
   */
  async createAccount(name: string): Promise<Account> {
    if (!ACCOUNT_NAME.test(name)) throw new PagegateError('bad_account_name', `Got "${name.slice(0, 80)}".`);
    return this.#change('account.create', name, async (sql, { seconds }) => {
      if ((await accountByName(sql, name)) !== undefined) throw new PagegateError('account_exists', `Got "${name}".`);
      const insert = "INSERT INTO accounts (name, state, created_at) VALUES (?, 'created', ?) RETURNING id";
      const { id = 0 } = (await sql.row<{ id: number }>(insert, name, seconds)) ?? {};
      if (id > LIMITS.accounts.value) throw new PagegateError('too_many_accounts', `The latest is ${id - 1}.`);
      return existingAccount(sql, name);
    });
  }

  /**
   * Issues a key to an account that has no current one, before or without a payment.
   *
   * @throws PagegateError account_not_found, account_state, bad_key_file, ledger_unavailable
   */
  issueKey(name: string): Promise<IssuedKey> {
    return this.#change('key.issue', name, async (sql, moment) => {
      const account = await changeableAccount(sql, name);
      if ((await currentKeys(sql, account.id, moment)).length > 0) {
        throw new PagegateError('account_state', `"${name}" has a key; use pagegate key show or key rotate.`);
      }
      return this.#keys.issue(sql, account.id, moment);
    });
  }

  /**
   * Records a paid plan: activates the account, and issues a key if it has none. If the account has a plan already, this is an
   * upgrade (in force at once; usage and cycle stay) or a downgrade (in force from the next cycle on).
   *
   * @param reference the payment's reference. Each is accepted once.
   * @param limit lookups a cycle, for a plan without a limit of its own.
   * @throws PagegateError bad_payment_reference, payment_known, bad_plan_catalogue, unknown_plan, bad_plan_limit, account_not_found,
   * account_state, ledger_unavailable
   */
  async subscribe(
    name: string,
    planId: string,
    reference: string,
    limit?: number,
  ): Promise<{ account: Account; issued: IssuedKey | undefined }> {
    checkReference(reference);
    const wanted = resolvePlan(this.#plans(), planId, limit);
    return this.#change(
      'account.subscribe',
      name,
      async (sql, moment) => {
        const account = await changeableAccount(sql, name);
        await applyPayment(sql, account, wanted, reference, moment);
        await setState(sql, account.id, 'active');
        const hasKey = (await currentKeys(sql, account.id, moment)).length > 0;
        const issued = hasKey ? undefined : await this.#keys.issue(sql, account.id, moment);
        return { account: await existingAccount(sql, name), issued };
      },
      reference,
    );
  }

  /** Withdraws a pending downgrade. @throws PagegateError account_not_found, account_state, ledger_unavailable */
  keepPlan(name: string): Promise<Account> {
    return this.#change('account.keep_plan', name, async (sql, moment) => {
      await withdrawDowngrade(sql, await changeableAccount(sql, name), moment);
      return existingAccount(sql, name);
    });
  }

  /**
   * Suspends an account (its lookups are answered 403) or reactivates it. A closed account stays closed.
   *
   * @throws PagegateError account_not_found, account_state, ledger_unavailable
   */
  setActive(name: string, active: boolean): Promise<Account> {
    return this.#change(active ? 'account.reactivate' : 'account.suspend', name, async (sql) => {
      const account = await changeableAccount(sql, name);
      const from = active ? 'suspended' : 'active';
      if (account.state !== from) {
        throw new PagegateError('account_state', `"${name}" is ${account.state}; expected ${from}.`);
      }
      await setState(sql, account.id, active ? 'active' : 'suspended');
      return existingAccount(sql, name);
    });
  }

  /**
   * Closes an account for good: requests with its keys are answered 401. Its records stay.
   *
   * @throws PagegateError account_not_found, account_state, ledger_unavailable
   */
  closeAccount(name: string): Promise<Account> {
    return this.#change('account.close', name, async (sql) => {
      const account = await changeableAccount(sql, name);
      await setState(sql, account.id, 'closed');
      return existingAccount(sql, name);
    });
  }

  /**
   * Issues a new key. The current ones stay valid for `overlapSeconds` and are refused afterwards. They are refused at once if the clock was
   * set back so far that their expiry time lies before the latest time seen. Counting from that time instead would keep them valid until the
   * clock has caught up.
   *
   * @param isKeyFileNew the nodes of a fleet use another file to seal API keys from now on.
   * @throws PagegateError bad_overlap, too_many_keys, account_not_found, account_state, bad_key_file, ledger_unavailable
   */
  async rotateKey(name: string, overlapSeconds = 0, isKeyFileNew = false): Promise<IssuedKey> {
    if (!Number.isInteger(overlapSeconds) || overlapSeconds < 0 || overlapSeconds > LIMITS.overlapSeconds.value) {
      throw new PagegateError('bad_overlap', `Got ${overlapSeconds} seconds.`);
    }
    return this.#change('key.rotate', name, async (sql, moment) => {
      const account = await changeableAccount(sql, name);
      const remaining = overlapSeconds === 0 ? [] : await currentKeys(sql, account.id, moment);
      if (remaining.length >= LIMITS.validKeys.value)
        throw new PagegateError('too_many_keys', `"${name}" has ${remaining.length} valid keys.`);
      const until = moment.seconds + overlapSeconds;
      await sql.run(
        `UPDATE api_keys SET expires_at = CASE WHEN expires_at < ? THEN expires_at ELSE ? END
         WHERE account_id = ? AND revoked_at IS NULL`,
        until,
        until,
        account.id,
      );
      return this.#keys.issue(sql, account.id, moment, isKeyFileNew);
    });
  }

  /** Refuses a key from now on (401). @throws PagegateError account_not_found, key_not_found, account_state, ledger_unavailable */
  revokeKey(name: string, keyId: number): Promise<ApiKeyRecord> {
    return this.#change('key.revoke', name, async (sql, { seconds }) => {
      const account = await changeableAccount(sql, name);
      const key = await existingKey(sql, account, keyId);
      if (key.revokedAt !== null)
        throw new PagegateError('account_state', `Key ${keyId} of "${name}" is revoked already.`);
      await sql.run('UPDATE api_keys SET revoked_at = ? WHERE id = ?', seconds, keyId);
      return existingKey(sql, account, keyId);
    });
  }

  /**
   * Decrypts a key so that it can be shown: the newest current one, or the one with `keyId`. The audit table records it.
   *
   * @throws PagegateError account_not_found, key_not_found, key_not_readable, bad_key_file, ledger_unavailable
   */
  showKey(name: string, keyId?: number): Promise<IssuedKey> {
    return this.#change('key.show', name, async (sql, moment) => {
      const account = await existingAccount(sql, name);
      const record =
        keyId === undefined
          ? (await currentKeys(sql, account.id, moment)).at(-1)
          : await existingKey(sql, account, keyId);
      if (record === undefined) throw new PagegateError('key_not_found', `"${name}" has no current key.`);
      return this.#keys.show(sql, record);
    });
  }

  /** The account that a key is valid for, activated or not; undefined if there is none. @throws PagegateError ledger_unavailable */
  async ownerOf(key: string): Promise<{ readonly name: string; readonly keyId: number } | undefined> {
    if (!isApiKeyShaped(key)) return undefined;
    const text = `SELECT ${KEY_COLUMNS} FROM api_keys WHERE hash = ?`;
    const row = await this.store.row<ApiKeyRow>(text, hashApiKey(key));
    if (row === undefined) return undefined;
    const account = await this.store.row<AccountRow>('SELECT * FROM accounts WHERE id = ?', row.account_id);
    if (account === undefined || !(await this.isKeyOf(account.name, row.id))) return undefined;
    return { name: account.name, keyId: row.id };
  }

  /** Whether a key is still valid for an account. @throws PagegateError account_not_found, ledger_unavailable */
  async isKeyOf(name: string, keyId: number): Promise<boolean> {
    const account = await existingAccount(this.store, name);
    if (account.state === 'closed') return false;
    const keys = await currentKeys(this.store, account.id, await this.store.moment());
    return keys.some((key) => key.id === keyId);
  }

  /** Writes a line that is not about an account into the audit table. @throws PagegateError ledger_unavailable */
  async note(action: string, before: string | null, after: string | null): Promise<void> {
    const { seconds } = await this.store.moment();
    await this.store.transaction((sql) =>
      this.#writeAudit(sql, { action, at: seconds, accountId: null, before, after }),
    );
  }

  /** An account with its quota and keys. @throws PagegateError account_not_found, ledger_unavailable */
  async view(name: string): Promise<AccountView> {
    return (await this.#views([await existingAccount(this.store, name)]))[0]!;
  }

  /** A hash of an account's state, for {@link LedgerOptions.expectedState}. @throws PagegateError ledger_unavailable */
  async stateOf(name: string): Promise<string> {
    return stateHash(this.store, name);
  }

  /** All accounts, by name. @throws PagegateError ledger_unavailable */
  async list(): Promise<AccountView[]> {
    return this.#views((await this.store.rows<AccountRow>('SELECT * FROM accounts ORDER BY name')).map(toAccount));
  }

  /** One page of the accounts, by name. Its cost does not grow with the number of accounts. @throws PagegateError ledger_unavailable */
  async page({ contains = '', after = '', count }: PageRequest): Promise<AccountPage> {
    const named = "name LIKE ? ESCAPE '!'";
    const pattern = likeContaining(contains);
    const text = `SELECT * FROM accounts WHERE ${named} AND name > ? ORDER BY name LIMIT ?`;
    const rows = await this.store.rows<AccountRow>(text, pattern, after, count + 1);
    const all = await this.store.row<{ total: number }>(
      `SELECT count(*) AS total FROM accounts WHERE ${named}`,
      pattern,
    );
    const views = await this.#views(rows.slice(0, count).map(toAccount));
    return { views, total: all?.total ?? 0, isLast: rows.length <= count };
  }

  /**
   * Asks the ledger writer to give back lookups of the current cycle, or to move the meter to another cycle. Nothing else can lower a meter
   * after damage or the loss of a host has charged lookups that were never served.
   *
   * @param note the reason, for the audit table.
   * @throws PagegateError bad_correction, account_state, account_not_found, ledger_unavailable
   */
  correct(name: string, wanted: Correction, note: string): Promise<Account> {
    return this.#change(
      'account.correct',
      name,
      async (sql, { seconds }) => {
        checkCorrectionNote(note);
        const account = await changeableAccount(sql, name);
        await requestCorrection(sql, account, wanted, { isFleet: this.store.isFleet, nowSeconds: seconds });
        return account;
      },
      `${JSON.stringify(wanted)} ${note}`,
    );
  }

  /** Accepts a clock that is far ahead of the latest time seen. @throws PagegateError ledger_unavailable */
  async acceptClock(): Promise<void> {
    const { latestSeconds, seconds } = await this.store.moment();
    const revision = await this.store.transaction(async (sql) => {
      const before = JSON.stringify(await sql.row('SELECT last_seen_at FROM ledger'));
      await sql.run('UPDATE ledger SET last_seen_at = ?', latestSeconds);
      const line = { action: 'ledger.accept_clock', at: seconds, accountId: null, before, after: null };
      await this.#writeAudit(sql, line);
      return nextRevision(sql);
    });
    this.#unreached = await this.store.followed(revision, { untilReady: true });
  }

  async #views(accounts: readonly Account[]): Promise<AccountView[]> {
    const { seconds, latestSeconds } = await this.store.moment();
    const usage = await this.store.usage(accounts);
    const keys = await keysByAccount(
      this.store,
      accounts.map(({ id }) => id),
    );
    return accounts.map((account) => {
      const seen = usage.get(account.id) ?? NO_USAGE;
      const { cycle } = currentUsage(account, seen, seconds);
      const quota = quotaView(account, seen, seconds);
      return {
        account: withEffectivePlan(account, cycle),
        cycle,
        quota,
        keys: keys.get(account.id) ?? [],
        latestSeconds,
      };
    });
  }

  #writeAudit(sql: Sql, { at, action, accountId, before, after }: AuditLine): Promise<number> {
    const insert = 'INSERT INTO audit (at, actor, action, account_id, before, after) VALUES (?, ?, ?, ?, ?, ?)';
    return sql.run(insert, at, this.#actor, action, accountId, before, after);
  }

  /**
   * Makes a change, writes its line in the audit table and increments the revision, all in one transaction. Then waits for running servers to
   * apply it.
   */
  async #change<T>(
    action: string,
    name: string,
    task: (sql: Transaction, moment: ClockReading) => Promise<T>,
    note = '',
  ): Promise<T> {
    const moment = await this.store.moment();
    if (moment.problem !== undefined) throw new PagegateError('ledger_clock', moment.problem);
    const { done, revision } = await this.store.transaction(async (sql) => {
      if (this.#actingKeyId !== undefined) await requireLastingKey(sql, name, this.#actingKeyId);
      if (this.#expectedState !== undefined && (await stateHash(sql, name)) !== this.#expectedState)
        throw new PagegateError('account_changed');
      const before = await auditSnapshot(sql, name, moment);
      const result = await task(sql, moment);
      const { id: accountId } = await existingAccount(sql, name);
      const text = note === '' ? action : `${action} ${note}`;
      const after = await auditSnapshot(sql, name, moment);
      await this.#writeAudit(sql, { action: text, at: moment.seconds, accountId, before, after });
      return { done: result, revision: await nextRevision(sql) };
    });
    this.#unreached = await this.store.followed(revision);
    return done;
  }
}

async function nextRevision(sql: Sql): Promise<number> {
  const row = await sql.row<{ revision: number }>('UPDATE ledger SET revision = revision + 1 RETURNING revision');
  return row?.revision ?? 0;
}
