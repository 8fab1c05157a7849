/**
 * The file of a ledger's shared counters. It is in memory, so that no charge waits for a disk, and so that counters are gone instead of stale
 * after a loss of power.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fromSystem } from '../../errors.ts';
import { mapFile } from '../../platform/libc.ts';
import { COUNTERS_HEADER_SIZE_BYTES, COUNTERS_SIZE_BYTES, Counters, type CountersOwner } from './counters.ts';

/** The host's shared memory: a file system in memory. */
const MEMORY_FOLDER = '/dev/shm';

const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';

/** Counters that this process has mapped. */
export interface OpenCounters {
  readonly counters: Counters;
  /** Whether the path still leads to them. They may have been removed, or created again. */
  isCurrent(): boolean;
  close(): void;
}

/**
 * Returns the paths that counters may have, the preferred one first. The name contains the folder's device and inode, so that a copied folder
 * has counters of its own. The inode alone is not enough: it is the same in a mounted snapshot of the file system.
 */
export function countersPaths(ledgerFile: string, ledgerId: string): string[] {
  const folder = dirname(ledgerFile);
  const { dev = 0n, ino = 0n } = statSync(folder, { bigint: true, throwIfNoEntry: false }) ?? {};
  const name = `pagegate-${ledgerId}-${dev}-${ino}`;
  return [join(MEMORY_FOLDER, name), join(folder, name)];
}

function ownerOf(fd: number, ledgerId: string): CountersOwner {
  const { dev, ino } = fstatSync(fd, { bigint: true });
  const bootId = readFileSync(BOOT_ID_FILE, 'utf8').replaceAll('-', '').trim();
  return { ledgerId, bootId, device: dev, inode: ino };
}

function mapCounters(fd: number, path: string): OpenCounters {
  const { dev, ino } = fstatSync(fd);
  const mapping = mapFile(fd, COUNTERS_SIZE_BYTES, 'write');
  return {
    counters: new Counters(mapping.buffer),
    isCurrent: () => {
      const stats = statSync(path, { throwIfNoEntry: false });
      return stats !== undefined && stats.ino === ino && stats.dev === dev;
    },
    close: () => mapping.unmap(),
  };
}

/**
 * Opens the counters of a ledger; undefined if there are none that can be trusted: written for this ledger, since this boot, in this very file.
 *
 * @throws PagegateError mapping_failed
 */
export function openCounters(ledgerFile: string, ledgerId: string): OpenCounters | undefined {
  for (const path of countersPaths(ledgerFile, ledgerId)) {
    const fd = openRegular(path, constants.O_RDWR);
    if (fd === undefined) continue;
    try {
      const opened = mapCounters(fd, path);
      if (opened.counters.isFor(ownerOf(fd, ledgerId))) return opened;
      opened.close();
    } finally {
      closeSync(fd);
    }
  }
  return undefined;
}

/**
 * Creates empty counters in memory or, if that fails, for example because it is full, beside the ledger.
 *
 * @throws PagegateError ledger_unavailable
 */
export function createCounters(ledgerFile: string, ledgerId: string): OpenCounters {
  let failure: unknown;
  for (const path of countersPaths(ledgerFile, ledgerId)) {
    try {
      // A process that still has the earlier file mapped can spend what was reserved there, and nothing more.
      rmSync(path, { force: true });
      const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
      const fd = openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        // Write every block: touching a hole while memory is full would kill the process.
        writeFileSync(fd, new Uint8Array(COUNTERS_SIZE_BYTES));
        const opened = mapCounters(fd, path);
        opened.counters.claim(ownerOf(fd, ledgerId));
        return opened;
      } catch (error) {
        rmSync(path, { force: true });
        throw error;
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      failure ??= error;
    }
  }
  throw fromSystem('ledger_unavailable', ledgerFile, failure);
}

/** Returns a copy of a ledger's counters, for reading only; undefined if there are none that can be read and trusted. */
export function readCounters(
  ledgerFile: string,
  ledgerId: string,
  options: { readonly headerOnly?: boolean } = {},
): Counters | undefined {
  const size = options.headerOnly === true ? COUNTERS_HEADER_SIZE_BYTES : COUNTERS_SIZE_BYTES;
  for (const path of countersPaths(ledgerFile, ledgerId)) {
    const fd = openRegular(path, constants.O_RDONLY);
    if (fd === undefined) continue;
    try {
      const bytes = new Uint8Array(COUNTERS_SIZE_BYTES);
      if (readSync(fd, bytes, 0, size, 0) < size) continue;
      const counters = new Counters(bytes.buffer);
      if (counters.isFor(ownerOf(fd, ledgerId))) return counters;
    } finally {
      closeSync(fd);
    }
  }
  return undefined;
}

/** Removes the counters of a ledger. What they held must be in the ledger. */
export function removeCounters(ledgerFile: string, ledgerId: string): void {
  for (const path of countersPaths(ledgerFile, ledgerId)) rmSync(path, { force: true });
}

/** Opens a regular file of at least the counters' size; undefined for anything else, and if this user may not open it. */
function openRegular(path: string, flags: number): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, flags | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    return undefined;
  }
  const stats = fstatSync(fd);
  if (stats.isFile() && stats.size >= COUNTERS_SIZE_BYTES) return fd;
  closeSync(fd);
  return undefined;
}

/** Finds the counters' file, whether or not it can be trusted. If it is not in memory, a charge may have to wait for a disk. */
export function findCounters(
  ledgerFile: string,
  ledgerId: string,
): { readonly path: string; readonly isInMemory: boolean } | undefined {
  const path = countersPaths(ledgerFile, ledgerId).find((one) => existsSync(one));
  return path === undefined ? undefined : { path, isInMemory: path.startsWith(`${MEMORY_FOLDER}/`) };
}
