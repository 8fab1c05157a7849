/** Starts the workers of a build: in threads, or one in the caller's thread. */
import { Thread } from '../../platform/threads.ts';
import type { BuildWorker, WorkerCall, WorkerSetup } from './worker-messages.ts';

/** Starts a worker in its own thread. */
function startThread(setup: WorkerSetup): BuildWorker {
  const thread = new Thread(new URL('./worker-thread.ts', import.meta.url), setup);
  const inThread =
    <Step extends WorkerCall['step']>(step: Step) =>
    (...args: Parameters<BuildWorker[Step]>) =>
      thread.call({ step, args } satisfies WorkerCall) as ReturnType<BuildWorker[Step]>;
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

/** Starts `count` threads. If it is 0, one worker runs in the caller's thread, which only then loads the modules that workers need. */
export async function startWorkers(count: number, setup: Omit<WorkerSetup, 'number'>): Promise<BuildWorker[]> {
  if (count === 0) {
    const { LocalWorker } = await import('./build-worker.ts');
    return [new LocalWorker({ ...setup, number: 0 })];
  }
  return Array.from({ length: count }, (_, number) => startThread({ ...setup, number }));
}
