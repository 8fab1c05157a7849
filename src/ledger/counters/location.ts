/**
 * Where the shared counters of a ledger lie: in memory, so that no charge waits for a disk, and after a loss of power they are gone
 * instead of old.
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

/** Shared memory of the host: a file system without a disk. */
const MEMORY_FOLDER = '/dev/shm';

const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';

/** Counters that this process has mapped. */
export interface OpenCounters {
  readonly counters: Counters;
  /** Whether the path still leads to them: they may have been removed, or made again. */
  isCurrent(): boolean;
  close(): void;
}

/**
 * The paths that counters may have, the best first. The name has the folder's device and inode, so that a copied folder has counters of its
 * own: in a snapshot of a file system that is mounted beside it, the inode alone is the same.
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
 * Opens the counters of a ledger where there are any that can be believed: written for this ledger since this boot, in this very file.
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
 * Makes empty counters, in memory or, where the host has too little of it, beside the ledger.
 *
 * @throws PagegateError ledger_unavailable
 */
export function createCounters(ledgerFile: string, ledgerId: string): OpenCounters {
  let failure: unknown;
  for (const path of countersPaths(ledgerFile, ledgerId)) {
    try {
      // Whoever still has the earlier file mapped may spend what was reserved for it, and nothing more.
      rmSync(path, { force: true });
      const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
      const fd = openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        // Every block is written: a hole would end a process that touches it while there is no memory left.
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

/** A copy of a ledger's counters, for reading only; undefined if there are none that can be trusted, or read. */
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

/** Removes the counters of a ledger: what they held stands in the ledger. */
export function removeCounters(ledgerFile: string, ledgerId: string): void {
  for (const path of countersPaths(ledgerFile, ledgerId)) rmSync(path, { force: true });
}

/** Opens a regular file of at least the counters' size; undefined for everything else, and for what this user may not open. */
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

/** Where counters lie, whether or not they can be believed; in memory, or on a disk that a charge may have to wait for. */
export function findCounters(
  ledgerFile: string,
  ledgerId: string,
): { readonly path: string; readonly isInMemory: boolean } | undefined {
  const path = countersPaths(ledgerFile, ledgerId).find((one) => existsSync(one));
  return path === undefined ? undefined : { path, isInMemory: path.startsWith(`${MEMORY_FOLDER}/`) };
}
