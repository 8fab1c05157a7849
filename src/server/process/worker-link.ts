/** How the primary process talks to a worker process: questions and answers. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../config/config.ts';
import { PagegateError } from '../../errors.ts';
import { killOnExit } from '../../platform/child-cleanup.ts';
import type { SocketRange } from '../../platform/sockets.ts';
import type { MetricsSnapshot } from '../metric-definitions.ts';
import { relayedError } from '../relayed-error.ts';
import type { KnownGoodPart, KnownGoodParts } from '../swap/last-known-good.ts';
import type { Worker } from './worker.ts';
import type { ReloadReport, WorkerStatus } from './worker-status.ts';

/** What a worker can be asked. */
export interface WorkerAnswers {
  readonly metrics: MetricsSnapshot;
  readonly status: WorkerStatus;
  readonly reload: ReloadReport;
  readonly drain: null;
  /** The same for a worker that is followed by others: idle connections are left to their clients. */
  readonly retire: null;
  /** See {@link Worker.steer}. */
  readonly steer: null;
}

export type WorkerQuestion = keyof WorkerAnswers;

export interface WorkerLink {
  readonly pid: number;
  /** Rejects when the worker does not answer in time, or dies; the message is the predicate of a sentence about the worker. */
  ask<Q extends WorkerQuestion>(question: Q, timeoutMs: number, range?: SocketRange): Promise<WorkerAnswers[Q]>;
  /** Ends the worker at once. */
  kill(): void;
  /** Resolves when the worker has ended, with how. */
  readonly ended: Promise<string>;
}

/** What a worker process is told to start with. */
export interface StartMessage {
  readonly type: 'start';
  readonly config: Config;
  readonly number: number;
  readonly workers: number;
  readonly port: number;
  readonly burstFile: string;
  readonly knownGood: KnownGoodParts;
}

export interface ForkOptions {
  /** Ends a worker that does not listen yet. */
  readonly signal: AbortSignal;
  /** The open file of the index that is served; `knownGood.index` is its identity. */
  readonly indexFd: number | undefined;
  readonly onKnownGood: (part: KnownGoodPart) => void;
}

export type ToWorker = StartMessage | AskMessage;

export interface AskMessage {
  readonly type: 'ask';
  readonly id: number;
  readonly question: WorkerQuestion;
  /** For `steer` alone. */
  readonly range?: SocketRange | undefined;
}

export type FromWorker =
  | { readonly type: 'listening' }
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  | { readonly type: 'known_good'; readonly part: KnownGoodPart }
  | { readonly type: 'answer'; readonly id: number; readonly answer: WorkerAnswers[WorkerQuestion] };

/** What a worker answers to a question. */
export async function answerFor<Q extends WorkerQuestion>(
  worker: Worker,
  question: Q,
  range: SocketRange | undefined,
): Promise<WorkerAnswers[Q]> {
  const answers: { [K in WorkerQuestion]: () => Promise<WorkerAnswers[K]> | WorkerAnswers[K] } = {
    metrics: () => worker.metrics(),
    status: () => worker.status(),
    reload: () => worker.reload(),
    drain: async () => {
      await worker.drain();
      return null;
    },
    retire: async () => {
      await worker.drain(true);
      return null;
    },
    steer: () => {
      worker.steer(range);
      return null;
    },
  };
  return answers[question]();
}

/** Whether a worker ends with its answer. */
export const endsWorker = (question: WorkerQuestion): boolean => question === 'drain' || question === 'retire';

const ENTRY = fileURLToPath(new URL('./worker-process.ts', import.meta.url));
const START_TIMEOUT_MS = 60_000;
/**
 * In MiB. What a request leaves behind is small and short-lived; with the default of 16 a worker keeps over 20 MB more for it, and is not
 * measurably faster.
 */
const SEMI_SPACE_FLAG = '--max-semi-space-size=2';

/**
 * Starts a worker process. Resolves when it listens.
 *
 * @throws what it failed with
 */
export async function forkWorker(start: StartMessage, options: ForkOptions): Promise<WorkerLink> {
  const { signal, indexFd, onKnownGood } = options;
  const child = fork(ENTRY, [], {
    // A flag of the operator's own comes later, so it counts.
    execArgv: [SEMI_SPACE_FLAG, ...process.execArgv.filter((flag) => !flag.startsWith('--inspect'))],
    serialization: 'advanced',
    // The index comes as file 4: GIVEN_INDEX_FD.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...(indexFd === undefined ? [] : [indexFd])],
  });
  const link = new ProcessLink(child);
  const onAbort = (): void => link.kill();
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  const listening = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new PagegateError('worker_failed', 'It did not listen in time.')),
      START_TIMEOUT_MS,
    );
    child.on('message', (message: FromWorker) => {
      if (message.type === 'listening') resolve();
      else if (message.type === 'failed') reject(relayedError(message.code, message.message, 'worker_failed'));
      else if (message.type === 'known_good') return onKnownGood(message.part);
      else return;
      clearTimeout(timer);
    });
    void link.ended.then((how) => {
      clearTimeout(timer);
      reject(new PagegateError('worker_failed', `It ended before it listened (${how}).`));
    });
  });
  send(child, start);
  try {
    await listening;
    return link;
  } catch (error) {
    link.kill();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function send(child: ChildProcess, message: ToWorker): void {
  // A worker that is gone is noticed by its exit.
  if (child.connected) child.send(message, () => {});
}

interface OpenQuestion {
  readonly resolve: (answer: WorkerAnswers[WorkerQuestion]) => void;
  readonly reject: (error: Error) => void;
}

class ProcessLink implements WorkerLink {
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #open = new Map<number, OpenQuestion>();
  #how: string | undefined;
  #nextId = 1;

  constructor(child: ChildProcess) {
    this.#child = child;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    killOnExit(child);
    const onEnd = (how: string): void => {
      this.#how ??= how;
      for (const { reject } of this.#open.values()) reject(new Error(`ended (${how})`));
      resolve(how);
    };
    child.once('error', (error) => onEnd(error.message));
    child.once('exit', (code, signal) => onEnd(signal === null ? `exit code ${code}` : `signal ${signal}`));
    child.on('message', (message: FromWorker) => {
      if (message.type === 'answer') this.#open.get(message.id)?.resolve(message.answer);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async ask<Q extends WorkerQuestion>(question: Q, timeoutMs: number, range?: SocketRange): Promise<WorkerAnswers[Q]> {
    if (this.#how !== undefined) throw new Error(`ended (${this.#how})`);
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<WorkerAnswers[WorkerQuestion]>();
    const timer = setTimeout(
      () => reject(new Error(`did not answer "${question}" within ${timeoutMs / 1_000} s`)),
      timeoutMs,
    );
    this.#open.set(id, { resolve, reject });
    send(this.#child, { type: 'ask', id, question, range });
    try {
      return (await promise) as WorkerAnswers[Q];
    } finally {
      clearTimeout(timer);
      this.#open.delete(id);
    }
  }

  kill(): void {
    this.#child.kill('SIGKILL');
    // One that waits for a disk dies only when the disk answers; the end of the primary does not wait for that.
    this.#child.unref();
    this.#child.channel?.unref();
  }
}
