/** Kills child processes when this process exits. A child that hangs would not notice by itself that its parent is gone. */
import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Kills the child when this process exits, unless the child has ended before. */
export function killOnExit(child: ChildProcess): void {
  children.add(child);
  const forget = (): void => void children.delete(child);
  child.once('exit', forget);
  child.once('error', forget);
}
