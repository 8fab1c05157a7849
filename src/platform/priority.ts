/** Priorities of processes: some work has to let others go first. */
import { getPriority, setPriority } from 'node:os';

const LOWEST = 19;

/** Puts a process so many steps below this one; does nothing where it has ended already, or where the system does not allow it. */
export function lowerPriority(pid: number, steps: number): void {
  try {
    setPriority(pid, Math.min(LOWEST, getPriority() + steps));
  } catch {
    // It works all the same.
  }
}
