/**
 * Which ledger belongs in a folder: a small file beside it says so. A ledger that is lost is then not taken for one that never was, and
 * one that was put in its place is not served.
 */
import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { replaceDurable } from '../../platform/durable-files.ts';
import { lockFile } from '../../platform/libc.ts';
import { readSmallFileIfAny } from '../../platform/small-file.ts';

/** What the file holds. */
export interface LedgerIdentity {
  /** 32 hexadecimal digits. */
  readonly ledgerId: string;
  /** Inodes of the ledger and of its write-ahead log, as they were last in use together; `0` where not known. */
  readonly file: string;
  readonly log: string;
}

const FILE_MAX_BYTES = 4096;
const UNKNOWN_ID = 'unknown, the identity file is damaged';

export const identityFile = (ledgerFile: string): string => join(dirname(ledgerFile), 'ledger.id');

/** The identity; undefined where there is none. One that is damaged has an id that no ledger has. */
export function readIdentity(ledgerFile: string): LedgerIdentity | undefined {
  const options = { code: 'ledger_unavailable', maxBytes: FILE_MAX_BYTES } as const;
  const text = readSmallFileIfAny(identityFile(ledgerFile), options)?.toString('latin1');
  if (text === undefined) return undefined;
  const [, ledgerId = UNKNOWN_ID, file = '0', log = '0'] = /^([0-9a-f]{32}) (\d+) (\d+)\n$/.exec(text) ?? [];
  return { ledgerId, file, log };
}

/** Which file lies there; `0` where none does. */
export const inodeOf = (path: string): string =>
  String(statSync(path, { bigint: true, throwIfNoEntry: false })?.ino ?? 0);

/** Writes down the ledger and the log that are in use now. @throws the system's error */
export function noteIdentity(ledgerFile: string, ledgerId: string): void {
  const [file, log] = [inodeOf(ledgerFile), inodeOf(`${ledgerFile}-wal`)];
  const known = readIdentity(ledgerFile);
  if (known?.ledgerId === ledgerId && known.file === file && known.log === log) return;
  replaceDurable(identityFile(ledgerFile), `${ledgerId} ${file} ${log}\n`, 0o640);
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
 * Refuses to make a ledger in the place of one that is lost: an empty one would refuse its keys and refund its usage.
 *
 * @param expected the id of the ledger that was there; what the identity file says unless told otherwise.
 * @throws PagegateError ledger_unavailable
 */
export function refuseLostLedger(ledgerFile: string, expected = readIdentity(ledgerFile)?.ledgerId): void {
  if (expected === undefined || !isMissingOrEmpty(ledgerFile)) return;
  throw new PagegateError(
    'ledger_unavailable',
    `${ledgerFile} is gone or empty: expected ledger ${expected}, as ${identityFile(ledgerFile)} says. ` +
      'Put the file back, or stop the server and run `pagegate account restore BACKUP`: what was used since stays used. ' +
      `To start over with an empty ledger, stop the server and remove ${identityFile(ledgerFile)} too.`,
    { file: ledgerFile, expected },
  );
}

/** Refuses to go on without a ledger. @throws PagegateError no_ledger where there never was one, ledger_unavailable where it is lost */
export function requireLedger(ledgerFile: string): void {
  refuseLostLedger(ledgerFile);
  if (isMissingOrEmpty(ledgerFile)) throw new PagegateError('no_ledger', `Got "${ledgerFile}".`, { file: ledgerFile });
}

/** Refuses another ledger than the one that belongs here. @throws PagegateError ledger_unavailable */
export function refuseForeignLedger(ledgerFile: string, ledgerId: string): void {
  const expected = readIdentity(ledgerFile)?.ledgerId;
  // A damaged file is written again: the ledger itself says who it is.
  if (expected === undefined || expected === UNKNOWN_ID || expected === ledgerId) return;
  throw new PagegateError(
    'ledger_unavailable',
    `${ledgerFile} is another ledger: expected ${expected}, as ${identityFile(ledgerFile)} says, got ${ledgerId}. ` +
      'Put that one back, or stop the server, move this file away and run `pagegate account restore BACKUP`. ' +
      `To go on with this one and forget the other, stop the server and remove ${identityFile(ledgerFile)}.`,
    { file: ledgerFile, expected, got: ledgerId },
  );
}

/** Refuses to change a file that another has taken the place of. @throws PagegateError ledger_unavailable */
export function refuseReplacedLedger(ledgerFile: string, openedInode: string): void {
  if (inodeOf(ledgerFile) === openedInode) return;
  const what = `${ledgerFile} was replaced meanwhile, as a restore does, and nothing was changed; run the command again.`;
  throw new PagegateError('ledger_unavailable', what, { file: ledgerFile });
}

/** Refuses a ledger that has another home now. @throws PagegateError ledger_moved */
export function refuseMovedLedger(ledgerFile: string, movedTo: string | null): void {
  if (movedTo !== null) throw new PagegateError('ledger_moved', `${ledgerFile} was moved to ${movedTo}.`);
}

/** Locked by whoever may replace the ledger or write its meters: the ledger writer, a restore, a correction. */
export const writerLockFile = (ledgerFile: string): string => join(dirname(ledgerFile), 'writer.lock');

/** Opens that file, which is made where there is none; its folder must be there. */
export function openWriterLock(ledgerFile: string): number {
  // For reading, too: a pipe that lies there is then not waited for.
  return openSync(writerLockFile(ledgerFile), 'a+', 0o600);
}

/**
 * Takes the lock where nobody has it.
 *
 * @returns what gives it back; undefined where another process has it.
 * @throws the system's error
 */
export function tryWriterLock(ledgerFile: string): (() => void) | undefined {
  const fd = openWriterLock(ledgerFile);
  const release = (): void => closeSync(fd);
  if (lockFile(fd)) return release;
  release();
  return undefined;
}

/** Where a replaced ledger file, or its log, is kept beside the new one. */
export const asideName = (ledgerFile: string, nowMs: number): string =>
  `${ledgerFile}.replaced-${new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;

/**
 * Moves a write-ahead log away that was in use with an earlier file: SQLite would play it into whichever file lies here now, and mix the
 * two. Files that were copied or moved together are left alone.
 */
export function setEarlierLogAside(ledgerFile: string, nowMs: number): void {
  const known = readIdentity(ledgerFile);
  if (known === undefined || !existsSync(ledgerFile)) return;
  const isOther = known.file !== '0' && known.file !== inodeOf(ledgerFile);
  if (!isOther || known.log === '0' || known.log !== inodeOf(`${ledgerFile}-wal`)) return;
  renameSync(`${ledgerFile}-wal`, `${asideName(ledgerFile, nowMs)}-wal`);
  rmSync(`${ledgerFile}-shm`, { force: true });
}
