/** Detects that files of an open ledger were removed or replaced. SQLite does not check this, and would write to a file that nobody can find. */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';

/** The first fields of a SQLite file never change: signature, page size, versions (sqlite.org/fileformat2.html, 1.3). */
const HEADER_SIZE_BYTES = 24;

const inodeOf = (path: string): bigint | undefined => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;

/** Watches the files of one open ledger. */
export class FileWatch {
  readonly #file: string;
  readonly #inode: bigint | undefined;
  readonly #header: Buffer;
  #logInode: bigint | undefined;
  #sharedInode: bigint | undefined;

  /** The ledger must be open already. @throws the system's error */
  constructor(file: string) {
    this.#file = file;
    this.#inode = inodeOf(file);
    this.#header = readHeader(file);
    this.#logInode = inodeOf(`${file}-wal`);
    this.#sharedInode = inodeOf(`${file}-shm`);
  }

  /** Size of the write-ahead log, in bytes; 0 if there is none. */
  logSizeBytes(): number {
    return statSync(`${this.#file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  /**
   * Compares the files with those that were opened.
   *
   * @returns `log_removed` if only the write-ahead log, or the memory shared with other programs (`-shm`), is gone: the open
   * connection still has it, but other programs would create another one.
   * @throws PagegateError ledger_unavailable if a file was removed, replaced or overwritten
   */
  look(): 'intact' | 'log_removed' {
    const inode = inodeOf(this.#file);
    if (inode === undefined) throw changed(this.#file, 'removed');
    if (inode !== this.#inode) throw changed(this.#file, 'replaced');
    if (!readHeader(this.#file).equals(this.#header)) throw changed(this.#file, 'overwritten');
    const log = inodeOf(`${this.#file}-wal`);
    this.#logInode ??= log;
    if (log !== undefined && log !== this.#logInode) throw changed(`${this.#file}-wal`, 'replaced');
    const shared = inodeOf(`${this.#file}-shm`);
    this.#sharedInode ??= shared;
    if (shared !== undefined && shared !== this.#sharedInode) throw changed(`${this.#file}-shm`, 'replaced');
    return log === this.#logInode && shared === this.#sharedInode ? 'intact' : 'log_removed';
  }
}

function readHeader(file: string): Buffer {
  const header = Buffer.alloc(HEADER_SIZE_BYTES);
  const fd = openSync(file, 'r');
  try {
    readSync(fd, header, 0, header.length, 0);
  } finally {
    closeSync(fd);
  }
  return header;
}

const changed = (path: string, how: string): PagegateError =>
  new PagegateError('ledger_unavailable', `${path} was ${how} while in use.`, { path });
