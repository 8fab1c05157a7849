/** A node's copy of the fleet's accounts and keys: what its workers read, and the node's own meters. */
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import type { Database } from '../../platform/sqlite.ts';
import type { Engine } from '../postgres/engine.ts';
import type { SyncDay } from '../postgres/sync.ts';
import { openDatabase } from '../store/database.ts';
import { asideName, identityFile, readIdentity } from '../store/identity.ts';
import { ACCOUNT_COLUMNS, type AccountRow, STORED_KEY_COLUMNS, type StoredKeyRow } from '../store/records.ts';

/** Days that a node reports again when it (re)connects. */
const REPORTED_DAYS = 40;

/** Writes a row, whether or not it is there; every row has an id. */
function upsertText(table: string, columns: readonly string[]): string {
  const others = columns.filter((column) => column !== 'id').map((column) => `${column} = excluded.${column}`);
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((column) => `@${column}`).join(', ')})
    ON CONFLICT (id) DO UPDATE SET ${others.join(', ')}`;
}

/** The statements of a copy, prepared once. */
function prepareCopy(database: Database) {
  return {
    account: database.prepare<[AccountRow]>(upsertText('accounts', ACCOUNT_COLUMNS)),
    key: database.prepare<[StoredKeyRow]>(upsertText('api_keys', STORED_KEY_COLUMNS)),
    // The ledger writer reads again what the audit names.
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
 * Makes sure that the copy is this node's own. A folder that was copied, or that lost its file, starts over under an id of its own: what
 * the other node holds stays the other's.
 */
export function ensureOwnCopy(file: string, nowMs: number): void {
  const known = readIdentity(file);
  if (known === undefined) return;
  const inode = statSync(file, { bigint: true, throwIfNoEntry: false })?.ino ?? 0n;
  if (inode !== 0n && (known.file === '0' || known.file === String(inode))) return;
  setCopyAside(file, nowMs);
}

/** Sets the copy aside; the next one has another id. */
export function setCopyAside(file: string, nowMs: number): void {
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
  readonly #statements: ReturnType<typeof prepareCopy>;
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
    this.#statements = prepareCopy(this.#database);
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

  /**
   * Takes over what is newer in the engine, or everything where its history has changed.
   *
   * @returns the ids of the accounts.
   */
  async follow(engine: Engine): Promise<readonly number[]> {
    // First: what changes meanwhile is read again. Both at once: another history has another revision, by which the ledger writer and the
    // workers see that there is something new.
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
      // What the engine does not know (any more) opens nothing here. Names are free again: they may have gone to others.
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

  /** Usage by day of some accounts since a day, as this node has charged it; of all accounts and many days when it reconnects. */
  days(accountIds: readonly number[], today: number, isFull: boolean): SyncDay[] {
    const since = isFull ? today - REPORTED_DAYS : today - 1;
    return this.#statements.days.all(since, since, JSON.stringify(accountIds));
  }

  close(): void {
    this.#database.close();
  }
}
