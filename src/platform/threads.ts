/** Worker threads that take calls and answer them in their order, and how work is shared out among them. */
import { availableParallelism } from 'node:os';
import { parentPort, Worker } from 'node:worker_threads';
import { type ErrorCode, type ErrorDetails, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

/** Young objects die within a line: a small nursery keeps memory low and costs nothing. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 };

/** The first message of a thread: it has loaded its modules. */
const READY = 'ready';

/** An error as plain data. */
interface PackedFailure {
  readonly code?: ErrorCode;
  readonly what: string;
  readonly details: ErrorDetails;
}

type Reply = { readonly value: unknown } | { readonly failure: PackedFailure };

/** What a call comes to; what can be passed without a copy is in `transfer`. */
interface CallResult {
  readonly value: unknown;
  readonly transfer: ArrayBuffer[];
}

/** So many workers as were asked for, or else as the machine has cores. */
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

/** A thread, as the one that started it sees it. Its module answers with `answerCalls`. */
export class Thread {
  readonly #thread: Worker;
  /** Once the thread has loaded its modules, or has ended. */
  readonly #started: Promise<void>;
  /** The calls that are not answered yet. */
  #pending: { resolve: (value: unknown) => void; reject: (error: Error) => void }[] = [];
  #failure: Error | undefined;

  /** @param workerData what the thread begins with; it is copied. */
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

  /** A call that awaits something in its thread must be answered before the next. */
  call<T>(call: unknown): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve: resolve as (value: unknown) => void, reject });
      this.#thread.postMessage(call);
    });
  }

  /** Ends the thread, whatever it is doing; it has ended when this has. */
  async close(): Promise<void> {
    // V8 aborts the process where a thread is terminated while it loads its modules (nodejs/node#43182 mended one way to it). This can
    // go when a thread that is terminated right after its start, a thousand times, does not end the process.
    await this.#started;
    await this.#thread.terminate();
  }

  #fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
    for (const { reject } of this.#pending.splice(0)) reject(this.#failure);
  }
}

/** In a thread's main module: answers the calls that come. */
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
 * Gives tasks 0, 1, … `count - 1` to whichever worker is free, and their results to `take` in that order. No worker runs more than
 * `ahead` tasks ahead of the result taken last. The first failure ends it.
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

/** The promise's result, or the signal's reason as soon as it is aborted. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  // Where the signal comes first, what becomes of the promise later is nobody's concern.
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
