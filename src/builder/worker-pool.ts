/** Workers of a build: threads, or none of them. */
import { Worker } from 'node:worker_threads';
import { ERRORS, type ErrorCode, type ErrorDetails, PagegateError } from '../errors.ts';
import type { BuildWorker, EncodePlan, ScanResult, WorkerSetup } from './build-worker.ts';
import type { EncodedUnit } from './encode-unit.ts';
import { failureOf } from './failure.ts';
import type { PartOutcome } from './scan-part.ts';

export interface WorkerCall {
  readonly method: 'train' | 'beginScan' | 'scan' | 'finishScan' | 'planEncoding' | 'encodeUnit';
  readonly argument?: unknown;
}

/** An error as plain data. */
export interface PackedFailure {
  readonly code?: ErrorCode;
  readonly what: string;
  readonly details: ErrorDetails;
}

/** The first message of a thread: it has loaded its modules. */
export const READY = 'ready';

export type WorkerReply = { readonly value: unknown } | { readonly failure: PackedFailure };

/** Young objects die within a line: a small nursery keeps memory low and costs nothing. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 };

export function packFailure(thrown: unknown): PackedFailure {
  const error = failureOf(thrown);
  if (!(error instanceof PagegateError)) {
    return { what: error instanceof Error ? (error.stack ?? error.message) : String(error), details: {} };
  }
  const { code, details, message } = error;
  return { code, what: message.slice(ERRORS[code].message.length + 1), details };
}

function unpackFailure({ code, what, details }: PackedFailure): Error {
  return code === undefined ? new Error(what) : new PagegateError(code, what, details);
}

/** A worker in a thread of its own. */
class ThreadWorker implements BuildWorker {
  readonly #thread: Worker;
  /** Once the thread has loaded its modules, or has ended. */
  readonly #started: Promise<void>;
  #pending: { resolve: (value: unknown) => void; reject: (error: Error) => void } | undefined;
  #failure: Error | undefined;

  constructor(setup: WorkerSetup) {
    this.#thread = new Worker(new URL('./worker-thread.ts', import.meta.url), {
      workerData: setup,
      resourceLimits: THREAD_LIMITS,
    });
    const { promise, resolve: start } = Promise.withResolvers<void>();
    this.#started = promise;
    this.#thread.once('exit', () => start());
    this.#thread.on('message', (reply: WorkerReply | typeof READY) => {
      if (reply === READY) return start();
      const pending = this.#pending;
      this.#pending = undefined;
      if ('failure' in reply) pending?.reject(unpackFailure(reply.failure));
      else pending?.resolve(reply.value);
    });
    this.#thread.on('error', (error) => this.#fail(error));
    this.#thread.on('exit', () => this.#fail(new Error('a worker thread of the build ended')));
  }

  train(): Promise<Uint8Array> {
    return this.#call({ method: 'train' });
  }

  beginScan(dictionary: Uint8Array): Promise<void> {
    return this.#call({ method: 'beginScan', argument: dictionary });
  }

  scan(part: number): Promise<PartOutcome> {
    return this.#call({ method: 'scan', argument: part });
  }

  finishScan(): Promise<ScanResult> {
    return this.#call({ method: 'finishScan' });
  }

  planEncoding(plan: EncodePlan): Promise<void> {
    return this.#call({ method: 'planEncoding', argument: plan });
  }

  encodeUnit(unit: number): Promise<EncodedUnit> {
    return this.#call({ method: 'encodeUnit', argument: unit });
  }

  async close(): Promise<void> {
    // V8 aborts the process where a thread is terminated while it loads its modules.
    await this.#started;
    await this.#thread.terminate();
  }

  #call<T>(call: WorkerCall): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#pending = { resolve: resolve as (value: unknown) => void, reject };
      this.#thread.postMessage(call);
    });
  }

  #fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
    this.#pending?.reject(this.#failure);
    this.#pending = undefined;
  }
}

/** Starts that many threads; with 0 the one worker is in the caller's thread, which otherwise does not load what workers need. */
export async function startWorkers(count: number, setup: Omit<WorkerSetup, 'number'>): Promise<BuildWorker[]> {
  if (count === 0) {
    const { LocalWorker } = await import('./build-worker.ts');
    return [new LocalWorker({ ...setup, number: 0 })];
  }
  return Array.from({ length: count }, (_, number) => new ThreadWorker({ ...setup, number }));
}

/**
 * Gives tasks 0, 1, … `count - 1`, in the order of `order`, to whichever worker is free, and their results to `take`, in the same
 * order. No worker runs more than `ahead` tasks ahead of the result taken last. The first failure ends it.
 */
export async function runInOrder<T>(
  workers: readonly BuildWorker[],
  order: readonly number[],
  run: (worker: BuildWorker, task: number) => Promise<T>,
  take: (result: T, task: number) => Promise<void> | void,
  signal?: AbortSignal,
  ahead = Number.POSITIVE_INFINITY,
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
      await take(result, order[taken]!);
      taken += 1;
      for (const go of wake.splice(0)) go();
    }
  };
  const drive = async (worker: BuildWorker): Promise<void> => {
    for (;;) {
      signal?.throwIfAborted();
      if (begun === order.length) return;
      if (begun - taken >= ahead) {
        await new Promise<void>((resolve) => {
          wake = [...wake, resolve];
        });
        continue;
      }
      const place = begun;
      begun += 1;
      results.set(place, await run(worker, order[place]!));
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
