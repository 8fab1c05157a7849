/** Standard output and standard error when writes can fail: a full disk, a closed pipe, a terminal that is gone. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PagegateError } from '../../errors.ts';

/** The reader of our output has seen enough (`| head`); nothing is wrong. */
export class OutputClosed extends Error {}

let failure: Error | undefined;
let advice = 'Run the command again.';
let isTolerant = false;

/** Sets the advice that ends the message of a failed write. Call it before the command writes anything. */
export function adviseOnLostOutput(text: string): void {
  advice = text;
}

/** Ignores failed writes, for a command whose purpose is not its output. Call it before the command writes anything. */
export function tolerateLostOutput(): void {
  isTolerant = true;
}

/** Records errors of the two streams, so that they do not end the process as unhandled. Call it once, before anything else. */
export function guardStreams(): void {
  process.stdout.on('error', (error) => {
    if (!isTolerant) failure ??= asFailure(error);
  });
  // If standard error fails, there is nowhere left to report it.
  process.stderr.on('error', () => {});
}

/**
 * Writes to standard output.
 *
 * @throws the error of an earlier write, so that long output ends early
 */
export function writeOut(text: string): void {
  if (failure !== undefined) throw failure;
  process.stdout.write(text);
}

/** Writes bytes and waits until the stream has accepted them, so that memory stays bounded. An abort ends the wait. */
export async function writeOutBytes(bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
  if (failure !== undefined) throw failure;
  let onAbort = (): void => {};
  const written = new Promise<void>((resolve, reject) => {
    onAbort = () => reject(signal!.reason as Error);
    signal?.addEventListener('abort', onAbort);
    process.stdout.write(bytes, (error) => (error == null ? resolve() : reject(asFailure(error))));
  });
  await written.finally(() => signal?.removeEventListener('abort', onAbort));
}

/**
 * Waits until all output is written.
 *
 * @throws the error of a write that failed
 */
export async function flushOut(): Promise<void> {
  if (isTolerant) return;
  await writeOutBytes(new Uint8Array(0));
  // A stream reports an error one turn of the event loop after its last write.
  await nextTurn();
  if (failure !== undefined) throw failure;
}

function asFailure(error: NodeJS.ErrnoException): Error {
  if (error.code === 'EPIPE') return new OutputClosed();
  if (error.code === 'ERR_STREAM_DESTROYED' && failure !== undefined) return failure;
  return new PagegateError('output_failed', `${error.message}. ${advice}`, {}, { cause: error });
}
