/** A node's copy of the fleet's accounts and keys, which its workers read. The node's own meters are in the same file. */
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import type { Database } from '../../platform/sqlite.ts';
import type { Engine } from '../postgres/engine.ts';
import type { SyncDay } from '../postgres/sync.ts';
import { openDatabase } from '../store/database.ts';
import { asideName, identityFile, readIdentity } from '../store/identity.ts';
import { ACCOUNT_COLUMNS, type AccountRow, STORED_KEY_COLUMNS, type StoredKeyRow } from '../store/records.ts';

/** Number of days whose usage a node reports again when it connects. */
const REPORTED_DAYS = 40;

/** The statement that inserts or updates a row, by its id. */
function upsertText(table: string, columns: readonly string[]): string {
  const others = columns.filter((column) => column !== 'id').map((column) => `${column} = excluded.${column}`);
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((column) => `@${column}`).join(', ')})
    ON CONFLICT (id) DO UPDATE SET ${others.join(', ')}`;
}

/** Prepares the statements of a copy. */
function prepareCopy(database: Database) {
  return {
    account: database.prepare<[AccountRow]>(upsertText('accounts', ACCOUNT_COLUMNS)),
    key: database.prepare<[StoredKeyRow]>(upsertText('api_keys', STORED_KEY_COLUMNS)),
    // The ledger writer reads accounts again that the audit table names.
    audit: database.prepare<[number]>(
      "INSERT INTO audit (at, actor, action, account_id) VALUES (0, 'fleet', 'fleet.follow', ?)",
    ),
    followed: database.prepare<[number, number]>('UPDATE ledger SET revision = ?, history = ?'),
    days: database.prepare<[number, number, string], SyncDay>(
      `WITH days AS (SELECT account_id AS id, day, day_used AS lookups FROM meters WHERE day >= ? AND day_used > 0
         UNION ALL SELECT account_id, day, lookups FROM usage_days WHERE day >= ?)
       SELECT id, day, lookups FROM days WHERE id IN (SELECT value FROM json_each(?))`,
    ),
  };
}

/**
 * Ensures that the copy belongs to this node. If the folder was copied from another node, or has lost its file, this node starts over with a
 * new id: what the other node holds stays the other node's.
 */
export function ensureOwnCopy(file: string, nowMs: number): void {
  const known = readIdentity(file);
  if (known === undefined) return;
  const inode = statSync(file, { bigint: true, throwIfNoEntry: false })?.ino ?? 0n;
  if (inode !== 0n && (known.file === '0' || known.file === String(inode))) return;
  setCopyAside(file, nowMs);
}

/** Moves the copy aside. The next one has another id. */
export function setCopyAside(file: string, nowMs: number): void {
  for (const suffix of ['', '-wal', '-shm'])
    if (existsSync(file + suffix)) renameSync(file + suffix, asideName(file, nowMs) + suffix);
  rmSync(identityFile(file), { force: true });
}

/** The open copy. Its connection is separate from the ledger writer's. */
export class FleetCopy {
  readonly nodeId: string;
  /** Incremented with each start of the ledger writer. */
  readonly incarnation: number;
  revision: number;
  history: number;
  readonly #database: Database;
  readonly #statements: ReturnType<typeof prepareCopy>;
  #fleetId: string | null;

  /** @throws PagegateError ledger_unavailable */
  constructor(file: string) {
    this.#database = openDatabase(file, { isLocked: true });
    // A new file starts with a revision, but a copy that has no fleet yet must start at 0.
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
    this.#statements = prepareCopy(this.#database);
  }

  /** Refuses a fleet other than the one that was copied. @throws PagegateError ledger_unavailable */
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

  /**
   * Copies what is newer in the engine, or everything if its history has changed.
   *
   * @returns the ids of the copied accounts.
   */
  async follow(engine: Engine): Promise<readonly number[]> {
    // Read first, so that whatever changes meanwhile is copied again the next time. Both numbers are read in one statement: a new history has a
    // new revision, from which the ledger writer and the workers see that there is something new.
    const [home] = await engine.query<{ revision: number; history: number }>('SELECT revision, history FROM ledger');
    if (home === undefined)
      throw new PagegateError('ledger_unavailable', `${engine.name}: the ledger’s own row is gone.`);
    const { revision, history } = home;
    const isFull = history !== this.history;
    const since = isFull ? -1 : this.revision;
    const newer = <Row>(table: string, columns: readonly string[]): Promise<Row[]> =>
      engine.query<Row>(`SELECT ${columns.join(', ')} FROM ${table} WHERE revision > $1 ORDER BY id`, [since]);
    const accounts = await newer<AccountRow>('accounts', ACCOUNT_COLUMNS);
    const keys = await newer<StoredKeyRow>('api_keys', STORED_KEY_COLUMNS);
    this.#database.transaction(() => this.#write(accounts, keys, { revision, history, isFull })).immediate();
    this.revision = revision;
    this.history = history;
    return accounts.map(({ id }) => id);
  }

  #write(
    accounts: readonly AccountRow[],
    keys: readonly StoredKeyRow[],
    { revision, history, isFull }: { revision: number; history: number; isFull: boolean },
  ): void {
    if (isFull) {
      // Accounts and keys that the engine does not know (any more) must not be accepted here. Their names may belong to other accounts now.
      this.#database.exec(
        "UPDATE accounts SET state = 'closed', name = '-' || id; UPDATE api_keys SET revoked_at = 0, hash = '-' || id;",
      );
    }
    const { account, key, audit, followed } = this.#statements;
    for (const row of accounts) {
      account.run(row);
      audit.run(row.id);
    }
    for (const row of keys) key.run(row);
    followed.run(revision, history);
  }

  /** Returns the recent usage by day that this node has charged to some accounts. With `isFull`, after a reconnect, it covers more days. */
  days(accountIds: readonly number[], today: number, isFull: boolean): SyncDay[] {
    const since = isFull ? today - REPORTED_DAYS : today - 1;
    return this.#statements.days.all(since, since, JSON.stringify(accountIds));
  }

  close(): void {
    this.#database.close();
  }
}
