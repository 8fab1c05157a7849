/** Processor time of a server: of all its processes and their threads, to the nanosecond as the scheduler counts it. */
import { readdirSync, readFileSync } from 'node:fs';

/** Processor time of the threads of some processes so far, in microseconds; a thread that has ended is not counted any more. */
export function scheduledCpuUs(pids: readonly number[]): number {
  let ns = 0;
  for (const pid of pids) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      ns += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ', 1)[0]);
    }
  }
  return ns / 1_000;
}
