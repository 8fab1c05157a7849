/** Processes that tests start, as the kernel sees them. */
import { readFileSync } from 'node:fs';

/** Whether a process runs or is stopped; one that has ended does not, also where nobody has waited for it yet. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
