/** Translates SQLite errors for the operator. */
import { PagegateError } from '../../errors.ts';
import { Sqlite } from '../../platform/sqlite.ts';

const REASONS: readonly (readonly [prefix: string, reason: string])[] = [
  ['SQLITE_FULL', 'the disk is full: free space, the ledger goes on by itself'],
  ['SQLITE_READONLY', 'the file or its directory is read-only: make it writable for this user'],
  ['SQLITE_PERM', 'access is denied: let this user write the directory and the file'],
  ['SQLITE_AUTH', 'access is denied: let this user write the directory and the file'],
  ['SQLITE_BUSY', 'another program holds the file locked: end it; it must not be edited while in use'],
  ['SQLITE_LOCKED', 'another program holds the file locked: end it; it must not be edited while in use'],
  ['SQLITE_CORRUPT', 'the file is damaged: run `pagegate account check`, then restore a backup'],
  ['SQLITE_NOTADB', 'the file is not a SQLite file: restore a backup'],
  ['SQLITE_CANTOPEN', 'the file cannot be opened: check that state_dir exists and belongs to this user'],
  // Its side file cannot grow.
  ['SQLITE_IOERR_SHMSIZE', 'the disk is full: free space, the ledger goes on by itself'],
  ['SQLITE_IOERR', 'the disk reports an error: see the kernel log; free space or replace the disk'],
];

/** Why a database call failed, in words and with SQLite's own code; undefined if it is not an error of SQLite. */
export function failureReason(error: unknown): string | undefined {
  if (!(error instanceof Sqlite.SqliteError)) return undefined;
  const known = REASONS.find(([prefix]) => error.code.startsWith(prefix));
  return `${known?.[1] ?? error.message} (${error.code})`;
}

/** Converts an error of SQLite to `ledger_unavailable` with its reason. Returns any other error unchanged. */
export function asLedgerError(error: unknown, file: string): unknown {
  const reason = failureReason(error);
  if (reason === undefined) return error;
  return new PagegateError('ledger_unavailable', `${file}: ${reason}.`, { file, reason }, { cause: error });
}

const TEMPORARY = /^SQLITE_(?:FULL|READONLY|PERM|AUTH|BUSY|LOCKED|CANTOPEN|IOERR)/;

/** Whether a failure implies nothing about the file's content: a full disk, missing rights, another program's lock. */
export const isTemporary = (error: unknown): boolean => TEMPORARY.test(codeOf(error));

/** Whether another process holds the lock. */
export const isBusy = (error: unknown): boolean => codeOf(error).startsWith('SQLITE_BUSY');

function codeOf(error: unknown): string {
  const cause = error instanceof PagegateError ? error.cause : error;
  return cause instanceof Sqlite.SqliteError ? cause.code : '';
}
