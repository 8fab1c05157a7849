/** What a thread does that walks buckets for a verification. */
import { readHeader, readTables } from '../read/checked-sections.ts';
import { sourceOfDescriptor } from '../read/index-source.ts';
import { RecordWalk } from './record-walk.ts';
import type { BucketRange, IntactBuckets, VerifySetup } from './verify-messages.ts';

/** Walks ranges of buckets of one index. */
export class BucketWalks {
  readonly #setup: VerifySetup;
  // One for all ranges: its buffers would otherwise be allocated for each, and wait for the garbage collector.
  #walk: RecordWalk | undefined;

  /** Reads nothing yet: what fails in a call goes to the caller by its name. */
  constructor(setup: VerifySetup) {
    this.#setup = setup;
  }

  /** Walks these buckets; undefined where anything is wrong with them. */
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
