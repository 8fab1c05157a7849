/**
 * What a build has on the disk before it is done: a folder of temporary files, and the unfinished index and report of rejects, each beside
 * the place where it goes. A build that ends as it should removes them; one that was killed cannot, and the next build in the same
 * place does it instead. What tells the two apart is a lock: the kernel gives it up when its holder ends, however it ends.
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
/** Locked before it gets its name, so that what has the name was always locked by somebody. */
const UNNAMED_LOCK = 'lock.new';

/** One build's temporary folder and unfinished files. */
export class Workspace {
  /** The folder. */
  readonly path: string;
  /** Where the index is written until it gets its name. */
  readonly unfinished: string;
  /** The same for the report of rejects. */
  readonly unfinishedRejects: string;
  /** What is this build's own, and goes with it. */
  readonly #own: string[] = [];
  readonly #locks: number[] = [];

  /**
   * A new folder in `parent`, for an index that goes to `out` and rejects that go to `rejects`; their folders must be there.
   *
   * @throws the system's error where one of the files could not be made, and leaves nothing behind
   */
  constructor(parent: string, out: string, rejects?: string) {
    this.unfinished = `${out}${UNFINISHED}${process.pid}`;
    this.unfinishedRejects = `${rejects ?? out}${UNFINISHED}${process.pid}`;
    this.path = mkdtempSync(join(parent, PREFIX));
    this.#own.push(this.path);
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

  /** Says that the unfinished index is there and this process's own. */
  claim(): void {
    this.#lock(this.unfinished, 'r');
  }

  /** Tries whether a file can be made, so that a build does not learn it at its end. */
  #reserve(path: string): void {
    closeSync(openSync(path, 'wx', 0o600));
    this.#own.push(path);
    rmSync(path);
  }

  #lock(path: string, flags: 'wx' | 'r'): void {
    const lock = openSync(path, flags, 0o600);
    this.#locks.push(lock);
    lockFile(lock);
  }

  /** Removes the folder and all that is in it, and the unfinished files if they are still there. */
  remove(): void {
    for (const path of this.#own.splice(0)) {
      try {
        remove(path);
      } catch {
        // What cannot be removed now is left to the next build, and must not hide why this one ended.
      }
    }
    for (const lock of this.#locks.splice(0)) closeSync(lock);
  }
}

const remove = (path: string): void => rmSync(path, { recursive: true, force: true });

/** Removes what killed builds left, in the folder for temporary files and beside the files that they wrote. */
export function removeLeftovers(parent: string, ...files: readonly string[]): void {
  removeAbandoned(parent, PREFIX, isAbandonedFolder);
  for (const file of files) removeAbandoned(dirname(file), `${basename(file)}${UNFINISHED}`, isAbandonedFile);
}

/** Removes what is in a folder, begins with a prefix and is abandoned. */
function removeAbandoned(folder: string, prefix: string, isAbandoned: (path: string) => boolean): void {
  try {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (name.startsWith(prefix) && isAbandoned(path)) remove(path);
    }
  } catch {
    // What cannot be seen or removed takes space, and is no reason not to build.
  }
}

/** A folder of our own (where all may write, anybody can choose such a name) whose lock nobody holds; without one, a build may just be making it. */
function isAbandonedFolder(path: string): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined || !status.isDirectory() || status.uid !== process.geteuid!()) return false;
  return isUnlocked(join(path, LOCK));
}

/** A file of our own that nobody holds, and whose process is no longer there: it may just have made the file. */
function isAbandonedFile(path: string): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined || !status.isFile() || status.uid !== process.geteuid!()) return false;
  const [, pid] = /\.building-([1-9][0-9]{0,9})$/.exec(path) ?? [];
  if (pid === undefined || !isUnlocked(path)) return false;
  // In a container every start may have the same number.
  return pid === `${process.pid}` || !existsSync(`/proc/${pid}`);
}

/** Also false if there is no such file, or none that may be opened. */
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
