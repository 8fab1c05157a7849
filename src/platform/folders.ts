/** Folders that a program writes into. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

/**
 * Makes a folder and those above it that are missing. Throws the system's error where that is not possible. Node's recursive mkdir
 * does not end where a file system has no place for folders, as /proc: there a name is missing, and so is the one above it.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let folder = resolve(path); !isThere(folder); folder = dirname(folder)) missing.push(folder);
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder);
    } catch (error) {
      // Somebody else may have made it in the meantime.
      if (!isThere(folder)) throw error;
    }
  }
}
