/** A node's copy of the fleet's accounts and keys: what its workers read, and the node's own meters. */
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import type { Engine } from '../postgres/engine.ts';
import type { SyncDay } from '../postgres/sync.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { asideName, identityFile, readIdentity } from '../store/identity.ts';
import type { AccountRow } from '../store/records.ts';

/** Days that a node reports again when it (re)connects. */
const REPORTED_DAYS = 40;

interface KeyRow {
  readonly id: number;
  readonly account_id: number;
  readonly hash: string;
  readonly vault_id: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
}

/**
 * Makes sure that the copy is this node's own. A folder that was copied, or that lost its file, begins anew under an id of its own: what
 * the other node holds stays the other's.
 */
export function refuseCopiedFolder(file: string, nowMs: number): void {
  const known = readIdentity(file);
  if (known === undefined) return;
  const inode = statSync(file, { bigint: true, throwIfNoEntry: false })?.ino ?? 0n;
  if (inode !== 0n && (known.file === '0' || known.file === String(inode))) return;
  beginAnew(file, nowMs);
}

/** Sets the copy aside; the next one has another id. */
export function beginAnew(file: string, nowMs: number): void {
  for (const suffix of ['', '-wal', '-shm'])
    if (existsSync(file + suffix)) renameSync(file + suffix, asideName(file, nowMs) + suffix);
  rmSync(identityFile(file), { force: true });
}

/** The copy, opened beside the ledger writer's own connection. */
export class FleetCopy {
  readonly nodeId: string;
  /** Grows with each start of the ledger writer. */
  readonly incarnation: number;
  revision: number;
  history: number;
  readonly #database: Database;
  #fleetId: string | null;

  /** @throws PagegateError ledger_unavailable */
  constructor(file: string) {
    this.#database = openDatabase(file, { isLocked: true });
    // A new file begins with a revision of its own; a copy of nothing has none.
    this.#database.exec('UPDATE ledger SET revision = 0 WHERE fleet_id IS NULL');
    const state = this.#database
      .prepare<
        [],
        { ledger_id: string; fleet_id: string | null; incarnation: number; revision: number; history: number }
      >('UPDATE ledger SET incarnation = incarnation + 1 RETURNING ledger_id, fleet_id, incarnation, revision, history')
      .get()!;
    this.nodeId = state.ledger_id;
    this.incarnation = state.incarnation;
    this.revision = state.revision;
    this.history = state.history;
    this.#fleetId = state.fleet_id;
  }

  /** Refuses another fleet than the one that this is a copy of. @throws PagegateError ledger_unavailable */
  refuseOther(fleetId: string, name: string): void {
    if (this.#fleetId === null) this.#database.prepare('UPDATE ledger SET fleet_id = ?').run(fleetId);
    this.#fleetId ??= fleetId;
    if (this.#fleetId === fleetId) return;
    throw new PagegateError(
      'ledger_unavailable',
      `${name} is another ledger: expected ${this.#fleetId}, got ${fleetId}. Correct ledger.url; to join that fleet, stop the server and ` +
        'move the folder `fleet` of its state directory away.',
    );
  }

  /** Takes over what is newer in the engine, or everything where its history has changed. */
  async follow(engine: Engine, history: number): Promise<void> {
    const isFull = history !== this.history;
    const since = isFull ? -1 : this.revision;
    // First: what changes meanwhile is read again.
    const [home] = await engine.query<{ revision: number }>('SELECT revision FROM ledger');
    const accounts = await engine.query<AccountRow>(
      `SELECT id, name, state, created_at, plan, quota_limit, cycle_anchor, next_plan, next_limit, next_from_cycle
       FROM accounts WHERE revision > $1 ORDER BY id`,
      [since],
    );
    const keys = await engine.query<KeyRow>(
      'SELECT id, account_id, hash, vault_id, created_at, expires_at, revoked_at FROM api_keys WHERE revision > $1 ORDER BY id',
      [since],
    );
    const revision = home?.revision ?? 0;
    this.#database.transaction(() => this.#write(accounts, keys, { revision, history, isFull })).immediate();
    this.revision = revision;
    this.history = history;
  }

  #write(
    accounts: readonly AccountRow[],
    keys: readonly KeyRow[],
    { revision, history, isFull }: { revision: number; history: number; isFull: boolean },
  ): void {
    const database = this.#database;
    if (isFull) {
      // What the engine does not know (any more) opens nothing here. Names are free again: they may have gone to others.
      database.exec(
        "UPDATE accounts SET state = 'closed', name = '-' || id; UPDATE api_keys SET revoked_at = 0, hash = '-' || id;",
      );
    }
    const account = database.prepare(
      `INSERT INTO accounts VALUES (@id, @name, @state, @created_at, @plan, @quota_limit, @cycle_anchor, @next_plan, @next_limit, @next_from_cycle)
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, state = excluded.state, created_at = excluded.created_at,
         plan = excluded.plan, quota_limit = excluded.quota_limit, cycle_anchor = excluded.cycle_anchor,
         next_plan = excluded.next_plan, next_limit = excluded.next_limit, next_from_cycle = excluded.next_from_cycle`,
    );
    const key = database.prepare(
      `INSERT INTO api_keys (id, account_id, hash, vault_id, created_at, expires_at, revoked_at)
         VALUES (@id, @account_id, @hash, @vault_id, @created_at, @expires_at, @revoked_at)
       ON CONFLICT (id) DO UPDATE SET account_id = excluded.account_id, hash = excluded.hash, vault_id = excluded.vault_id,
         created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at`,
    );
    // The ledger writer reads again what the audit names.
    const audit = database.prepare(
      "INSERT INTO audit (at, actor, action, account_id) VALUES (0, 'fleet', 'fleet.follow', ?)",
    );
    for (const row of accounts) {
      account.run(row);
      audit.run(row.id);
    }
    for (const row of keys) key.run(row);
    database.prepare('UPDATE ledger SET revision = ?, history = ?').run(revision, history);
  }

  /** Usage by day of some accounts since a day, as this node has charged it; of all accounts and many days when it reconnects. */
  days(accountIds: readonly number[], today: number, isFull: boolean): SyncDay[] {
    const since = isFull ? today - REPORTED_DAYS : today - 1;
    return this.#database
      .prepare<[number, number, string], SyncDay>(
        `WITH days AS (SELECT account_id AS id, day, day_used AS lookups FROM meters WHERE day >= ? AND day_used > 0
           UNION ALL SELECT account_id, day, lookups FROM usage_days WHERE day >= ?)
         SELECT id, day, lookups FROM days WHERE id IN (SELECT value FROM json_each(?))`,
      )
      .all(since, since, JSON.stringify(accountIds));
  }

  close(): void {
    this.#database.close();
  }
}
