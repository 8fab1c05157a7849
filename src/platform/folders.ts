/** Folders that a program writes into. */
import { mkdirSync, rmdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

/** Whether nothing lies there. What cannot be looked at counts as there: whoever uses it says what is wrong with it. */
export function isAbsent(path: string): boolean {
  try {
    statSync(path);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/**
 * Makes a folder and those above it that are missing. Use it everywhere: the recursive mkdir of Node.js 24.21 never ends where
 * the kernel answers ENOENT although the parent is there, as in /proc or on a stale mount. The same loop was known on Windows
 * (nodejs/node#27198, mended there by #27207). This can go when `mkdirSync('/proc/a/b', { recursive: true })` throws.
 *
 * @returns the folders that it made, the innermost last
 * @throws the system's error where that is not possible; what it had made by then is gone
 */
export function makeFolder(path: string, mode = 0o777): string[] {
  const missing: string[] = [];
  for (let folder = resolve(path); !isThere(folder); folder = dirname(folder)) missing.push(folder);
  const made: string[] = [];
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode });
      made.push(folder);
    } catch (error) {
      // Somebody else may have made it in the meantime.
      if (isThere(folder)) continue;
      removeEmptyFolders(made);
      throw error;
    }
  }
  return made;
}

/** Removes folders that {@link makeFolder} made and that nothing was put into. */
export function removeEmptyFolders(made: readonly string[]): void {
  for (const folder of made.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // Somebody else uses it, or has removed it.
    }
  }
}
