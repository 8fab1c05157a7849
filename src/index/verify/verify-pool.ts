/** Threads that walk the buckets of an index ahead of the walk that reports, which then has nothing left to do where all is well. */
import { runInOrder, Thread } from '../../platform/threads.ts';
import type { RecordWalk } from './record-walk.ts';
import type { BucketRange, IntactBuckets, VerifySetup } from './verify-messages.ts';

/** Buckets that a thread walks at a time: some tenths of a second. */
const BUCKETS_PER_CALL = 8192;

/**
 * Takes the walk past the buckets, from the first one on, that threads find intact; `onSkipped` is told of them in order. At the first that
 * are not it ends: what is wrong there, and after it, is for the walk to say, which sees every bucket in order and so always says the same.
 */
export async function walkInThreads(
  walk: RecordWalk,
  workers: number,
  setup: VerifySetup,
  onSkipped: (buckets: IntactBuckets) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { bucketCount } = walk;
  const linesPerCall = Math.min(BUCKETS_PER_CALL, Math.ceil(bucketCount / workers));
  const calls = Array.from({ length: Math.ceil(bucketCount / linesPerCall) }, (_, call) => call);
  const module = new URL('./verify-thread.ts', import.meta.url);
  const threads: Thread[] = [];
  let isIntact = true;
  try {
    while (threads.length < Math.min(workers, calls.length)) threads.push(new Thread(module, setup));
    await runInOrder(
      threads,
      calls,
      async (thread, call) => {
        if (!isIntact) return undefined;
        const from = call * linesPerCall;
        const buckets: BucketRange = { from, to: Math.min(bucketCount, from + linesPerCall) };
        return await thread.call<IntactBuckets | undefined>(buckets);
      },
      async (buckets) => {
        isIntact &&= buckets !== undefined && walk.skip(buckets);
        if (isIntact) await onSkipped(buckets!);
      },
      signal,
    );
  } finally {
    // Only then may the caller close the file.
    await Promise.all(threads.map((thread) => thread.close()));
  }
}
