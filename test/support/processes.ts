/** State of the processes that tests start, from the kernel. */
import { readFileSync } from 'node:fs';

/** Whether a process exists, running or stopped. A zombie, which has ended but was not reaped, does not count. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
