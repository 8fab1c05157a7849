/** Backs up a ledger while the server uses it. */
import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { fromSystem, PagegateError } from '../errors.ts';
import { renameDurable, syncPath } from '../platform/durable-files.ts';
import { openDatabase } from './store/database.ts';
import { requireLedger } from './store/identity.ts';
import { asLedgerError } from './store/sqlite-failures.ts';

/**
 * Writes a consistent copy of a ledger that may be in use. API keys in it stay sealed: the key file is never part of a backup.
 *
 * @throws PagegateError backup_exists, backup_failed, no_ledger, ledger_unavailable
 */
export function backupLedger(file: string, target: string): void {
  if (existsSync(target)) throw new PagegateError('backup_exists', `Got "${target}".`, { file: target });
  const temporary = `${target}.${process.pid}.tmp`;
  requireLedger(file);
  const database = openDatabase(file, { readonly: true });
  try {
    closeSync(openSync(temporary, 'wx', 0o600));
    database.prepare('VACUUM INTO ?').run(temporary);
    syncPath(temporary);
    renameDurable(temporary, target);
  } catch (error) {
    if (existsSync(temporary)) rmSync(temporary, { force: true });
    throw fromSystem('backup_failed', target, asBackupError(error, target));
  } finally {
    database.close();
  }
}

/** Attributes an error of a backup: a full disk to the target, everything else to the ledger. */
function asBackupError(error: unknown, target: string): unknown {
  if ((error as NodeJS.ErrnoException).code !== 'SQLITE_FULL') return asLedgerError(error, target);
  return new PagegateError('backup_failed', `${target}: the disk is full.`, { path: target }, { cause: error });
}
