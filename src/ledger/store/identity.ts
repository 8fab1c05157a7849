/**
 * A small file beside the ledger records which ledger belongs in a folder. Because of it, a lost ledger is not mistaken for one that never
 * existed, and another ledger in its place is not served.
 */
import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { replaceDurable } from '../../platform/durable-files.ts';
import { lockFile } from '../../platform/libc.ts';
import { readSmallFileIfAny } from '../../platform/small-file.ts';

/** Content of the identity file. */
export interface LedgerIdentity {
  /** 32 hexadecimal digits. */
  readonly ledgerId: string;
  /** Inodes of the ledger and of its write-ahead log when they were last in use together; `0` if unknown. */
  readonly file: string;
  readonly log: string;
}

const FILE_MAX_BYTES = 4096;
const UNKNOWN_ID = 'unknown, the identity file is damaged';

export const identityFile = (ledgerFile: string): string => join(dirname(ledgerFile), 'ledger.id');

/** Reads the identity; undefined if there is none. For a damaged file the id is one that no ledger has. */
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

/** Records the ledger and the log that are in use now. @throws the system's error */
export function noteIdentity(ledgerFile: string, ledgerId: string): void {
  const [file, log] = [inodeOf(ledgerFile), inodeOf(`${ledgerFile}-wal`)];
  const known = readIdentity(ledgerFile);
  if (known?.ledgerId === ledgerId && known.file === file && known.log === log) return;
  replaceDurable(identityFile(ledgerFile), `${ledgerId} ${file} ${log}\n`, 0o640);
}

/** Whether the file does not exist or is empty. Returns false if that cannot be determined: opening the file then reports why. */
export function isMissingOrEmpty(ledgerFile: string): boolean {
  try {
    const stats = statSync(ledgerFile);
    return stats.isFile() && stats.size === 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/**
 * Refuses a ledger that is lost, so that no empty one is created in its place, which would refuse its keys and refund its usage.
 *
 * @param expected the id of the ledger that was there; by default that of the identity file.
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

/** Refuses to continue without a ledger. @throws PagegateError no_ledger if there never was one, ledger_unavailable if it is lost */
export function requireLedger(ledgerFile: string): void {
  refuseLostLedger(ledgerFile);
  if (isMissingOrEmpty(ledgerFile)) throw new PagegateError('no_ledger', `Got "${ledgerFile}".`, { file: ledgerFile });
}

/** Refuses a ledger other than the one that belongs here. @throws PagegateError ledger_unavailable */
export function refuseForeignLedger(ledgerFile: string, ledgerId: string): void {
  const expected = readIdentity(ledgerFile)?.ledgerId;
  // A damaged identity file refuses nothing: it is written again, with the id in the ledger itself.
  if (expected === undefined || expected === UNKNOWN_ID || expected === ledgerId) return;
  throw new PagegateError(
    'ledger_unavailable',
    `${ledgerFile} is another ledger: expected ${expected}, as ${identityFile(ledgerFile)} says, got ${ledgerId}. ` +
      'Put that one back, or stop the server, move this file away and run `pagegate account restore BACKUP`. ' +
      `To go on with this one and forget the other, stop the server and remove ${identityFile(ledgerFile)}.`,
    { file: ledgerFile, expected, got: ledgerId },
  );
}

/** Refuses to change a ledger file that was replaced after it was opened. @throws PagegateError ledger_unavailable */
export function refuseReplacedLedger(ledgerFile: string, openedInode: string): void {
  if (inodeOf(ledgerFile) === openedInode) return;
  const what = `${ledgerFile} was replaced meanwhile, as a restore does, and nothing was changed; run the command again.`;
  throw new PagegateError('ledger_unavailable', what, { file: ledgerFile });
}

/** Refuses a ledger that was moved to another place. @throws PagegateError ledger_moved */
export function refuseMovedLedger(ledgerFile: string, movedTo: string | null): void {
  if (movedTo !== null) throw new PagegateError('ledger_moved', `${ledgerFile} was moved to ${movedTo}.`);
}

/** The lock file of those that may replace the ledger or write its meters: the ledger writer, a restore, a correction. */
export const writerLockFile = (ledgerFile: string): string => join(dirname(ledgerFile), 'writer.lock');

/** Opens the lock file, and creates it if necessary. Its folder must exist. */
export function openWriterLock(ledgerFile: string): number {
  // Opened for reading, too, so that the open does not block if a pipe has this name.
  return openSync(writerLockFile(ledgerFile), 'a+', 0o600);
}

/**
 * Takes the ledger writer's lock if it is free.
 *
 * @returns a function that releases it; undefined if another process holds it.
 * @throws the system's error
 */
export function tryWriterLock(ledgerFile: string): (() => void) | undefined {
  const fd = openWriterLock(ledgerFile);
  const release = (): void => closeSync(fd);
  if (lockFile(fd)) return release;
  release();
  return undefined;
}

/** The name under which a replaced ledger file, or its log, is kept beside the new one. */
export const asideName = (ledgerFile: string, nowMs: number): string =>
  `${ledgerFile}.replaced-${new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;

/**
 * Moves away a write-ahead log that was in use with an earlier ledger file. SQLite would apply it to the file that is here now, and mix the
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
