/** The main module of a thread that walks buckets for verify-pool.ts. */
import { workerData } from 'node:worker_threads';
import { answerCalls } from '../../platform/threads.ts';
import { BucketWalks } from './bucket-walks.ts';
import type { BucketRange, VerifySetup } from './verify-messages.ts';

const walks = new BucketWalks(workerData as VerifySetup);

answerCalls(async (buckets: BucketRange) => ({ value: walks.walk(buckets), transfer: [] }));
