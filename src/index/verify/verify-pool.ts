/** Threads that walk the buckets of an index ahead of the walk that reports damage. If they find none, that walk has nothing left to do. */
import { runInOrder, Thread } from '../../platform/threads.ts';
import type { RecordWalk } from './record-walk.ts';
import type { BucketRange, BucketWalker, IntactBuckets, VerifySetup } from './verify-messages.ts';

/** Buckets that a thread walks in one call, which takes some tenths of a second. */
const BUCKETS_PER_CALL = 8192;

/** The threads of a verification. */
export class VerifyThreads {
  readonly walkers: readonly BucketWalker[];
  readonly #threads: readonly Thread[];

  /** Starts `count` threads. */
  constructor(count: number, setup: VerifySetup) {
    const module = new URL('./verify-thread.ts', import.meta.url);
    this.#threads = Array.from({ length: count }, () => new Thread(module, setup));
    this.walkers = this.#threads.map((thread) => (buckets) => thread.call(buckets));
  }

  /** Ends the threads. Resolves when all have ended. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}

/**
 * Moves the walk past the buckets that the walkers find intact, from the first bucket on, and calls `onSkipped` for them in order. Ends at
 * the first range that is not intact. The walk then reports the damage there and after it: it sees every bucket in order, so its report is
 * always the same. When this resolves, no walker is working any more, so that the caller may close the file.
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
