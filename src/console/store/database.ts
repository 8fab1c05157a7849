/** The console's SQLite database: users, sessions, one-time links, events and time series. Lookups do not need it. */
import { chmodSync, closeSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fromSystem, PagegateError } from '../../errors.ts';
import { makeFolder } from '../../platform/folders.ts';
import { type Database, Sqlite } from '../../platform/sqlite.ts';

/** `pgCO`, which distinguishes this file from other SQLite files. */
const APPLICATION_ID = 0x7067434f;
const VERSION = 2;
const BUSY_TIMEOUT_MS = 5_000;

const SCHEMA = `
CREATE TABLE users (
  name TEXT PRIMARY KEY, role TEXT NOT NULL CHECK (role IN ('operator', 'viewer')), password TEXT, created_at INTEGER NOT NULL,
  signed_in_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
  hash TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL, key_id INTEGER, address TEXT NOT NULL,
  created_at INTEGER NOT NULL, seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_name ON sessions (role, name, created_at);
CREATE TABLE links (hash TEXT PRIMARY KEY, name TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL
) STRICT;
CREATE TABLE samples (step INTEGER NOT NULL, at INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (step, at)) STRICT, WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

/** Version 1 did not store the latest sign-in of a user; the events have it. */
const FROM_VERSION_1 = `
ALTER TABLE users ADD COLUMN signed_in_at INTEGER;
UPDATE users SET signed_in_at =
  (SELECT max(at) FROM events WHERE actor = users.name AND action = 'sign_in' AND at >= users.created_at);
`;

/**
 * Opens the database; creates it if there is none, and migrates an older one.
 *
 * @throws PagegateError console_unavailable
 */
export function openConsoleDatabase(file: string): Database {
  let database: Database | undefined;
  try {
    makeFolder(dirname(file), 0o750);
    // Opening a pipe would block.
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) throw unusable(file, 'not a regular file');
    // No other user of this host may read it. SQLite gives its side files the same mode.
    closeSync(openSync(file, 'a', 0o600));
    chmodSync(file, 0o600);
    database = new Sqlite(file, { timeout: BUSY_TIMEOUT_MS });
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = NORMAL');
    database.pragma('trusted_schema = OFF');
    const open = database;
    open.transaction(() => migrate(open, file)).immediate();
    return database;
  } catch (error) {
    database?.close();
    throw asConsoleError(error, file);
  }
}

function migrate(database: Database, file: string): void {
  const id = database.pragma('application_id', { simple: true });
  const version = database.pragma('user_version', { simple: true });
  if (id === APPLICATION_ID && version === VERSION) return;
  const isEmpty = database.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0;
  const isOlder = id === APPLICATION_ID && version === 1;
  if (!isEmpty && !isOlder) {
    throw unusable(file, `expected version ${VERSION} or older, got ${String(version)}`);
  }
  database.exec(isOlder ? FROM_VERSION_1 : SCHEMA);
  database.pragma(`application_id = ${APPLICATION_ID}`);
  database.pragma(`user_version = ${VERSION}`);
}

/** The error of a file that cannot be used. Nothing in it is irreplaceable. */
function unusable(file: string, why: string, cause?: Error): PagegateError {
  const what = `${file}: ${why}. Move it away, and add the users again.`;
  return new PagegateError('console_unavailable', what, { file }, { cause });
}

/** Converts an error of SQLite or the system into `console_unavailable`; returns anything else unchanged. */
function asConsoleError(error: unknown, file: string): unknown {
  if (error instanceof Sqlite.SqliteError) {
    if (/^SQLITE_(?:CORRUPT|NOTADB)/.test(error.code)) return unusable(file, `${error.message} (${error.code})`, error);
    const what = `${file}: ${error.message} (${error.code}).`;
    return new PagegateError('console_unavailable', what, { file }, { cause: error });
  }
  return fromSystem('console_unavailable', file, error);
}
