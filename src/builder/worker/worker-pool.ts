/** Workers of a build: threads, or none of them. */
import { Thread } from '../../platform/threads.ts';
import type { BuildWorker, WorkerCall, WorkerSetup } from './worker-messages.ts';

/** A worker in a thread of its own. */
function startThread(setup: WorkerSetup): BuildWorker {
  const thread = new Thread(new URL('./worker-thread.ts', import.meta.url), setup);
  const inThread =
    <Step extends WorkerCall['step']>(step: Step) =>
    (...given: Parameters<BuildWorker[Step]>) =>
      thread.call({ step, given } satisfies WorkerCall) as ReturnType<BuildWorker[Step]>;
  return {
    train: inThread('train'),
    beginScan: inThread('beginScan'),
    scan: inThread('scan'),
    beginArranging: inThread('beginArranging'),
    arrange: inThread('arrange'),
    walk: inThread('walk'),
    close: () => thread.close(),
  };
}

/** Starts that many threads; with 0 the one worker is in the caller's thread, which otherwise does not load what workers need. */
export async function startWorkers(count: number, setup: Omit<WorkerSetup, 'number'>): Promise<BuildWorker[]> {
  if (count === 0) {
    const { LocalWorker } = await import('./build-worker.ts');
    return [new LocalWorker({ ...setup, number: 0 })];
  }
  return Array.from({ length: count }, (_, number) => startThread({ ...setup, number }));
}
