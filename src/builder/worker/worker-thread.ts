/** The main module of a worker thread: executes calls from worker-pool.ts, one at a time. */
import { workerData } from 'node:worker_threads';
import { fromSystem } from '../../errors.ts';
import { answerCalls } from '../../platform/threads.ts';
import type { ArrangedRun } from '../arrange/run-arranger.ts';
import { LocalWorker } from './build-worker.ts';
import type { WorkerCall, WorkerSetup } from './worker-messages.ts';

const setup = workerData as WorkerSetup;
const worker = new LocalWorker(setup);

const buffersOf = ({ run }: ArrangedRun): ArrayBuffer[] => [run.buckets.buffer, run.payload.buffer] as ArrayBuffer[];

answerCalls(async ({ step, args }: WorkerCall) => {
  try {
    const value = await (worker[step] as (...args: readonly unknown[]) => Promise<unknown>).apply(worker, [...args]);
    return { value, transfer: step === 'arrange' ? buffersOf(value as ArrangedRun) : [] };
  } catch (error) {
    throw fromSystem('build_failed', setup.tempDir, error, { noSpaceCode: 'build_no_space' });
  }
});
