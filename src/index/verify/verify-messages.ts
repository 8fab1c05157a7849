/** What verify says to the threads that walk buckets for it, and they to it: plain data. */

/** What a thread starts with: a descriptor of the caller's, which stays open until no thread reads it any more. */
export interface VerifySetup {
  readonly path: string;
  readonly descriptor: number;
  readonly sizeBytes: number;
  readonly decodeEveryNthBucket: number;
}

/** Walks buckets somewhere else; undefined where anything is wrong with them. Calls come one at a time. */
export type BucketWalker = (buckets: BucketRange) => Promise<IntactBuckets | undefined>;

/** Consecutive buckets: [from, to). */
export interface BucketRange {
  readonly from: number;
  readonly to: number;
}

/** Buckets that were walked and have nothing wrong, if the payload of those before them ends where theirs begins. */
export interface IntactBuckets extends BucketRange {
  /** Where their part of the payload begins and ends. */
  readonly base: number;
  readonly end: number;
  readonly recordCount: number;
}
