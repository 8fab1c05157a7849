/**
 * Prevents two processes from changing one index store at the same time: an advisory lock on `<store>/lock`. The kernel releases it
 * when its holder ends, however it ends. The file stays; it contains the process id of the latest holder.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { makeFolder } from '../platform/folders.ts';
import { lockFile } from '../platform/libc.ts';

/** Enough for a process id and a newline. */
const HOLDER_MAX_BYTES = 20;

/**
 * Runs a task while this process holds the store's lock. Creates the store if necessary.
 *
 * @throws PagegateError refresh_busy if another process holds the lock, store_unavailable, build_no_space, and what the task throws
 */
export async function withStoreLock<T>(store: string, task: () => Promise<T>): Promise<T> {
  const path = join(store, 'lock');
  let handle: FileHandle;
  try {
    makeFolder(store, 0o755);
    handle = await open(path, 'a+', 0o644);
  } catch (error) {
    throw fromSystem('store_unavailable', store, error, { noSpaceCode: 'build_no_space' });
  }
  try {
    if (!lockFile(handle.fd)) {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(HOLDER_MAX_BYTES), 0, HOLDER_MAX_BYTES, 0);
      const holder = buffer.toString('latin1', 0, bytesRead).trim();
      throw new PagegateError('refresh_busy', `Process ${holder || 'unknown'} holds ${path}.`, { holder });
    }
    await handle.truncate(0);
    await handle.write(`${process.pid}\n`);
    return await task();
  } catch (error) {
    throw fromSystem('store_unavailable', store, error, { noSpaceCode: 'build_no_space' });
  } finally {
    await handle.close();
  }
}
