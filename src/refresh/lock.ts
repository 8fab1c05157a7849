/**
 * Keeps two processes from changing one index store at the same time: an advisory lock on `<store>/lock`. The kernel gives it
 * up when its holder ends, however it ends; the file stays and only tells who held it last.
 */
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';
import { lockFile } from '../platform/libc.ts';
import { explainFailure } from './failure.ts';

/** Runs a task while this process alone may change the store. Throws `refresh_busy` where another one does. */
export async function withStoreLock<T>(store: string, task: () => Promise<T>): Promise<T> {
  const path = join(store, 'lock');
  let handle: FileHandle;
  try {
    await mkdir(store, { recursive: true, mode: 0o755 });
    handle = await open(path, 'a+', 0o644);
  } catch (error) {
    throw explainFailure(error, store);
  }
  try {
    if (!lockFile(handle.fd, 'exclusive')) {
      const holder = (await handle.readFile('latin1')).trim().slice(0, 20);
      throw new PagegateError('refresh_busy', `Process ${holder || 'unknown'} holds ${path}.`, { holder });
    }
    await handle.truncate(0);
    await handle.write(`${process.pid}\n`);
    return await task();
  } catch (error) {
    throw explainFailure(error, store);
  } finally {
    await handle.close();
  }
}
