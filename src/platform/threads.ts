/** Worker threads that answer calls in order, and the distribution of tasks over them. */
import { availableParallelism } from 'node:os';
import { parentPort, Worker } from 'node:worker_threads';
import { type ErrorCode, type ErrorDetails, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

/** Most objects live no longer than one line of input takes, so a small young generation saves memory at no cost. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 };

/** The first message of a thread, after it has loaded its modules. */
const READY = 'ready';

/** An error as plain data, for a message. */
interface PackedFailure {
  readonly code?: ErrorCode;
  readonly what: string;
  readonly details: ErrorDetails;
}

type Reply = { readonly value: unknown } | { readonly failure: PackedFailure };

/** The result of a call. The buffers in `transfer` are passed without a copy. */
interface CallResult {
  readonly value: unknown;
  readonly transfer: ArrayBuffer[];
}

/** Returns the number of workers to use: the wanted number, or the number of cores, up to a limit. */
export function workerCount(wanted: number | undefined): number {
  return Math.min(LIMITS.workers.value, wanted ?? availableParallelism());
}

function packFailure(error: unknown): PackedFailure {
  if (!(error instanceof PagegateError)) {
    return { what: error instanceof Error ? (error.stack ?? error.message) : String(error), details: {} };
  }
  const { code, what, details } = error;
  return { code, what, details };
}

function unpackFailure({ code, what, details }: PackedFailure): Error {
  return code === undefined ? new Error(what) : new PagegateError(code, what, details);
}

/** A handle to a worker thread. The thread's module must use {@link answerCalls}. */
export class Thread {
  readonly #thread: Worker;
  /** Resolves when the thread has loaded its modules, or has ended. */
  readonly #started: Promise<void>;
  /** The calls that are not answered yet. */
  #pending: { resolve: (value: unknown) => void; reject: (error: Error) => void }[] = [];
  #failure: Error | undefined;

  /** @param workerData data for the thread's start; it is copied. */
  constructor(module: URL, workerData: unknown) {
    this.#thread = new Worker(module, { workerData, resourceLimits: THREAD_LIMITS });
    const { promise, resolve: start } = Promise.withResolvers<void>();
    this.#started = promise;
    this.#thread.once('exit', () => start());
    this.#thread.on('message', (reply: Reply | typeof READY) => {
      if (reply === READY) return start();
      const pending = this.#pending.shift();
      if ('failure' in reply) pending?.reject(unpackFailure(reply.failure));
      else pending?.resolve(reply.value);
    });
    this.#thread.on('error', (error) => this.#fail(error));
    this.#thread.on('exit', () => this.#fail(new Error('a worker thread ended')));
  }

  /** Sends a call and returns its result. If the thread awaits something to answer a call, wait for the result before the next call. */
  call<T>(call: unknown): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve: resolve as (value: unknown) => void, reject });
      this.#thread.postMessage(call);
    });
  }

  /** Ends the thread, whatever it is doing. Resolves when it has ended. */
  async close(): Promise<void> {
    // V8 aborts the process if a thread is terminated while it loads its modules (nodejs/node#43182 fixed one cause). This can
    // go when terminating a thread right after its start, a thousand times, does not end the process.
    await this.#started;
    await this.#thread.terminate();
  }

  #fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
    for (const { reject } of this.#pending.splice(0)) reject(this.#failure);
  }
}

/** Answers the calls that a thread receives. For the thread's main module. */
export function answerCalls<Call>(answer: (call: Call) => Promise<CallResult>): void {
  const port = parentPort;
  if (port === null) throw new Error('this module runs in a worker thread');
  port.on('message', (call: Call) => {
    answer(call).then(
      ({ value, transfer }) => port.postMessage({ value } satisfies Reply, transfer),
      (error: unknown) => port.postMessage({ failure: packFailure(error) } satisfies Reply),
    );
  });
  port.postMessage(READY);
}

/**
 * Runs the tasks 0, 1, … `count - 1`, each on the next free worker, and passes their results to `take` in that order. No worker runs more
 * than `ahead` tasks ahead of the last result passed to `take`. Rejects with the first failure.
 */
export async function runInOrder<W, T>(
  workers: readonly W[],
  count: number,
  run: (worker: W, task: number) => Promise<T>,
  take: (result: T) => Promise<void> | void,
  { signal, ahead = count }: { readonly signal: AbortSignal | undefined; readonly ahead?: number },
): Promise<void> {
  const results = new Map<number, T>();
  let begun = 0;
  let taken = 0;
  let taking: Promise<void> = Promise.resolve();
  let wake: (() => void)[] = [];
  const takeReady = async (): Promise<void> => {
    while (results.has(taken)) {
      const result = results.get(taken)!;
      results.delete(taken);
      await take(result);
      taken += 1;
      for (const go of wake.splice(0)) go();
    }
  };
  const drive = async (worker: W): Promise<void> => {
    for (;;) {
      signal?.throwIfAborted();
      if (begun === count) return;
      if (begun - taken >= ahead) {
        await new Promise<void>((resolve) => {
          wake = [...wake, resolve];
        });
        continue;
      }
      const task = begun;
      begun += 1;
      results.set(task, await run(worker, task));
      taking = taking.then(takeReady);
      await taking;
    }
  };
  await abortable(Promise.all(workers.map(drive)), signal);
}

/** Settles like the promise, or rejects with the signal's reason as soon as it is aborted. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  // If the signal comes first, a later rejection of the promise must not be reported as unhandled.
  promise.catch(() => {});
  signal.throwIfAborted();
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
