/** Whether a ledger file may be made anew, or must be there because the shared counters still hold what its accounts used. */
import { openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PagegateError } from '../errors.ts';
import { type CountersOwner, countersFile, readCountersOwner } from './counters.ts';

const idOf = (owner: CountersOwner): string => (owner === 'damaged' ? 'unknown, the header is damaged' : owner);

/** The failure of a ledger that is gone (or empty) while its counters remain. An empty one would refund what was used. */
export function lostLedger(ledgerFile: string, owner: CountersOwner): PagegateError {
  const counters = countersFile(ledgerFile);
  return new PagegateError(
    'ledger_unavailable',
    `${ledgerFile} is gone or empty: expected ledger ${idOf(owner)}, whose usage ${counters} still holds. ` +
      'Put the file back, or stop the server and run `pagegate account restore BACKUP`: what was used since stays used. ' +
      `To start over with an empty ledger, stop the server and remove ${counters} too.`,
    { file: ledgerFile, expected: owner },
  );
}

/** The failure of a ledger file that is not the one which the counters beside it belong to. */
function foreignLedger(ledgerFile: string, owner: CountersOwner, got: string): PagegateError {
  const counters = countersFile(ledgerFile);
  return new PagegateError(
    'ledger_unavailable',
    `${ledgerFile} is another ledger: expected ${idOf(owner)}, whose usage ${counters} holds, got ${got}. ` +
      'Put that one back, or stop the server, move this file away and run `pagegate account restore BACKUP`. ' +
      `To go on with this one and forget the usage of the other, stop the server and remove ${counters}.`,
    { file: ledgerFile, expected: owner, got },
  );
}

/** Whether nothing lies there that could be a ledger. What cannot be looked at is left to the one who opens it. */
export function isMissingOrEmpty(ledgerFile: string): boolean {
  try {
    const stats = statSync(ledgerFile);
    return stats.isFile() && stats.size === 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/**
 * Refuses to go on without the ledger file.
 *
 * @throws PagegateError no_ledger where there never was one, ledger_unavailable where it is lost.
 */
export function requireLedger(ledgerFile: string): void {
  if (!isMissingOrEmpty(ledgerFile)) return;
  refuseLostLedger(ledgerFile);
  throw new PagegateError('no_ledger', `Got "${ledgerFile}".`, { file: ledgerFile });
}

/** Refuses to make a ledger where a lost one's counters remain. @throws PagegateError ledger_unavailable */
export function refuseLostLedger(ledgerFile: string): void {
  if (!isMissingOrEmpty(ledgerFile)) return;
  const owner = readCountersOwner(ledgerFile);
  if (owner !== undefined) throw lostLedger(ledgerFile, owner);
}

/**
 * Refuses a ledger that its counters do not belong to.
 *
 * @param owner whose counters they are; those beside the file unless told otherwise.
 * @throws PagegateError ledger_unavailable
 */
export function refuseForeignLedger(
  ledgerFile: string,
  ledgerId: string,
  owner: CountersOwner | undefined = readCountersOwner(ledgerFile),
): void {
  // Damaged counters are made anew from the ledger.
  if (owner !== undefined && owner !== 'damaged' && owner !== ledgerId)
    throw foreignLedger(ledgerFile, owner, ledgerId);
}

/** Locked by whoever may replace the ledger or carry counters into it: the ledger writer, or a restore. */
export const writerLockFile = (ledgerFile: string): string => join(dirname(ledgerFile), 'writer.lock');

/** Opens that file, which is made where there is none; its folder must be there. */
export function openWriterLock(ledgerFile: string): number {
  // For reading, too: a pipe that lies there is then not waited for.
  return openSync(writerLockFile(ledgerFile), 'a+', 0o600);
}

/** Where a replaced ledger file, or its log, is kept beside the new one. */
export const asideName = (ledgerFile: string, nowMs: number): string =>
  `${ledgerFile}.replaced-${new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;

/**
 * Moves a write-ahead log away that was in use with an earlier file: SQLite would play it into whichever file lies here now, and mix the two.
 * Files that were copied or moved together are left alone.
 *
 * @param served the inodes that were last in use together.
 */
export function setEarlierLogAside(
  ledgerFile: string,
  served: { readonly file: bigint; readonly log: bigint },
  nowMs: number,
): void {
  const inode = (path: string): bigint | undefined => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
  const file = inode(ledgerFile);
  const isOther = file !== undefined && served.file !== 0n && served.file !== file;
  if (!isOther || served.log === 0n || inode(`${ledgerFile}-wal`) !== served.log) return;
  renameSync(`${ledgerFile}-wal`, `${asideName(ledgerFile, nowMs)}-wal`);
  rmSync(`${ledgerFile}-shm`, { force: true });
}
