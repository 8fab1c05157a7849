/** Keeps two processes from changing one index store at the same time. */
import { readFileSync } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';

const lockFile = (store: string): string => join(store, 'lock');

/** When a process started, in clock ticks since boot: tells it from a later one with the same number. */
function startTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

function holder(store: string): { pid: number; ticks: string } | undefined {
  try {
    const [pid, ticks] = readFileSync(lockFile(store), 'utf8').trim().split(' ');
    return pid === undefined || ticks === undefined ? undefined : { pid: Number(pid), ticks };
  } catch {
    return undefined;
  }
}

/** Runs a task while this process alone may change the store. Throws `refresh_busy` where another one does. */
export async function withStoreLock<T>(store: string, task: () => Promise<T>): Promise<T> {
  await mkdir(store, { recursive: true, mode: 0o755 });
  const held = holder(store);
  if (held !== undefined && startTicks(held.pid) === held.ticks) {
    throw new PagegateError('refresh_busy', `Process ${held.pid} holds ${lockFile(store)}.`, { pid: held.pid });
  }
  if (held !== undefined) await rm(lockFile(store), { force: true });
  const handle = await open(lockFile(store), 'wx', 0o644).catch((cause) => {
    throw new PagegateError('refresh_busy', `${lockFile(store)} exists.`, {}, { cause });
  });
  try {
    await handle.writeFile(`${process.pid} ${startTicks(process.pid)}\n`);
    return await task();
  } finally {
    await handle.close();
    await rm(lockFile(store), { force: true });
  }
}
