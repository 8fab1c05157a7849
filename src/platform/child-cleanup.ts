/** Children that must not outlive this process, however suddenly it ends: one that hangs would not see that its parent is gone. */
import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Kills the child when this process exits; forgotten once the child has ended. */
export function killOnExit(child: ChildProcess): void {
  children.add(child);
  const forget = (): void => void children.delete(child);
  child.once('exit', forget);
  child.once('error', forget);
}
