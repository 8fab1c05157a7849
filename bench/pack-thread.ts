/** A thread that packs a range of records for packed-records.ts, and ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { packRange, type RecordRange } from './packed-records.ts';

const range = packRange(workerData as RecordRange);
parentPort?.postMessage(
  range,
  range.blocks.map((block) => block.buffer),
);
