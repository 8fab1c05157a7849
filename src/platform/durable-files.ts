/** Writes files so that they exist, and are complete, after a power failure. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Waits until a file's content, or the names in a directory, are on the disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Renames a file atomically and durably, and replaces what had the name before. The file's content must be on the disk already. */
export function renameDurable(from: string, to: string): void {
  renameSync(from, to);
  syncPath(dirname(to));
}

/**
 * Writes a new file completely or not at all, and syncs its content to the disk. Its name becomes durable when its directory is synced.
 *
 * @throws the system's error; `EEXIST` if the path exists already
 */
export function writeDurable(path: string, content: string | Uint8Array, mode: number): void {
  const descriptor = openSync(path, 'wx', mode);
  try {
    writeFileSync(descriptor, content, { flush: true });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Creates a file or replaces its content, atomically and durably. */
export function replaceDurable(path: string, content: string | Uint8Array, mode: number): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    // A killed process with the same process id may have left this file. In containers, process ids repeat.
    rmSync(temporary, { force: true });
    writeDurable(temporary, content, mode);
    renameDurable(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
