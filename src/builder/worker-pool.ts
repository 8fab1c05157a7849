/** Workers of a build: threads, or none of them. */
import { Thread } from '../platform/threads.ts';
import type { BuildWorker, EncodePlan, ScanResult, WorkerSetup } from './build-worker.ts';
import type { EncodedUnit } from './encode-unit.ts';
import type { PartOutcome } from './scan-part.ts';

export interface WorkerCall {
  readonly method: 'train' | 'beginScan' | 'scan' | 'finishScan' | 'planEncoding' | 'encodeUnit';
  readonly argument?: unknown;
}

/** A worker in a thread of its own. */
class ThreadWorker implements BuildWorker {
  readonly #thread: Thread;

  constructor(setup: WorkerSetup) {
    this.#thread = new Thread(new URL('./worker-thread.ts', import.meta.url), setup);
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

  close(): Promise<void> {
    return this.#thread.close();
  }

  #call<T>(call: WorkerCall): Promise<T> {
    return this.#thread.call(call);
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
