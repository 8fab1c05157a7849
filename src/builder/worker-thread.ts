/** The main module of a worker thread: takes calls from worker-pool.ts, one at a time. */
import { workerData } from 'node:worker_threads';
import { fromSystem } from '../errors.ts';
import { type Answer, answerCalls } from '../platform/threads.ts';
import { type EncodePlan, LocalWorker, type WorkerSetup } from './build-worker.ts';
import type { WorkerCall } from './worker-pool.ts';

const setup = workerData as WorkerSetup;
const worker = new LocalWorker(setup);

async function answer(call: WorkerCall): Promise<Answer> {
  switch (call.method) {
    case 'train':
      return { value: await worker.train(), transfer: [] };
    case 'beginScan':
      return { value: await worker.beginScan(call.argument as Uint8Array), transfer: [] };
    case 'scan':
      return { value: await worker.scan(call.argument as number), transfer: [] };
    case 'finishScan':
      return { value: await worker.finishScan(), transfer: [] };
    case 'planEncoding':
      return { value: await worker.planEncoding(call.argument as EncodePlan), transfer: [] };
    case 'encodeUnit': {
      const unit = await worker.encodeUnit(call.argument as number);
      return { value: unit, transfer: [unit.partition.lines.buffer, unit.partition.payload.buffer] as ArrayBuffer[] };
    }
  }
}

answerCalls((call: WorkerCall) =>
  answer(call).catch((error: unknown) => {
    throw fromSystem('build_failed', setup.tempDir, error, { noSpaceCode: 'build_no_space' });
  }),
);
