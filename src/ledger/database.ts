/** The ledger's SQLite file: how it is opened, and what its failures mean. The only import of better-sqlite3. */
import { closeSync, mkdirSync, openSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { PagegateError } from '../errors.ts';
import { migrate } from './migrations.ts';

export type Database = Sqlite.Database;
export type Statement = Sqlite.Statement<unknown[], Record<string, number | string | null | Uint8Array>>;

/** How much a commit waits for: the disk (survives loss of power) or the operating system (survives a crash of any process). */
export type Synchronous = 'FULL' | 'NORMAL';

export interface DatabaseOptions {
  readonly synchronous?: Synchronous;
  /** Opens without writing or migrating; the file must exist. */
  readonly readonly?: boolean;
  /** Opens for writing, but neither makes the file nor takes an empty one for a new ledger. */
  readonly mustExist?: boolean;
  /** Milliseconds to wait for another writer. */
  readonly busyTimeoutMs?: number;
}

/** `pgLG`, so that `file` and we ourselves can tell this file from any other SQLite file. */
export const APPLICATION_ID = 0x70674c47;

/** Pages of the write-ahead log after which a commit copies them into the file: 1,000 · 4 KiB bound its size near 4 MiB. */
const WAL_PAGES = 1_000;
/** What the log is cut back to once it has been copied, in bytes. */
const WAL_LIMIT_BYTES = 8 * 1024 * 1024;

const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9P'],
  [0x65735546, 'FUSE'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x73757245, 'Coda'],
  [0x564c, 'NCP'],
  [0x0bd00bd0, 'Lustre'],
  [0x7461636f, 'OCFS2'],
  [0x01161970, 'GFS2'],
  [0x47504653, 'GPFS'],
  [0x19830326, 'BeeGFS'],
]);

/**
 * Refuses a directory on a network file system: locks and shared memory do not hold there, so two hosts could both charge.
 *
 * @param typeOf the file system's magic number; replaced in tests.
 * @throws PagegateError ledger_on_network
 */
export function refuseNetworkFileSystem(directory: string, typeOf = (path: string) => statfsSync(path).type): void {
  const name = NETWORK_FILE_SYSTEMS.get(typeOf(directory) >>> 0);
  if (name !== undefined) {
    throw new PagegateError('ledger_on_network', `${directory} is on ${name}; put state_dir on a local disk.`, {
      directory,
    });
  }
}

const REASONS: readonly (readonly [prefix: string, reason: string])[] = [
  ['SQLITE_FULL', 'the disk is full: free space, the ledger goes on by itself'],
  ['SQLITE_READONLY', 'the file or its directory is read-only: make it writable for this user'],
  ['SQLITE_PERM', 'access is denied: give this user the directory and the file'],
  ['SQLITE_AUTH', 'access is denied: give this user the directory and the file'],
  ['SQLITE_BUSY', 'another program holds the file locked: end it; it must not be edited while in use'],
  ['SQLITE_LOCKED', 'another program holds the file locked: end it; it must not be edited while in use'],
  ['SQLITE_CORRUPT', 'the file is damaged: run `pagegate account check`, then restore a backup'],
  ['SQLITE_NOTADB', 'the file is no SQLite database: restore a backup'],
  ['SQLITE_CANTOPEN', 'the file cannot be opened: check that state_dir exists and belongs to this user'],
  ['SQLITE_IOERR', 'the disk reports an error: see the kernel log; free space or replace the disk'],
];

/** Why a database call failed, in words and with SQLite's own code; undefined for what SQLite did not raise. */
export function failureReason(error: unknown): string | undefined {
  if (!(error instanceof Sqlite.SqliteError)) return undefined;
  const known = REASONS.find(([prefix]) => error.code.startsWith(prefix));
  return `${known?.[1] ?? error.message} (${error.code})`;
}

/** Turns a failure of SQLite into `ledger_unavailable` with its reason; anything else passes unchanged. */
export function asLedgerError(error: unknown, file: string): unknown {
  const reason = failureReason(error);
  if (reason === undefined) return error;
  return new PagegateError('ledger_unavailable', `${file}: ${reason}.`, { file, reason }, { cause: error });
}

/**
 * Opens (and creates or migrates) the file.
 *
 * @throws PagegateError ledger_unavailable with the reason, ledger_on_network, ledger_version.
 */
export function openDatabase(file: string, options: DatabaseOptions = {}): Database {
  let database: Database | undefined;
  const mayCreate = options.readonly !== true && options.mustExist !== true;
  try {
    if (mayCreate) mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
    refuseNetworkFileSystem(dirname(file));
    // Its rows concern nobody else on this host; SQLite gives its side files the same mode.
    if (mayCreate) closeSync(openSync(file, 'a', 0o640));
    database = new Sqlite(file, {
      timeout: options.busyTimeoutMs ?? 5_000,
      readonly: options.readonly === true,
      fileMustExist: !mayCreate,
    });
    const id = database.pragma('application_id', { simple: true });
    const isEmpty = database.prepare('SELECT count(*) AS n FROM sqlite_schema').pluck().get() === 0;
    if (id !== APPLICATION_ID && !isEmpty) {
      throw new PagegateError('ledger_unavailable', `${file} is a SQLite file of another program.`, { file });
    }
    if (isEmpty && !mayCreate) {
      throw new PagegateError('ledger_unavailable', `${file} is empty.`, { file });
    }
    if (options.readonly !== true) {
      database.pragma('journal_mode = WAL');
      if (id !== APPLICATION_ID) database.pragma(`application_id = ${APPLICATION_ID}`);
      database.pragma(`synchronous = ${options.synchronous ?? 'FULL'}`);
      database.pragma(`wal_autocheckpoint = ${WAL_PAGES}`);
      database.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
    }
    database.pragma('foreign_keys = ON');
    database.pragma('trusted_schema = OFF');
    migrate(database, file, options.readonly === true);
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof Error && 'syscall' in error) {
      const reason = `${(error as NodeJS.ErrnoException).code}: ${error.message}`;
      throw new PagegateError('ledger_unavailable', `${file}: ${reason}.`, { file, reason }, { cause: error });
    }
    throw asLedgerError(error, file);
  }
}
