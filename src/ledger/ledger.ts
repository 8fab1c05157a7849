/** Administration of accounts: every change in one transaction together with its line in the audit table. */
import { dirname, resolve } from 'node:path';
import { PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { CLOCK_LEAP_SECONDS, clockProblem } from './clock.ts';
import type { Counters } from './counters/counters.ts';
import { readCounters } from './counters/location.ts';
import { awaitPublished } from './counters/published.ts';
import { cycleAt, dayOf } from './cycle.ts';
import { loadPlans, type Plan, resolvePlan } from './plans.ts';
import {
  type Account,
  type AccountState,
  type CycleUsage,
  currentUsage,
  planIn,
  type QuotaView,
  quotaView,
  withEffectivePlan,
} from './quota.ts';
import { createApiKey, hashApiKey } from './store/api-key.ts';
import { type Database, openDatabase } from './store/database.ts';
import { refuseForeignLedger, refuseLostLedger, requireLedger } from './store/identity.ts';
import { type KeyVault, openKeyVault } from './store/key-vault.ts';
import { createMeterStore, knownUsage, type MeterStore } from './store/meters.ts';
import { type ApiKeyRecord, createReader, isKeyCurrent, type Reader, writePlan } from './store/records.ts';
import { asLedgerError } from './store/sqlite.ts';

export interface LedgerOptions {
  /** The SQLite file. */
  readonly file: string;
  /** The key that encrypts stored API keys; it must lie in another directory than the file. */
  readonly keyFile: string;
  /** Who is named in the audit table. */
  readonly actor?: string;
  readonly plans?: readonly Plan[];
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
  readonly readonly?: boolean;
  /** Makes the file where there never was one; true unless told otherwise. */
  readonly create?: boolean;
}

/** A key at the moment it is issued: the only time that it is returned beside {@link Ledger.showKey}. */
export interface IssuedKey {
  readonly key: string;
  readonly record: ApiKeyRecord;
}

export interface AccountView {
  /** As it stands in the cycle that counts: a downgrade that has taken effect waits no more. */
  readonly account: Account;
  readonly quota: QuotaView;
  readonly cycle: number;
  readonly keys: readonly ApiKeyRecord[];
  /** The latest second seen, by which keys expire. */
  readonly latestSeconds: number;
}

/** Accounts a ledger may hold: each has one slot in the shared counters, and their ids begin at 1. */
const ACCOUNTS_MAX = LIMITS.accounts.value;
const ACCOUNT_NAME = /^[a-z0-9][a-z0-9._@-]{0,63}$/;
const REFERENCE = /^[\x21-\x7e][\x20-\x7e]{0,127}$/;
/** A rotated key may stay valid beside its successor for at most this long, in seconds. */
const OVERLAP_MAX_SECONDS = LIMITS.overlapSeconds.value;

export class Ledger {
  readonly database: Database;
  readonly read: Reader;
  readonly #file: string;
  readonly #keyFile: string;
  readonly #actor: string;
  readonly #plans: readonly Plan[] | undefined;
  readonly #now: () => number;
  readonly #ledgerId: string;
  readonly #meters: MeterStore;
  #vault: KeyVault | undefined;

  constructor(options: LedgerOptions) {
    this.#keyFile = options.keyFile;
    this.#file = options.file;
    this.#actor = (options.actor ?? 'unknown').slice(0, 64);
    this.#plans = options.plans;
    this.#now = options.now ?? Date.now;
    const mustExist = options.create === false;
    (mustExist ? requireLedger : refuseLostLedger)(this.#file);
    this.database = openDatabase(this.#file, { readonly: options.readonly ?? false, mustExist });
    try {
      this.read = createReader(this.database);
      this.#ledgerId = this.read.ledgerId();
      this.#meters = createMeterStore(this.database);
      refuseForeignLedger(this.#file, this.#ledgerId);
    } catch (error) {
      this.database.close();
      throw asLedgerError(error, this.#file);
    }
  }

  close(): void {
    this.database.close();
  }

  /** Makes an account without a plan: not activated until it is subscribed. */
  createAccount(name: string): Account {
    if (!ACCOUNT_NAME.test(name)) throw new PagegateError('bad_account_name', `Got "${name.slice(0, 80)}".`);
    return this.#change('account.create', name, () => {
      if (this.read.accountByName(name) !== undefined) throw new PagegateError('account_exists', `Got "${name}".`);
      const latest = this.database.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'accounts'").pluck().get();
      if (Number(latest ?? 0) >= ACCOUNTS_MAX) throw new PagegateError('too_many_accounts', `The latest is ${latest}.`);
      const insert = this.database.prepare("INSERT INTO accounts (name, state, created_at) VALUES (?, 'created', ?)");
      const id = insert.run(name, this.#seconds()).lastInsertRowid;
      this.database.prepare('INSERT INTO meters (account_id) VALUES (?)').run(id);
      return this.#account(name);
    });
  }

  /** Issues a first key to an account that has none, before or without a payment. */
  issueKey(name: string): IssuedKey {
    return this.#change('key.issue', name, () => {
      const account = this.#open(name);
      if (this.#currentKeys(account.id).length > 0) {
        throw new PagegateError('account_state', `"${name}" has a key; use pagegate key show or key rotate.`);
      }
      return this.#insertKey(account.id);
    });
  }

  /**
   * Records a paid plan: activates the account and issues its key where it has none. On an account that has a plan it is an
   * upgrade (at once, what was used and the cycle stay) or a downgrade (from the next boundary on).
   *
   * @param reference the payment's, recorded once: the same reference twice is refused.
   * @param limit lookups a cycle, for a plan without a limit of its own.
   */
  subscribe(
    name: string,
    planId: string,
    reference: string,
    limit?: number,
  ): { account: Account; issued: IssuedKey | undefined } {
    if (!REFERENCE.test(reference)) throw new PagegateError('bad_payment_reference', '');
    const wanted = resolvePlan(this.#plans ?? loadPlans(), planId, limit);
    return this.#change(
      'account.subscribe',
      name,
      () => {
        const account = this.#open(name);
        this.#recordPayment(account.id, wanted, reference);
        if (account.anchor === null) {
          this.database
            .prepare("UPDATE accounts SET state = 'active', plan = ?, quota_limit = ?, cycle_anchor = ? WHERE id = ?")
            .run(wanted.plan, wanted.limit, this.#seconds(), account.id);
        } else {
          this.#changePlan(account, wanted);
          this.#setState(account.id, 'active');
        }
        const issued = this.#currentKeys(account.id).length === 0 ? this.#insertKey(account.id) : undefined;
        return { account: this.#account(name), issued };
      },
      reference,
    );
  }

  /** Withdraws a downgrade that still waits for its boundary. */
  keepPlan(name: string): Account {
    return this.#change('account.keep_plan', name, () => {
      const { settled } = this.#standing(this.#open(name));
      if (settled.next === null) throw new PagegateError('account_state', `"${name}" has no waiting downgrade.`);
      writePlan(this.database, { ...settled, next: null });
      return this.#account(name);
    });
  }

  /** Takes the activation away (403) or gives it back; a closed account stays closed. */
  setActive(name: string, active: boolean): Account {
    return this.#change(active ? 'account.reactivate' : 'account.suspend', name, () => {
      const account = this.#open(name);
      const from = active ? 'suspended' : 'active';
      if (account.state !== from) {
        throw new PagegateError('account_state', `"${name}" is ${account.state}; expected ${from}.`);
      }
      this.#setState(account.id, active ? 'active' : 'suspended');
      return this.#account(name);
    });
  }

  /** Closes an account for good: its keys match no account any more (401). Its records stay. */
  closeAccount(name: string): Account {
    return this.#change('account.close', name, () => {
      const account = this.#open(name);
      this.#setState(account.id, 'closed');
      return this.#account(name);
    });
  }

  /**
   * Issues a new key; the current ones go on for `overlapSeconds` and are refused after it. Where the clock was put back so far that
   * their end lies before the latest moment seen, they end at once: by that moment they would go on until the clock has caught up.
   */
  rotateKey(name: string, overlapSeconds = 0): IssuedKey {
    if (!Number.isInteger(overlapSeconds) || overlapSeconds < 0 || overlapSeconds > OVERLAP_MAX_SECONDS) {
      throw new PagegateError('bad_overlap', `Got ${overlapSeconds} seconds.`);
    }
    return this.#change('key.rotate', name, () => {
      const account = this.#open(name);
      const until = this.#seconds() + overlapSeconds;
      this.database
        .prepare(
          'UPDATE api_keys SET expires_at = min(coalesce(expires_at, @until), @until) WHERE account_id = @id AND revoked_at IS NULL',
        )
        .run({ until, id: account.id });
      return this.#insertKey(account.id);
    });
  }

  /** Refuses a key from now on (401). */
  revokeKey(name: string, keyId: number): ApiKeyRecord {
    return this.#change('key.revoke', name, () => {
      const account = this.#open(name);
      const key = this.#keyOf(account, keyId);
      if (key.revokedAt !== null)
        throw new PagegateError('account_state', `Key ${keyId} of "${name}" is revoked already.`);
      this.database.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ?').run(this.#seconds(), keyId);
      return this.#keyOf(account, keyId);
    });
  }

  /**
   * Decrypts a key for the account area; the newest current one unless a key id says otherwise. The look is audited.
   *
   * @throws PagegateError key_not_found, key_not_readable.
   */
  showKey(name: string, keyId?: number): IssuedKey {
    return this.#change('key.show', name, () => {
      const account = this.#account(name);
      const record = keyId === undefined ? this.#currentKeys(account.id).at(-1) : this.#keyOf(account, keyId);
      if (record === undefined) throw new PagegateError('key_not_found', `"${name}" has no current key.`);
      const row = this.database
        .prepare<[number], { sealed: Uint8Array; vault_id: string }>(
          'SELECT sealed, vault_id FROM api_keys WHERE id = ?',
        )
        .get(record.id)!;
      if (row.vault_id !== this.#keys().id) {
        throw new PagegateError(
          'key_not_readable',
          `Key ${record.id} was sealed by ${row.vault_id}, here is ${this.#keys().id}.`,
        );
      }
      return { key: this.#keys().open(row.sealed, account.id, record.id), record };
    });
  }

  /** An account with its quota and keys. @throws PagegateError account_not_found */
  view(name: string): AccountView {
    return this.#guard(() => this.#view(this.#account(name), this.#counters()));
  }

  list(): AccountView[] {
    const counters = this.#counters();
    return this.#guard(() => this.read.allAccounts().map((account) => this.#view(account, counters)));
  }

  /**
   * Asks the ledger writer to give lookups of the present cycle back, or to move the meter to another cycle: the only way back, for what
   * damage or a lost host has charged without a lookup. {@link applyCorrections} carries it out.
   *
   * @param note why, for the audit.
   * @throws PagegateError bad_correction, account_state, account_not_found
   */
  correct(name: string, wanted: { credit?: number; cycle?: number; used?: number }, note: string): void {
    this.#change(
      'account.correct',
      name,
      () => {
        const account = this.#open(name);
        if (account.anchor === null) throw new PagegateError('account_state', `"${name}" has no plan yet.`);
        const { credit = 0, cycle = null, used = null } = wanted;
        const latest = cycleAt(account.anchor, this.#seconds());
        if (cycle !== null && cycle > latest)
          throw new PagegateError(
            'bad_correction',
            `--cycle: expected 0 to ${latest}, the cycle of today, got ${cycle}.`,
          );
        const limit = planIn(account, cycle ?? latest)?.limit ?? 0;
        if (used !== null && used > limit)
          throw new PagegateError('bad_correction', `--used: expected 0 to ${limit}, the limit, got ${used}.`);
        if (credit === 0 && cycle === null && used === null)
          throw new PagegateError('bad_correction', 'Give --credit, --used or --cycle.');
        this.database
          .prepare('INSERT INTO corrections (account_id, cycle, used, credit) VALUES (?, ?, ?, ?)')
          .run(account.id, cycle, used, credit);
        return account;
      },
      `${JSON.stringify(wanted)} ${note}`,
    );
  }

  /** Confirms a clock that is far ahead of the latest moment seen. */
  acceptClock(): void {
    this.#guard(() =>
      this.database
        .transaction(() => {
          const saved = JSON.stringify({ last_seen_at: this.read.lastSeenSeconds() });
          this.database.prepare('UPDATE ledger SET last_seen_at = ?, revision = revision + 1').run(this.#latest());
          this.#writeAudit('ledger.accept_clock', null, saved, null);
        })
        .immediate(),
    );
    awaitPublished(this.#file, this.#ledgerId, this.read.revision(), { untilReady: true });
  }

  #view(account: Account, counters: Counters | undefined): AccountView {
    const seen = this.#cycleUsage(account, counters);
    const { cycle } = currentUsage(account, seen, this.#seconds());
    const quota = quotaView(account, seen, this.#seconds());
    const keys = this.read.apiKeysOf(account.id);
    return { account: withEffectivePlan(account, cycle), cycle, quota, keys, latestSeconds: this.#latest() };
  }

  #counters(): Counters | undefined {
    return readCounters(this.#file, this.#ledgerId);
  }

  /** By the rule of the ledger writer: the shared counters where they can be true, else all that is reserved. */
  #cycleUsage({ id, anchor }: Account, counters = this.#counters()): CycleUsage {
    const row = this.#meters.one(id);
    if (row === undefined || anchor === null) return { cycle: 0, used: 0 };
    const latestCycle = cycleAt(anchor, this.#latest() + CLOCK_LEAP_SECONDS);
    return knownUsage(row, counters?.view(id), { today: dayOf(this.#seconds()), latestCycle });
  }

  #seconds(): number {
    return Math.floor(this.#now() / 1000);
  }

  #latest(): number {
    return Math.max(this.#seconds(), this.read.lastSeenSeconds());
  }

  #keys(): KeyVault {
    if (dirname(resolve(this.#keyFile)) === dirname(resolve(this.#file))) {
      throw new PagegateError('bad_key_file', `${this.#keyFile} lies beside the ledger; one backup would carry both.`);
    }
    this.#vault ??= openKeyVault(this.#keyFile);
    return this.#vault;
  }

  #account(name: string): Account {
    const account = this.read.accountByName(name);
    if (account === undefined) throw new PagegateError('account_not_found', `Got "${name.slice(0, 80)}".`);
    return account;
  }

  /** An account that may still be changed. */
  #open(name: string): Account {
    const account = this.#account(name);
    if (account.state === 'closed') throw new PagegateError('account_state', `"${name}" is closed, for good.`);
    return account;
  }

  #currentKeys(accountId: number): ApiKeyRecord[] {
    return this.read.apiKeysOf(accountId).filter((key) => isKeyCurrent(key, this.#latest()));
  }

  #keyOf(account: Account, keyId: number): ApiKeyRecord {
    const key = this.read.apiKeysOf(account.id).find((candidate) => candidate.id === keyId);
    if (key === undefined) throw new PagegateError('key_not_found', `"${account.name}" has no key ${keyId}.`);
    return key;
  }

  #insertKey(accountId: number): IssuedKey {
    const key = createApiKey();
    const insert = this.database.prepare(
      'INSERT INTO api_keys (account_id, hash, vault_id, created_at) VALUES (?, ?, ?, ?)',
    );
    const id = Number(insert.run(accountId, hashApiKey(key), this.#keys().id, this.#seconds()).lastInsertRowid);
    this.database.prepare('UPDATE api_keys SET sealed = ? WHERE id = ?').run(this.#keys().seal(key, accountId, id), id);
    return { key, record: this.read.apiKeysOf(accountId).find((record) => record.id === id)! };
  }

  #recordPayment(accountId: number, wanted: { plan: string; limit: number }, reference: string): void {
    const known = this.database.prepare('SELECT 1 FROM payments WHERE reference = ?').get(reference);
    if (known !== undefined) throw new PagegateError('payment_known', `Got "${reference}".`);
    this.database
      .prepare('INSERT INTO payments (account_id, at, plan, quota_limit, reference) VALUES (?, ?, ?, ?, ?)')
      .run(accountId, this.#seconds(), wanted.plan, wanted.limit, reference);
  }

  /** The cycle that counts now, and the account as it stands in it. */
  #standing(account: Account): { cycle: number; settled: Account } {
    const { cycle } = currentUsage(account, this.#cycleUsage(account), this.#seconds());
    return { cycle, settled: withEffectivePlan(account, cycle) };
  }

  #changePlan(account: Account, wanted: { plan: string; limit: number }): void {
    const { cycle, settled } = this.#standing(account);
    const isUpgrade = wanted.limit >= settled.limit!;
    const next = isUpgrade ? null : { ...wanted, fromCycle: cycle + 1 };
    writePlan(this.database, { ...settled, ...(isUpgrade ? wanted : {}), next });
  }

  #setState(accountId: number, state: AccountState): void {
    this.database.prepare('UPDATE accounts SET state = ? WHERE id = ?').run(state, accountId);
  }

  /** What the audit table keeps of an account: its record and its keys' states, never a key or a hash. */
  #snapshot(account: Account | undefined): string | null {
    return account === undefined ? null : JSON.stringify({ ...account, keys: this.read.apiKeysOf(account.id) });
  }

  #writeAudit(action: string, accountId: number | null, before: string | null, after: string | null): void {
    this.database
      .prepare('INSERT INTO audit (at, actor, action, account_id, before, after) VALUES (?, ?, ?, ?, ?, ?)')
      .run(this.#seconds(), this.#actor, action, accountId, before, after);
  }

  /** One transaction: the change, its line in the audit table, and a new revision, which running servers soon follow. */
  #change<T>(action: string, name: string, task: () => T, note = ''): T {
    const snapshot = (): string | null => this.#snapshot(this.read.accountByName(name));
    const result = this.#guard(() =>
      this.database
        .transaction(() => {
          const problem = clockProblem(this.read.lastSeenSeconds(), this.#seconds());
          if (problem !== undefined) throw new PagegateError('ledger_clock', problem);
          const before = snapshot();
          const done = task();
          this.#writeAudit(note === '' ? action : `${action} ${note}`, this.#account(name).id, before, snapshot());
          this.database.prepare('UPDATE ledger SET revision = revision + 1').run();
          return done;
        })
        .immediate(),
    );
    awaitPublished(this.#file, this.#ledgerId, this.read.revision());
    return result;
  }

  #guard<T>(task: () => T): T {
    try {
      return task();
    } catch (error) {
      throw asLedgerError(error, this.#file);
    }
  }
}

/** @throws PagegateError no_ledger, ledger_unavailable, ledger_on_network, ledger_version. */
export function openLedger(options: LedgerOptions): Ledger {
  return new Ledger(options);
}
