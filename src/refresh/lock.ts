/**
 * Keeps two processes from changing one index store at the same time: an advisory lock on `<store>/lock`. The kernel gives it
 * up when its holder ends, however it ends; the file stays and only tells who held it last.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { makeFolder } from '../platform/folders.ts';
import { lockFile } from '../platform/libc.ts';

/** A process's number, and its line end. */
const HOLDER_MAX_BYTES = 20;

/**
 * Runs a task while this process alone may change the store.
 *
 * @throws PagegateError refresh_busy where another one does
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
