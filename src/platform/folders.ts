/** Folders that a program writes into. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

/**
 * Makes a folder and those above it that are missing. Use it everywhere: the recursive mkdir of Node.js 24.21 never ends where
 * the kernel answers ENOENT although the parent is there, as in /proc or on a stale mount. The same loop was known on Windows
 * (nodejs/node#27198, mended there by #27207). This can go when `mkdirSync('/proc/a/b', { recursive: true })` throws.
 *
 * @throws the system's error where that is not possible.
 */
export function makeFolder(path: string, mode = 0o777): void {
  const missing: string[] = [];
  for (let folder = resolve(path); !isThere(folder); folder = dirname(folder)) missing.push(folder);
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode });
    } catch (error) {
      // Somebody else may have made it in the meantime.
      if (!isThere(folder)) throw error;
    }
  }
}
