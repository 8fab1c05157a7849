/** Messages to and from the child processes of the benches. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** The next message of a child; a child that ends instead is an error, not a wait without end. */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown): void => {
      child.off('exit', onExit);
      resolve(message as T);
    };
    const onExit = (code: number | null, signal: NodeJS.Signals | null): void => {
      child.off('message', onMessage);
      reject(new Error(`${child.spawnargs.slice(1).join(' ')} ended with ${signal ?? code}.`));
    };
    child.once('message', onMessage);
    child.once('exit', onExit);
  });
}

/** Lets a child end by itself, as it does when nobody speaks to it any more. */
export async function end(child: ChildProcess | undefined): Promise<void> {
  if (child?.connected !== true) return;
  const ended = once(child, 'exit');
  child.disconnect();
  await ended;
}
