/** Threads that walk the buckets of an index ahead of the walk that reports, which then has nothing left to do where all is well. */
import { runInOrder, Thread } from '../../platform/threads.ts';
import type { RecordWalk } from './record-walk.ts';
import type { BucketRange, BucketWalker, IntactBuckets, VerifySetup } from './verify-messages.ts';

/** Buckets that a thread walks at a time: some tenths of a second. */
const BUCKETS_PER_CALL = 8192;

/** Threads of a verification's own. */
export class VerifyThreads {
  readonly walkers: readonly BucketWalker[];
  readonly #threads: readonly Thread[];

  /** Starts that many. */
  constructor(count: number, setup: VerifySetup) {
    const module = new URL('./verify-thread.ts', import.meta.url);
    this.#threads = Array.from({ length: count }, () => new Thread(module, setup));
    this.walkers = this.#threads.map((thread) => (buckets) => thread.call(buckets));
  }

  /** They have ended when this has. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}

/**
 * Takes the walk past the buckets, from the first one on, that the walkers find intact; `onSkipped` is told of them in order. At the first
 * that are not it ends: what is wrong there, and after it, is for the walk to say, which sees every bucket in order and so always says the
 * same. No walker is at work any more when this ends, so that the caller may close the file.
 */
export async function skipIntactBuckets(
  walk: RecordWalk,
  walkers: readonly BucketWalker[],
  onSkipped: (buckets: IntactBuckets) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { bucketCount } = walk;
  const bucketsPerCall = Math.min(BUCKETS_PER_CALL, Math.ceil(bucketCount / walkers.length));
  const walking = new Set<Promise<unknown>>();
  let isIntact = true;
  try {
    await runInOrder(
      walkers,
      Math.ceil(bucketCount / bucketsPerCall),
      async (walker, call) => {
        if (!isIntact) return undefined;
        const from = call * bucketsPerCall;
        const buckets: BucketRange = { from, to: Math.min(bucketCount, from + bucketsPerCall) };
        const walked = walker(buckets);
        walking.add(walked);
        return await walked.finally(() => walking.delete(walked));
      },
      async (buckets) => {
        isIntact &&= buckets !== undefined && walk.skip(buckets);
        if (isIntact) await onSkipped(buckets!);
      },
      { signal },
    );
  } finally {
    await Promise.allSettled(walking);
  }
}
