/** The main module of a worker thread: takes calls from worker-pool.ts, one at a time. */
import { parentPort, workerData } from 'node:worker_threads';
import { type EncodePlan, LocalWorker, type WorkerSetup } from './build-worker.ts';
import type { WorkerCall, WorkerReply } from './worker-pool.ts';
import { packFailure, READY } from './worker-pool.ts';

const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread');
const worker = new LocalWorker(workerData as WorkerSetup);

/** Runs a call; what can be handed over without a copy is in `transfer`. */
async function answer(call: WorkerCall): Promise<{ value: unknown; transfer: ArrayBuffer[] }> {
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

port.on('message', (call: WorkerCall) => {
  answer(call).then(
    ({ value, transfer }) => port.postMessage({ value } satisfies WorkerReply, transfer),
    (error: unknown) => port.postMessage({ failure: packFailure(error) } satisfies WorkerReply),
  );
});
port.postMessage(READY);
