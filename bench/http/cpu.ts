/** Processor time of a server, over all its processes and threads, with the scheduler's nanosecond resolution. */
import { readdirSync, readFileSync } from 'node:fs';

/** Returns the processor time of the threads of some processes so far, in microseconds. Threads that have ended are not included. */
export function scheduledCpuUs(pids: readonly number[]): number {
  let ns = 0;
  for (const pid of pids) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      ns += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ', 1)[0]);
    }
  }
  return ns / 1_000;
}
