/** What a thread does that walks buckets for a verification. */
import { readHeader, readTables } from '../read/checked-sections.ts';
import { sourceOfDescriptor } from '../read/index-source.ts';
import type { RenderTables } from '../read/render-tables.ts';
import { RecordWalk } from './record-walk.ts';
import type { BucketRange, IntactBuckets, VerifySetup } from './verify-messages.ts';

/** Walks ranges of buckets of one index. */
export class BucketWalks {
  readonly #setup: VerifySetup;
  #tables: RenderTables | undefined;

  /** Reads nothing yet: what fails in a call goes to the caller by its name. */
  constructor(setup: VerifySetup) {
    this.#setup = setup;
  }

  /** Walks these buckets; undefined where anything is wrong with them. */
  walk(buckets: BucketRange): IntactBuckets | undefined {
    const { path, descriptor, sizeBytes, decodeEveryNthBucket } = this.#setup;
    const source = sourceOfDescriptor(descriptor, path, sizeBytes);
    const header = readHeader(source);
    this.#tables ??= readTables(source, header);
    return new RecordWalk(source, header, this.#tables, decodeEveryNthBucket).checkBuckets(buckets);
  }
}
