/** The main module of the thread that trains the dictionary. */
import { parentPort, workerData } from 'node:worker_threads';
import { type SampleSetup, trainDictionary } from './sample.ts';
import { packFailure, type WorkerReply } from './worker-pool.ts';

const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread');
trainDictionary(workerData as SampleSetup).then(
  (value) => port.postMessage({ value } satisfies WorkerReply),
  (error: unknown) => port.postMessage({ failure: packFailure(error) } satisfies WorkerReply),
);
