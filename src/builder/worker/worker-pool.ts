/** Workers of a build: threads, or none of them. */
import type { BucketRange, IntactBuckets, VerifySetup } from '../../index/verify.ts';
import { Thread } from '../../platform/threads.ts';
import type { ArrangedRun } from '../arrange/run-arranger.ts';
import type { ArrangePlan, BuildWorker, ScanResult, WorkerCall, WorkerSetup } from './worker-messages.ts';

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
    return this.#call({ method: 'beginScan', dictionary });
  }

  scan(): Promise<ScanResult> {
    return this.#call({ method: 'scan' });
  }

  beginArranging(plan: ArrangePlan): Promise<void> {
    return this.#call({ method: 'beginArranging', plan });
  }

  arrange(run: number): Promise<ArrangedRun> {
    return this.#call({ method: 'arrange', run });
  }

  walk(setup: VerifySetup, buckets: BucketRange): Promise<IntactBuckets | undefined> {
    return this.#call({ method: 'walk', setup, buckets });
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
