/** The processes of a run, as the kernel lists them; and that nothing of a run stays, however it ends. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';

/** In the environment of every process that this one starts, and that they start: a server's workers have nothing else in common. */
const MARK = 'CHAOS_RUN';
const run = `${process.pid}-${Date.now()}`;
/** Killing a process takes the kernel a moment, and one that is being killed may have started another. */
const ROUNDS = 500;
const ROUND_MS = 10;
const directories: string[] = [];
const endings: (() => void)[] = [];

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It ended between the listing and the reading, or is somebody else's.
    return '';
  }
};

/** The process ids of a process's children. */
export function childrenOf(pid: number): number[] {
  let tasks: string[] = [];
  try {
    tasks = readdirSync(`/proc/${pid}/task`);
  } catch {
    // A process that has ended has none.
  }
  return tasks.flatMap((task) => read(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number));
}

/** A process and all that it has started. */
export const processTree = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(processTree)];

/** The command line of a process; empty once it has ended. */
export const commandOf = (pid: number): string => read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');

/** Memory of processes in megabytes; what several of them share is counted once. One that has ended has none. */
export function memoryMb(pids: readonly number[]): number {
  const sizesKb = pids.map((pid) => Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0));
  return Math.round(sizesKb.reduce((sum, size) => sum + size, 0) / 1_024);
}

/** Kills what is left of the run and removes its directories. Waits without the event loop, for which there is no time any more. */
function cleanUp(): void {
  for (const end of endings) end();
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
        // It was faster.
      }
    }
    Atomics.wait(clock, 0, 0, ROUND_MS);
  }
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
}

/**
 * When this process ends, by an error, Ctrl-C or a signal too, the processes that it has started since are killed, stopped and
 * orphaned ones as well, and the directory is removed. Only its own SIGKILL leaves them.
 *
 * @param end does what has to be done before that, in the same turn.
 */
export function leaveNothing(directory: string, end?: () => void): void {
  directories.push(directory);
  if (end !== undefined) endings.push(end);
  if (directories.length > 1) return;
  process.env[MARK] = run;
  process.once('exit', cleanUp);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      cleanUp();
      // Without its listener, which is gone, the signal ends this process as ever.
      process.kill(process.pid, signal);
    });
  }
}
