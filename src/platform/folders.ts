/** Creates and removes folders. */
import { mkdirSync, rmdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

/** Whether a path does not exist. Returns false if that cannot be determined: using the path then reports the problem. */
export function isAbsent(path: string): boolean {
  try {
    statSync(path);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/**
 * Creates a folder and its missing parents. Use it everywhere: the recursive mkdir of Node.js 24.21 never returns if the kernel
 * answers ENOENT although the parent exists, as in /proc or on a stale mount. The same loop was known on Windows
 * (nodejs/node#27198, fixed there by #27207). This can go when `mkdirSync('/proc/a/b', { recursive: true })` throws.
 *
 * @returns the folders that it has created, the innermost last
 * @throws the system's error; the folders created before it are removed
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
      // Another process may have created it in the meantime.
      if (isThere(folder)) continue;
      removeEmptyFolders(made);
      throw error;
    }
  }
  return made;
}

/** Removes those folders that {@link makeFolder} has created that are still empty. */
export function removeEmptyFolders(made: readonly string[]): void {
  for (const folder of made.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // Another process uses it, or has removed it.
    }
  }
}
