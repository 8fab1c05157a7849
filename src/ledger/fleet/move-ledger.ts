/** Moves a ledger from a host's file to PostgreSQL, or back, while no server charges. Afterwards the source is refused. */
import { existsSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { renameDurable, syncPath } from '../../platform/durable-files.ts';
import { makeFolder } from '../../platform/folders.ts';
import type { Database } from '../../platform/sqlite.ts';
import type { Engine } from '../postgres/engine.ts';
import { IS_RUNNING, isHeardWithin, NOW } from '../postgres/fragments.ts';
import { findLedger } from '../postgres/schema.ts';
import { openDatabase } from '../store/database.ts';
import { isMissingOrEmpty, tryWriterLock } from '../store/identity.ts';
import type { Sql, SqlValue } from '../store/ledger-store.ts';
import { PostgresStore } from '../store/postgres-store.ts';
import { ACCOUNT_COLUMNS, createReader, STORED_KEY_COLUMNS } from '../store/records.ts';
import { Reserver } from '../writer/reserver.ts';
import { setCopyAside } from './account-copy.ts';

export interface MoveReport {
  readonly accounts: number;
  readonly keys: number;
  /** Lookups used in the current cycles. */
  readonly used: number;
  readonly to: string;
}

type Counts = Omit<MoveReport, 'to'>;
type Row = Readonly<Record<string, SqlValue>>;

/** Tables that are the same in both stores, ordered so that a table follows those that it references. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  accounts: ACCOUNT_COLUMNS,
  api_keys: [...STORED_KEY_COLUMNS, 'sealed'],
  payments: ['id', 'account_id', 'at', 'plan', 'quota_limit', 'reference'],
  audit: ['id', 'at', 'actor', 'action', 'account_id', 'before', 'after'],
};

/** Number of rows per statement. */
const BATCH = 500;

function insertText(table: string, columns: readonly string[], rows: number): string {
  const row = `(${columns.map(() => '?').join(', ')})`;
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${Array(rows).fill(row).join(', ')}`;
}

async function insertAll(sql: Sql, table: string, columns: readonly string[], rows: readonly Row[]): Promise<void> {
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH);
    const values = batch.flatMap((row) => columns.map((column) => row[column] ?? null));
    await sql.rows(insertText(table, columns, batch.length), ...values);
  }
}

/** Runs a task under the ledger writer's lock, so that no server of this host can charge. @throws PagegateError ledger_in_use */
async function whileStopped<T>(file: string, task: () => Promise<T>): Promise<T> {
  makeFolder(dirname(file), 0o750);
  const release = tryWriterLock(file);
  if (release === undefined)
    throw new PagegateError('ledger_in_use', `${file}: stop the server, move, and start it again.`, { file });
  try {
    return await task();
  } finally {
    release();
  }
}

/** The value of `moved_to`: the new place of a ledger. Only the id is compared, because a host can have several names. */
const homeOf = (name: string, ledgerId: string): string => `${name} (ledger ${ledgerId})`;
const isHome = (movedTo: string, ledgerId: string): boolean => movedTo.endsWith(`(ledger ${ledgerId})`);

const setMoved = (database: Database, to: string | null): void =>
  void database.prepare('UPDATE ledger SET moved_to = ?').run(to);

/**
 * Moves the ledger of this host to PostgreSQL. If it is interrupted at any moment, it can be run again.
 *
 * @throws PagegateError no_ledger, ledger_in_use, ledger_unavailable, ledger_moved, move_refused if the database has accounts already
 */
export function moveToPostgres(file: string, connect: () => Promise<Engine>): Promise<MoveReport> {
  if (isMissingOrEmpty(file)) throw new PagegateError('no_ledger', `Got "${file}".`);
  return whileStopped(file, async () => {
    const store = await PostgresStore.open(await connect(), { maxStalenessSeconds: 0 });
    const database = openDatabase(file, { mustExist: true, isLocked: true });
    try {
      const movedTo = createReader(database).movedTo();
      if (movedTo !== null && !isHome(movedTo, store.ledgerId))
        throw new PagegateError('ledger_moved', `${file} was moved to ${movedTo}.`);
      // If it is marked as moved already, an earlier move was interrupted between its two commits.
      if (movedTo === null) settle(file);
      return await sendAll(store, database, { file, wasMoved: movedTo !== null });
    } finally {
      database.close();
      await store.close();
    }
  });
}

/** @param options.wasMoved an earlier move has marked the file as moved; whether its rows have arrived is not known. */
async function sendAll(
  store: PostgresStore,
  database: Database,
  { file, wasMoved }: { readonly file: string; readonly wasMoved: boolean },
): Promise<MoveReport> {
  try {
    return await store.transaction(async (sql) => {
      if ((await sql.row('SELECT 1 AS one FROM accounts')) !== undefined)
        throw wasMoved
          ? new PagegateError('ledger_moved', `${file} was moved to ${store.name}.`)
          : new PagegateError('move_refused', `${store.name} has accounts already; name an empty database.`);
      // Keep other commands from changing what has been copied.
      database.exec('BEGIN IMMEDIATE');
      const copied = await fill(sql, database);
      // Mark the file before the database commits, so that both stores can never be served at the same time.
      setMoved(database, homeOf(store.name, store.ledgerId));
      database.exec('COMMIT');
      return { ...copied, to: store.name };
    });
  } catch (error) {
    if (database.inTransaction) database.exec('ROLLBACK');
    // Remove the mark, so that the file can be served again, only if it is certain that nothing has arrived.
    const arrived = await store.rows('SELECT 1 AS one FROM accounts LIMIT 1').catch(() => undefined);
    if (!wasMoved && arrived?.length === 0) setMoved(database, null);
    throw error;
  }
}

/** Sets the meters of a stopped server to what was used. */
function settle(file: string): void {
  const reserver = new Reserver({ file });
  if (!reserver.open()) throw new PagegateError('ledger_unavailable', reserver.state.reason);
  reserver.tick();
  if (!reserver.close()) throw new PagegateError('ledger_unavailable', reserver.state.reason);
}

/** Copies all rows of a file into the empty tables of a fleet's ledger. @throws PagegateError move_refused if not all have arrived */
async function fill(sql: Sql, database: Database): Promise<Counts> {
  const all: ReadRows = (text) => database.prepare<[], Row>(text).all();
  for (const [table, columns] of Object.entries(TABLES)) {
    await insertAll(sql, table, columns, all(`SELECT ${columns.join(', ')} FROM ${table} ORDER BY id`));
    await sql.rows(
      `SELECT setval(pg_get_serial_sequence('pagegate.${table}', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM ${table}), false)`,
    );
  }
  await fillUsage(sql, all);
  const home = database
    .prepare<[], { revision: number; last_seen_at: number }>('SELECT revision, last_seen_at FROM ledger')
    .get()!;
  await sql.run(
    'UPDATE ledger SET revision = ?, last_seen_at = greatest(last_seen_at, ?)',
    home.revision + 1,
    home.last_seen_at,
  );
  const arrived = await sql.row<Counts>(
    `SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM api_keys) AS keys,
       (SELECT coalesce(sum(spent), 0)::int8 FROM grants) AS used`,
  );
  const sent = countsOf(database);
  if (JSON.stringify(arrived) !== JSON.stringify(sent))
    throw new PagegateError('move_refused', `Sent ${JSON.stringify(sent)}, arrived ${JSON.stringify(arrived)}.`);
  return sent;
}

type ReadRows = (text: string) => readonly Row[];

/** Records what accounts have used until now as granted to and spent by a retired node. */
async function fillUsage(sql: Sql, all: ReadRows): Promise<void> {
  const node = `before-${all('SELECT ledger_id FROM ledger')[0]!['ledger_id']}`;
  await sql.run(
    `INSERT INTO nodes (id, name, created_at, retired_at) VALUES (?, ?, ${NOW}, ${NOW})`,
    node,
    'before the move',
  );
  const ofNode = (text: string): Row[] => all(text).map((row) => ({ ...row, node }));
  const meters = ofNode('SELECT account_id, cycle, used AS granted, used AS spent, total FROM meters');
  await insertAll(sql, 'cycles', ['account_id', 'cycle'], meters);
  await insertAll(sql, 'grants', ['account_id', 'cycle', 'node', 'granted', 'spent'], meters);
  await insertAll(sql, 'node_totals', ['node', 'account_id', 'total'], meters);
  const days = ofNode(
    `SELECT account_id, day, sum(lookups) AS lookups FROM (SELECT account_id, day, lookups FROM usage_days
    UNION ALL SELECT account_id, day, day_used FROM meters WHERE day_used > 0) GROUP BY account_id, day`,
  );
  await insertAll(sql, 'usage_days', ['account_id', 'day', 'node', 'lookups'], days);
}

/** The path, beside the ledger's, under which its file is written. */
const unfinished = (file: string): string => `${file}.moving`;

/**
 * Moves a fleet's ledger to the file of this host. What nodes hold and have not given back counts as used. If it is interrupted at any
 * moment, it can be run again.
 *
 * @throws PagegateError ledger_in_use if a node runs, ledger_unavailable, ledger_moved, move_refused if the file holds a ledger
 */
export function moveToFile(
  connect: () => Promise<Engine>,
  file: string,
  maxStalenessSeconds: number,
): Promise<MoveReport> {
  return whileStopped(file, async () => {
    refuseLedgerThere(file);
    const temporary = unfinished(file);
    const arrived = existsSync(temporary) ? summarize(temporary) : undefined;
    const engine = await connect();
    try {
      const movedTo = (await findLedger(engine))?.moved_to ?? null;
      // Moved, but the file is not in its place yet: an earlier move was interrupted after its commit.
      if (movedTo !== null && arrived !== undefined && isHome(movedTo, arrived.ledgerId))
        return putInPlace(file, arrived);
      const store = await PostgresStore.open(engine, { maxStalenessSeconds, create: false });
      for (const end of ['', '-wal', '-shm']) rmSync(`${temporary}${end}`, { force: true });
      await store.transaction(async (sql) => {
        await refuseLiveNodes(sql, maxStalenessSeconds);
        const { ledgerId } = await fetchAll(temporary, sql);
        await sql.run('UPDATE ledger SET moved_to = ?', homeOf(`${hostname()}:${file}`, ledgerId));
      });
      return putInPlace(file, summarize(temporary));
    } finally {
      await engine.close();
    }
  });
}

/** Refuses to replace a ledger that is in use. One that was moved away is not refused; it is moved aside later. @throws PagegateError move_refused */
function refuseLedgerThere(file: string): void {
  if (isMissingOrEmpty(file)) return;
  const database = openDatabase(file, { mustExist: true, isLocked: true });
  const movedTo = createReader(database).movedTo();
  database.close();
  if (movedTo === null) throw new PagegateError('move_refused', `${file} holds a ledger; move its folder away first.`);
}

/** Refuses live nodes, and prevents others from joining until the end of the transaction. @throws PagegateError ledger_in_use */
async function refuseLiveNodes(sql: Sql, maxStalenessSeconds: number): Promise<void> {
  await sql.rows('LOCK TABLE nodes IN EXCLUSIVE MODE');
  // Writing the file may take long, and the transaction is idle meanwhile.
  await sql.rows('SET LOCAL idle_in_transaction_session_timeout = 0');
  const running = await sql.row<{ name: string }>(
    `SELECT name FROM nodes WHERE ${IS_RUNNING} AND ${isHeardWithin('?')}`,
    maxStalenessSeconds,
  );
  if (running !== undefined)
    throw new PagegateError('ledger_in_use', `Node ${running.name} is live; stop all nodes first.`);
}

/** Writes the complete file and syncs it to the disk. */
async function fetchAll(temporary: string, sql: Sql): Promise<{ readonly ledgerId: string }> {
  const database = openDatabase(temporary, { isLocked: true });
  try {
    await fillFile(database, sql);
    const ledgerId = createReader(database).ledgerId();
    database.pragma('wal_checkpoint(TRUNCATE)');
    database.pragma('journal_mode = DELETE');
    return { ledgerId };
  } finally {
    database.close();
    syncPath(temporary);
  }
}

/** Counts what a host's file contains. */
function countsOf(database: Database): Counts {
  return database
    .prepare<[], Counts>(
      `SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM api_keys) AS keys,
         (SELECT coalesce(sum(used), 0) FROM meters) AS used`,
    )
    .get()!;
}

type Summary = Counts & { readonly ledgerId: string };

function summarize(temporary: string): Summary {
  const database = openDatabase(temporary, { mustExist: true, isLocked: true });
  try {
    return { ...countsOf(database), ledgerId: createReader(database).ledgerId() };
  } finally {
    database.close();
  }
}

function putInPlace(file: string, { ledgerId: _, ...summary }: Summary): MoveReport {
  setCopyAside(file, Date.now());
  renameDurable(unfinished(file), file);
  return { ...summary, to: file };
}

async function fillFile(database: Database, sql: Sql): Promise<void> {
  const tables = new Map<string, Row[]>();
  for (const [table, columns] of Object.entries(TABLES))
    tables.set(table, await sql.rows<Row>(`SELECT ${columns.join(', ')} FROM ${table} ORDER BY id`));
  const meters = await sql.rows<{ id: number; cycle: number; used: number; total: number }>(
    `SELECT DISTINCT ON (c.account_id) c.account_id AS id, c.cycle,
       greatest(0, coalesce((SELECT sum(granted) FROM grants g WHERE g.account_id = c.account_id AND g.cycle = c.cycle), 0) - c.credit)::int8 AS used,
       coalesce((SELECT sum(total) FROM node_totals t WHERE t.account_id = c.account_id), 0)::int8 AS total
     FROM cycles c ORDER BY c.account_id, c.cycle DESC`,
  );
  const days = await sql.rows<{ account_id: number; day: number; lookups: number }>(
    'SELECT account_id, day, sum(lookups)::int8 AS lookups FROM usage_days GROUP BY account_id, day',
  );
  const home = await sql.row<{ revision: number; seen: number }>('SELECT revision, last_seen_at AS seen FROM ledger');
  database.transaction(() => {
    for (const [table, columns] of Object.entries(TABLES)) {
      const insert = database.prepare(insertText(table, columns, 1));
      for (const row of tables.get(table)!) insert.run(...columns.map((column) => row[column] ?? null));
    }
    const meter = database.prepare(
      'UPDATE meters SET cycle = ?, reserved = ?, used = ?, total = ? WHERE account_id = ?',
    );
    for (const { id, cycle, used, total } of meters) meter.run(cycle, used, used, total, id);
    const day = database.prepare('INSERT INTO usage_days VALUES (?, ?, ?)');
    for (const { account_id, day: number, lookups } of days) day.run(account_id, number, lookups);
    // The latest day belongs in the meter itself, where further charges of the same day are added.
    database.exec(`UPDATE meters SET day = d.day, day_used = d.lookups FROM usage_days d
        WHERE d.account_id = meters.account_id AND d.day = (SELECT max(day) FROM usage_days l WHERE l.account_id = d.account_id);
      DELETE FROM usage_days WHERE (account_id, day) IN (SELECT account_id, day FROM meters);`);
    database
      .prepare('UPDATE ledger SET revision = ?, last_seen_at = ?')
      .run((home?.revision ?? 0) + 1, home?.seen ?? 0);
  })();
}
