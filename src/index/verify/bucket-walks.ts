/** The work of a thread that walks buckets for a verification. */
import { readHeader, readTables } from '../read/checked-sections.ts';
import { sourceOfDescriptor } from '../read/index-source.ts';
import { RecordWalk } from './record-walk.ts';
import type { BucketRange, IntactBuckets, VerifySetup } from './verify-messages.ts';

/** Walks ranges of buckets of one index. */
export class BucketWalks {
  readonly #setup: VerifySetup;
  // One for all ranges, so that its buffers are not allocated again for each range.
  #walk: RecordWalk | undefined;

  /** Reads nothing yet, so that an error occurs in a call and reaches its caller. */
  constructor(setup: VerifySetup) {
    this.#setup = setup;
  }

  /** Walks these buckets. Returns undefined if it finds any damage. */
  walk(buckets: BucketRange): IntactBuckets | undefined {
    this.#walk ??= this.#open();
    return this.#walk.checkBuckets(buckets);
  }

  #open(): RecordWalk {
    const { path, descriptor, sizeBytes, decodeEveryNthBucket } = this.#setup;
    const source = sourceOfDescriptor(descriptor, path, sizeBytes);
    const header = readHeader(source);
    return new RecordWalk(source, header, readTables(source, header), decodeEveryNthBucket);
  }
}
