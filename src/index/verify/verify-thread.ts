/** The main module of a thread that walks buckets for verify-pool.ts. */
import { workerData } from 'node:worker_threads';
import { viewMapped } from '../../platform/libc.ts';
import { answerCalls } from '../../platform/threads.ts';
import { readHeader } from '../format/header.ts';
import { bytesOfBuffer } from '../read/index-bytes.ts';
import { readTables } from '../read/read-tables.ts';
import type { RenderTables } from '../read/render-tables.ts';
import { type BucketRange, RecordWalk } from './record-walk.ts';
import type { VerifySetup } from './verify-pool.ts';

const { path, address, sizeBytes, decodeEveryNthBucket } = workerData as VerifySetup;
const bytes = bytesOfBuffer(viewMapped(address, sizeBytes), path);
let tables: RenderTables | undefined;

answerCalls(async (buckets: BucketRange) => {
  const header = readHeader(bytes);
  // Read with the first call and not before: what fails in a call goes to the caller by its name.
  tables ??= readTables(bytes, header);
  return { value: new RecordWalk(bytes, header, tables, decodeEveryNthBucket).checkBuckets(buckets), transfer: [] };
});
