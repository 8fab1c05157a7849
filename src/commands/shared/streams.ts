/** Standard output and standard error when nobody can take what is written: a full disk, a closed pipe, a terminal that went away. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PagegateError } from '../../errors.ts';

/** The reader of our output has seen enough (`| head`); nothing is wrong. */
export class OutputClosed extends Error {}

let failure: Error | undefined;
let advice = 'Run the command again.';
let isTolerant = false;

/** Says what the failure to write is to advise. To be called before a command writes anything. */
export function adviseOnLostOutput(text: string): void {
  advice = text;
}

/** Goes on, and ends well, where nobody takes what is written: for a command whose work is something else. To be called before it writes anything. */
export function tolerateLostOutput(): void {
  isTolerant = true;
}

/** Failures of the two streams are kept here instead of ending the process with a dump. To be called once, first of all. */
export function guardStreams(): void {
  process.stdout.on('error', (error) => {
    if (!isTolerant) failure ??= asFailure(error);
  });
  // Without standard error there is nowhere left to say it.
  process.stderr.on('error', () => {});
}

/**
 * Writes to standard output.
 *
 * @throws what an earlier write failed with, so that long output ends early
 */
export function writeOut(text: string): void {
  if (failure !== undefined) throw failure;
  process.stdout.write(text);
}

/** Writes bytes and waits until they are taken, so that nothing piles up in memory; an abort ends the waiting. */
export async function writeOutBytes(bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
  if (failure !== undefined) throw failure;
  let onAbort = (): void => {};
  const taken = new Promise<void>((resolve, reject) => {
    onAbort = () => reject(signal!.reason as Error);
    signal?.addEventListener('abort', onAbort);
    process.stdout.write(bytes, (error) => (error == null ? resolve() : reject(asFailure(error))));
  });
  await taken.finally(() => signal?.removeEventListener('abort', onAbort));
}

/**
 * Waits until all output is taken.
 *
 * @throws what writing it failed with
 */
export async function flushOut(): Promise<void> {
  if (isTolerant) return;
  await writeOutBytes(new Uint8Array(0));
  // A stream reports a failure one turn later than its last write.
  await nextTurn();
  if (failure !== undefined) throw failure;
}

function asFailure(error: NodeJS.ErrnoException): Error {
  if (error.code === 'EPIPE') return new OutputClosed();
  if (error.code === 'ERR_STREAM_DESTROYED' && failure !== undefined) return failure;
  return new PagegateError('output_failed', `${error.message}. ${advice}`, {}, { cause: error });
}
