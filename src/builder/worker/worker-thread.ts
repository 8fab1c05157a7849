/** The main module of a worker thread: takes calls from worker-pool.ts, one at a time. */
import { workerData } from 'node:worker_threads';
import { fromSystem } from '../../errors.ts';
import { answerCalls, type CallResult } from '../../platform/threads.ts';
import { LocalWorker } from './build-worker.ts';
import type { WorkerCall, WorkerSetup } from './worker-messages.ts';

const setup = workerData as WorkerSetup;
const worker = new LocalWorker(setup);

async function answer(call: WorkerCall): Promise<CallResult> {
  switch (call.method) {
    case 'train':
      return { value: await worker.train(), transfer: [] };
    case 'beginScan':
      return { value: await worker.beginScan(call.dictionary), transfer: [] };
    case 'scan':
      return { value: await worker.scan(), transfer: [] };
    case 'beginArranging':
      return { value: await worker.beginArranging(call.plan), transfer: [] };
    case 'arrange': {
      const arranged = await worker.arrange(call.run);
      return {
        value: arranged,
        transfer: [arranged.run.buckets.buffer, arranged.run.payload.buffer] as ArrayBuffer[],
      };
    }
    case 'walk':
      return { value: await worker.walk(call.setup, call.buckets), transfer: [] };
  }
}

answerCalls((call: WorkerCall) =>
  answer(call).catch((error: unknown) => {
    throw fromSystem('build_failed', setup.tempDir, error, { noSpaceCode: 'build_no_space' });
  }),
);
