/** Opens the ledger's SQLite file. */
import { closeSync, openSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { makeFolder } from '../../platform/folders.ts';
import { type Database, Sqlite } from '../../platform/sqlite.ts';
import { migrate } from './migrations.ts';
import { asLedgerError } from './sqlite-failures.ts';

export interface DatabaseOptions {
  /** Opens for reading, without migrating; the file must exist. */
  readonly readonly?: boolean;
  /** Opens for writing, but neither creates the file nor initializes an empty one. */
  readonly mustExist?: boolean;
  /** The caller holds the ledger writer's lock already. */
  readonly isLocked?: boolean;
  /** Milliseconds to wait for another writer. */
  readonly busyTimeoutMs?: number;
}

/** `pgLG`: distinguishes a ledger from other SQLite files, for pagegate and for the `file` command. */
export const APPLICATION_ID = 0x70674c47;

/** Pages in the write-ahead log at which a commit copies them into the file (a checkpoint). 1,000 · 4 KiB keep the log near 4 MiB. */
const WAL_PAGES = 1_000;
/** Size to which the log is truncated after a checkpoint, in bytes. */
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
 * Refuses a directory on a network file system. Locks and shared memory do not work across hosts there, so two hosts could both charge.
 *
 * @param typeOf returns the file system's magic number; replaced in tests.
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

/** Refuses everything that is not a regular file. SQLite would wait for a pipe. */
function refuseOtherKinds(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== false) return;
  throw new PagegateError('ledger_unavailable', `${file} is not a regular file.`, { file });
}

/**
 * Opens the file. Creates and migrates it if the options allow that.
 *
 * @throws PagegateError ledger_unavailable with the reason, ledger_on_network, ledger_version.
 */
export function openDatabase(file: string, options: DatabaseOptions = {}): Database {
  let database: Database | undefined;
  const mayCreate = options.readonly !== true && options.mustExist !== true;
  try {
    if (mayCreate) makeFolder(dirname(file), 0o750);
    refuseNetworkFileSystem(dirname(file));
    refuseOtherKinds(file);
    // Other users of the host must not read the ledger. SQLite gives its side files the same mode.
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
      database.pragma('synchronous = FULL');
      database.pragma(`wal_autocheckpoint = ${WAL_PAGES}`);
      database.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
    }
    database.pragma('foreign_keys = ON');
    database.pragma('trusted_schema = OFF');
    migrate(database, file, options);
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof Error && 'syscall' in error) {
      const reason = error.message;
      throw new PagegateError('ledger_unavailable', `${file}: ${reason}.`, { file, reason }, { cause: error });
    }
    throw asLedgerError(error, file);
  }
}
