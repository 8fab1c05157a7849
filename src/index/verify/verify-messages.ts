/** The messages between a verification and the threads that walk buckets for it. Plain data. */

/** The setup of a thread. `descriptor` belongs to the caller, who keeps it open until all threads have ended. */
export interface VerifySetup {
  readonly path: string;
  readonly descriptor: number;
  readonly sizeBytes: number;
  readonly decodeEveryNthBucket: number;
}

/** Walks buckets, for example in a thread. Resolves to undefined if it finds any damage. Make only one call at a time. */
export type BucketWalker = (buckets: BucketRange) => Promise<IntactBuckets | undefined>;

/** Consecutive buckets: [from, to). */
export interface BucketRange {
  readonly from: number;
  readonly to: number;
}

/** Buckets that a walk has found intact, provided that the payload of the buckets before them ends at `base`. */
export interface IntactBuckets extends BucketRange {
  /** Begin and end of their part of the payload: [base, end). */
  readonly base: number;
  readonly end: number;
  readonly recordCount: number;
}
