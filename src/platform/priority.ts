/** Lowers the priority of processes whose work can wait. */
import { getPriority, setPriority } from 'node:os';

const LOWEST = 19;

/** Sets a process's priority `steps` below this one's. Does nothing if it has ended already, or if the system does not allow it. */
export function lowerPriority(pid: number, steps: number): void {
  try {
    setPriority(pid, Math.min(LOWEST, getPriority() + steps));
  } catch {
    // The process works without it, too.
  }
}
