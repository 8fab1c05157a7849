/** The main module of a thread that walks buckets for verify-pool.ts. */
import { workerData } from 'node:worker_threads';
import { answerCalls } from '../../platform/threads.ts';
import { sourceOfDescriptor } from '../read/index-source.ts';
import { readHeader, readTables } from '../read/read-tables.ts';
import type { RenderTables } from '../read/render-tables.ts';
import { RecordWalk } from './record-walk.ts';
import type { BucketRange, VerifySetup } from './verify-messages.ts';

const { path, descriptor, sizeBytes, decodeEveryNthBucket } = workerData as VerifySetup;
const source = sourceOfDescriptor(descriptor, path, sizeBytes);
let tables: RenderTables | undefined;

answerCalls(async (buckets: BucketRange) => {
  const header = readHeader(source);
  // Read with the first call and not before: what fails in a call goes to the caller by its name.
  tables ??= readTables(source, header);
  return { value: new RecordWalk(source, header, tables, decodeEveryNthBucket).checkBuckets(buckets), transfer: [] };
});
