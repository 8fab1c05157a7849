/** Files that are still there, and whole, after the power failed. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Waits until a file's content is on the disk; of a directory, which names it holds. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Gives a file whose content is on the disk its name, atomically and durably; what had the name before is replaced. */
export function renameDurable(from: string, to: string): void {
  renameSync(from, to);
  syncPath(dirname(to));
}

/**
 * Writes a new file, whole or not at all, its content on the disk; its name becomes durable when its directory is synced.
 *
 * @throws the system's error, `EEXIST` where something lies there already
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

/** Puts a file into place, or another content into it: it appears whole or not at all. */
export function replaceDurable(path: string, content: string | Uint8Array, mode: number): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    // Left by a process that was killed and had the same process id, as is usual in containers.
    rmSync(temporary, { force: true });
    writeDurable(temporary, content, mode);
    renameDurable(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
