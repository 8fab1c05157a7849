/** Carries a ledger from a host's file to PostgreSQL, and back. Only while nobody charges; the source is then refused. */
import { closeSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import { lockFile } from '../../platform/libc.ts';
import { connectEngine } from '../postgres/connect.ts';
import { type EngineSource, readEngine } from '../postgres/engine.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { isMissingOrEmpty, openWriterLock } from '../store/identity.ts';
import type { Sql, SqlValue } from '../store/ledger-store.ts';
import { PostgresStore } from '../store/postgres-store.ts';
import { Reserver } from '../writer/reserver.ts';

export interface MoveReport {
  readonly accounts: number;
  readonly keys: number;
  /** Lookups used in the present cycles. */
  readonly used: number;
  readonly to: string;
}

type Row = Readonly<Record<string, SqlValue>>;

/** Tables that are the same in both homes, in the order of their references. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  accounts: [
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
  ],
  api_keys: ['id', 'account_id', 'hash', 'sealed', 'vault_id', 'created_at', 'expires_at', 'revoked_at'],
  payments: ['id', 'account_id', 'at', 'plan', 'quota_limit', 'reference'],
  audit: ['id', 'at', 'actor', 'action', 'account_id', 'before', 'after'],
};

/** Rows in one statement. */
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

/** Runs while no ledger writer of this host can. @throws PagegateError ledger_in_use */
async function whileStopped<T>(file: string, task: () => Promise<T>): Promise<T> {
  const lock = openWriterLock(file);
  try {
    if (!lockFile(lock, 'exclusive')) throw new PagegateError('ledger_in_use', `${file} is in use.`, { file });
    return await task();
  } finally {
    closeSync(lock);
  }
}

const setMoved = (database: Database, to: string | null): void =>
  void database.prepare('UPDATE ledger SET moved_to = ?').run(to);

/**
 * Moves the ledger of this host to PostgreSQL.
 *
 * @throws PagegateError no_ledger, ledger_in_use, ledger_unavailable, ledger_moved, move_refused where accounts are there already
 */
export function moveToPostgres(file: string, source: EngineSource): Promise<MoveReport> {
  if (isMissingOrEmpty(file)) throw new PagegateError('no_ledger', `Got "${file}".`);
  return whileStopped(file, async () => {
    const database = openDatabase(file, { mustExist: true, isLocked: true });
    const movedTo = database.prepare('SELECT moved_to FROM ledger').pluck().get() as string | null;
    const engine = await connectEngine(readEngine(source));
    const store = await PostgresStore.open(engine, { maxStalenessSeconds: 60 });
    try {
      // Moved, and not arrived: the move was ended between its two commits.
      if (movedTo !== null && movedTo !== store.name)
        throw new PagegateError('ledger_moved', `It was moved to ${movedTo}.`);
      if (movedTo === null) settle(file);
      const report = await store.transaction(async (sql) => {
        const filled = await sql.row('SELECT 1 AS one FROM accounts');
        if (filled !== undefined)
          throw new PagegateError(
            movedTo === null ? 'move_refused' : 'ledger_moved',
            `${store.name} has accounts already.`,
          );
        const copied = await fill(sql, database);
        // Before the commit there: at no moment both homes can be served.
        setMoved(database, store.name);
        return { ...copied, to: store.name };
      });
      return report;
    } catch (error) {
      const hasArrived = await store.row('SELECT 1 AS one FROM accounts').catch(() => true);
      if (movedTo === null && hasArrived === undefined) setMoved(database, null);
      throw error;
    } finally {
      database.close();
      await store.close();
    }
  });
}

/** Brings the meters of a stopped server to what was used. */
function settle(file: string): void {
  const reserver = new Reserver({ file });
  if (!reserver.open()) throw new PagegateError('ledger_unavailable', reserver.state.reason);
  reserver.tick();
  if (!reserver.close()) throw new PagegateError('ledger_unavailable', reserver.state.reason);
}

async function fill(sql: Sql, database: Database): Promise<Omit<MoveReport, 'to'>> {
  const all = (text: string): Row[] => database.prepare<[], Row>(text).all();
  for (const [table, columns] of Object.entries(TABLES))
    await insertAll(sql, table, columns, all(`SELECT ${columns.join(', ')} FROM ${table} ORDER BY id`));
  const node = `before-${database.prepare('SELECT ledger_id FROM ledger').pluck().get()}`;
  await sql.run(
    'INSERT INTO nodes (id, name, created_at, retired_at) VALUES (?, ?, extract(epoch FROM clock_timestamp()), extract(epoch FROM clock_timestamp()))',
    node,
    'before the move',
  );
  const meters = all('SELECT account_id, cycle, used AS granted, used AS spent, total FROM meters').map((row) => ({
    ...row,
    node,
  }));
  await insertAll(sql, 'cycles', ['account_id', 'cycle'], meters);
  await insertAll(sql, 'grants', ['account_id', 'cycle', 'node', 'granted', 'spent'], meters);
  await insertAll(sql, 'node_totals', ['node', 'account_id', 'total'], meters);
  const days = all(`SELECT account_id, day, lookups FROM usage_days
    UNION ALL SELECT account_id, day, day_used FROM meters WHERE day_used > 0`).map((row) => ({ ...row, node }));
  await insertAll(sql, 'usage_days', ['account_id', 'day', 'node', 'lookups'], days);
  for (const table of Object.keys(TABLES))
    await sql.rows(
      `SELECT setval(pg_get_serial_sequence('pagegate.${table}', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM ${table}), false)`,
    );
  const home = database
    .prepare<[], { revision: number; last_seen_at: number }>('SELECT revision, last_seen_at FROM ledger')
    .get()!;
  await sql.run(
    'UPDATE ledger SET revision = ?, last_seen_at = greatest(last_seen_at, ?)',
    home.revision + 1,
    home.last_seen_at,
  );
  const arrived = await sql.row<{ accounts: number; keys: number; used: number }>(
    `SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM api_keys) AS keys,
       (SELECT coalesce(sum(spent), 0)::int8 FROM grants) AS used`,
  );
  const sent = database
    .prepare<[], { accounts: number; keys: number; used: number }>(
      `SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM api_keys) AS keys,
         (SELECT coalesce(sum(used), 0) FROM meters) AS used`,
    )
    .get()!;
  if (JSON.stringify(arrived) !== JSON.stringify(sent))
    throw new PagegateError('move_refused', `Sent ${JSON.stringify(sent)}, arrived ${JSON.stringify(arrived)}.`);
  return sent;
}

/**
 * Moves a fleet's ledger to the file of this host. What nodes hold and have not given back counts as used.
 *
 * @throws PagegateError ledger_in_use where a node runs, ledger_unavailable, ledger_moved, move_refused where a ledger lies there
 */
export function moveToFile(source: EngineSource, file: string, maxStalenessSeconds: number): Promise<MoveReport> {
  return (async () => {
    const engine = await connectEngine(readEngine(source));
    const store = await PostgresStore.open(engine, { maxStalenessSeconds, create: false });
    let database: Database | undefined;
    try {
      return await store.transaction(async (sql) => {
        const running = await sql.row<{ name: string }>(
          "SELECT name FROM nodes WHERE retired_at IS NULL AND session <> '' AND seen_at > extract(epoch FROM clock_timestamp()) - ?::float8",
          maxStalenessSeconds,
        );
        if (running !== undefined)
          throw new PagegateError('ledger_in_use', `Node ${running.name} is live; stop all nodes first.`);
        if (!isMissingOrEmpty(file)) throw new PagegateError('move_refused', `${file} exists; move it away first.`);
        database = openDatabase(file, { isLocked: true });
        const report = await fillFile(database, sql);
        await sql.run('UPDATE ledger SET moved_to = ?', file);
        return { ...report, to: file };
      });
    } finally {
      database?.close();
      await store.close();
    }
  })();
}

async function fillFile(database: Database, sql: Sql): Promise<Omit<MoveReport, 'to'>> {
  const tables = new Map<string, Row[]>();
  for (const [table, columns] of Object.entries(TABLES))
    tables.set(table, await sql.rows<Row>(`SELECT ${columns.join(', ')} FROM ${table} ORDER BY id`));
  const meters = await sql.rows<{ id: number; cycle: number; used: number; total: number }>(
    `SELECT DISTINCT ON (c.account_id) c.account_id AS id, c.cycle,
       greatest(0, coalesce((SELECT sum(granted) FROM grants g WHERE g.account_id = c.account_id AND g.cycle = c.cycle), 0) - c.credit)::int8 AS used,
       coalesce((SELECT sum(total) FROM node_totals t WHERE t.account_id = c.account_id), 0)::int8 AS total
     FROM cycles c ORDER BY c.account_id, c.cycle DESC`,
  );
  const days = await sql.rows<Row>(
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
    for (const row of days) day.run(row['account_id'], row['day'], row['lookups']);
    database
      .prepare('UPDATE ledger SET revision = ?, last_seen_at = ?')
      .run((home?.revision ?? 0) + 1, home?.seen ?? 0);
  })();
  return {
    accounts: tables.get('accounts')!.length,
    keys: tables.get('api_keys')!.length,
    used: meters.reduce((sum, { used }) => sum + used, 0),
  };
}
