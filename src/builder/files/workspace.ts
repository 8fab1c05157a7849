/**
 * What a build has on disk before it is done: a folder of temporary files, and the unfinished index and report of rejects, each beside its
 * final path. A build removes them when it ends. A killed build cannot, so the next build in the same place does it instead. A lock shows
 * whether a build is still running: the kernel releases it when the holder ends, for whatever reason.
 */
import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { lockFile } from '../../platform/libc.ts';

const PREFIX = '.pagegate-build-';
const UNFINISHED = '.building-';
const LOCK = 'lock';
/** The lock file is locked under this name and then renamed, so that a file named `LOCK` has been locked from the start. */
const UNNAMED_LOCK = 'lock.new';

/** One build's temporary folder and unfinished files. */
export class Workspace {
  /** The folder of temporary files. */
  readonly path: string;
  /** Path of the unfinished index. */
  readonly unfinished: string;
  /** Path of the unfinished report of rejects. */
  readonly unfinishedRejects: string;
  /** Files and folders of this build; removed when it ends. */
  readonly #ownPaths: string[] = [];
  readonly #locks: number[] = [];

  /**
   * Creates a new folder in `parent`, for an index at `out` and a report at `rejects`. The folders of both must exist.
   *
   * @throws the system's error if one of the files cannot be created; then it leaves nothing behind
   */
  constructor(parent: string, out: string, rejects?: string) {
    this.unfinished = `${out}${UNFINISHED}${process.pid}`;
    this.unfinishedRejects = `${rejects ?? out}${UNFINISHED}${process.pid}`;
    this.path = mkdtempSync(join(parent, PREFIX));
    this.#ownPaths.push(this.path);
    try {
      const unnamed = join(this.path, UNNAMED_LOCK);
      this.#lock(unnamed, 'wx');
      renameSync(unnamed, join(this.path, LOCK));
      this.#reserve(this.unfinished);
      if (rejects !== undefined) this.#reserve(this.unfinishedRejects);
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  /** Locks the unfinished index, which must exist, to show that this process is writing it. */
  claim(): void {
    this.#lock(this.unfinished, 'r');
  }

  /** Checks that a file can be created, so that the build does not fail at its end. */
  #reserve(path: string): void {
    closeSync(openSync(path, 'wx', 0o600));
    this.#ownPaths.push(path);
    rmSync(path);
  }

  #lock(path: string, flags: 'wx' | 'r'): void {
    const lock = openSync(path, flags, 0o600);
    this.#locks.push(lock);
    lockFile(lock);
  }

  /** Removes the folder with its contents, and the unfinished files if they still exist. */
  remove(): void {
    for (const path of this.#ownPaths.splice(0)) {
      try {
        remove(path);
      } catch {
        // Left to the next build: a failure here must not hide why this build ended.
      }
    }
    for (const lock of this.#locks.splice(0)) closeSync(lock);
  }
}

const remove = (path: string): void => rmSync(path, { recursive: true, force: true });

/** Removes what killed builds left in the folder for temporary files and beside `files`, their output paths. */
export function removeLeftovers(parent: string, ...files: readonly string[]): void {
  removeAbandoned(parent, PREFIX, isAbandonedFolder);
  for (const file of files) removeAbandoned(dirname(file), `${basename(file)}${UNFINISHED}`, isAbandonedFile);
}

/** Removes the abandoned files and folders in `folder` whose names begin with `prefix`. */
function removeAbandoned(folder: string, prefix: string, isAbandoned: (path: string) => boolean): void {
  try {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (name.startsWith(prefix) && isAbandoned(path)) remove(path);
    }
  } catch {
    // Leftovers that cannot be listed or removed only take space. They must not stop a build.
  }
}

/**
 * True for a folder of the current user whose lock no process holds. Other users' folders do not count: in a shared folder, any user can
 * choose such a name. A folder without a lock does not count: a build may be about to create the lock.
 */
function isAbandonedFolder(path: string): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined || !status.isDirectory() || status.uid !== process.geteuid!()) return false;
  return isUnlocked(join(path, LOCK));
}

/** True for an unlocked file of the current user whose process has ended. A running process may be about to lock it. */
function isAbandonedFile(path: string): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined || !status.isFile() || status.uid !== process.geteuid!()) return false;
  const [, pid] = /\.building-([1-9][0-9]{0,9})$/.exec(path) ?? [];
  if (pid === undefined || !isUnlocked(path)) return false;
  // In a container, each start may get the same process ID.
  return pid === `${process.pid}` || !existsSync(`/proc/${pid}`);
}

/** True if no process holds the file's lock. False if the file does not exist or cannot be opened. */
function isUnlocked(path: string): boolean {
  let lock = -1;
  try {
    lock = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    return lockFile(lock);
  } catch {
    return false;
  } finally {
    if (lock !== -1) closeSync(lock);
  }
}
