/** The channel between the primary process and a worker process: messages, questions and answers. */
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

/** The questions to a worker, each with the type of its answer. */
export interface WorkerAnswers {
  readonly metrics: MetricsSnapshot;
  readonly status: WorkerStatus;
  readonly reload: ReloadReport;
  readonly drain: null;
  /** A drain after a successor has taken over: idle connections are left to their clients. */
  readonly retire: null;
  /** See {@link Worker.steer}. */
  readonly steer: null;
}

export type WorkerQuestion = keyof WorkerAnswers;

export interface WorkerLink {
  readonly pid: number;
  /** Asks the worker. Rejects if it does not answer in time or dies; the message is the predicate of a sentence about the worker. */
  ask<Q extends WorkerQuestion>(question: Q, timeoutMs: number, range?: SocketRange): Promise<WorkerAnswers[Q]>;
  /** Kills the worker. */
  kill(): void;
  /** Resolves when the worker has ended, with its exit code, signal or start error. */
  readonly ended: Promise<string>;
}

/** The first message to a worker process. */
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
  /** Aborts the start: kills the worker if it does not listen yet. */
  readonly signal: AbortSignal;
  /** File descriptor of the index in use; `knownGood.index` is its identity. */
  readonly indexFd: number | undefined;
  readonly onKnownGood: (part: KnownGoodPart) => void;
}

export type ToWorker = StartMessage | AskMessage;

export interface AskMessage {
  readonly type: 'ask';
  readonly id: number;
  readonly question: WorkerQuestion;
  /** Only for `steer`. */
  readonly range?: SocketRange | undefined;
}

export type FromWorker =
  | { readonly type: 'listening' }
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  | { readonly type: 'known_good'; readonly part: KnownGoodPart }
  | { readonly type: 'answer'; readonly id: number; readonly answer: WorkerAnswers[WorkerQuestion] };

/** Answers a question in the worker process. */
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

/** Whether a worker ends after it has answered this question. */
export const endsWorker = (question: WorkerQuestion): boolean => question === 'drain' || question === 'retire';

const ENTRY = fileURLToPath(new URL('./worker-process.ts', import.meta.url));
const START_TIMEOUT_MS = 60_000;
/**
 * Size of V8's young generation semi-space, in MiB. The garbage of a request is small and short-lived: with the default of 16, a worker uses
 * over 20 MB more and is not measurably faster.
 */
const SEMI_SPACE_FLAG = '--max-semi-space-size=2';

/**
 * Starts a worker process. Resolves when it listens.
 *
 * @throws PagegateError worker_failed, or the error that the worker reports
 */
export async function forkWorker(start: StartMessage, options: ForkOptions): Promise<WorkerLink> {
  const { signal, indexFd, onKnownGood } = options;
  const child = fork(ENTRY, [], {
    // A flag that the operator sets comes later, so it takes precedence.
    execArgv: [SEMI_SPACE_FLAG, ...process.execArgv.filter((flag) => !flag.startsWith('--inspect'))],
    serialization: 'advanced',
    // The index file gets file descriptor 4: GIVEN_INDEX_FD.
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
  // If the worker has ended, its `exit` event reports that.
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
  /** How the process ended; undefined while it runs. */
  #ending: string | undefined;
  #nextId = 1;

  constructor(child: ChildProcess) {
    this.#child = child;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    killOnExit(child);
    const onEnd = (how: string): void => {
      this.#ending ??= how;
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
    if (this.#ending !== undefined) throw new Error(`ended (${this.#ending})`);
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
    // A process that waits for a disk dies only when the disk answers. The primary must not wait for that before it exits.
    this.#child.unref();
    this.#child.channel?.unref();
  }
}
