/** Lists processes, and makes sure that a run leaves nothing behind, however it ends. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';

/** A variable in the environment of all descendants of this process, by which they are found. A server's workers have nothing else in common. */
const MARK = 'CHAOS_RUN';
const run = `${process.pid}-${Date.now()}`;
/** Killing is repeated, because it takes the kernel a moment, and a process that is being killed may have started another. */
const ROUNDS = 500;
const ROUND_MS = 10;
const directories: string[] = [];
const cleanups: (() => void)[] = [];

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended since it was listed, or belongs to another user.
    return '';
  }
};

/** The process ids of a process's children. */
export function childrenOf(pid: number): number[] {
  let tasks: string[] = [];
  try {
    tasks = readdirSync(`/proc/${pid}/task`);
  } catch {
    // A process that has ended has no children.
  }
  return tasks.flatMap((task) => read(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number));
}

/** The ids of a process and all its descendants. */
export const processTree = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(processTree)];

/** The command line of a process; empty once it has ended. */
export const commandOf = (pid: number): string => read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');

/** Memory of processes in megabytes. Memory that several of them share is counted once. A process that has ended counts as 0. */
export function memoryMb(pids: readonly number[]): number {
  const sizesKb = pids.map((pid) => Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0));
  return Math.round(sizesKb.reduce((sum, size) => sum + size, 0) / 1_024);
}

/** Kills what is left of the run and removes its directories. Synchronous, because the event loop does not run any more at exit. */
function cleanUp(): void {
  for (const cleanup of cleanups) cleanup();
  const isOurs = (pid: number): boolean =>
    pid !== process.pid && read(`/proc/${pid}/environ`).split('\0').includes(`${MARK}=${run}`);
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let round = 0; round < ROUNDS; round += 1) {
    const left = readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && isOurs(pid));
    if (left.length === 0) break;
    for (const pid of left) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process has ended by itself.
      }
    }
    Atomics.wait(clock, 0, 0, ROUND_MS);
  }
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
}

/**
 * Registers a cleanup for the end of this process, also by an error, Ctrl-C or a signal: all processes that it has started since, including
 * stopped and orphaned ones, are killed, and the directory is removed. Only after a SIGKILL of this process they stay.
 *
 * @param cleanup called before that; it must be synchronous.
 */
export function leaveNothing(directory: string, cleanup?: () => void): void {
  directories.push(directory);
  if (cleanup !== undefined) cleanups.push(cleanup);
  if (directories.length > 1) return;
  process.env[MARK] = run;
  process.once('exit', cleanUp);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      cleanUp();
      // The listener is gone now, so the signal ends this process as usual.
      process.kill(process.pid, signal);
    });
  }
}
