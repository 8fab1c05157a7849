/**
 * A run of buckets with their records, built independently of the rest of the index: bases are relative to the run's own payload until the
 * writer appends the run. So several threads can build runs, which are appended in order. The bytes do not depend on the number of threads.
 */
import { PagegateError } from '../../errors.ts';
import { writeBucketBase } from '../format/bucket.ts';
import { crc8 } from '../format/checksum.ts';
import {
  BUCKET,
  BUCKET_SIZE_BYTES,
  bucketOfHash,
  lengthCodeOf,
  RECORDS_PER_BUCKET_MAX,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_BUCKET,
} from '../format/layout.ts';
import { recordSeed } from '../format/salt.ts';

/** A finished run, ready for the writer. Cheap to pass between threads: transfer both buffers. */
export interface BucketRun {
  readonly firstBucket: number;
  /** 64 bytes for each bucket. Bases are relative to `payload`; checksums are not set yet. */
  readonly buckets: Uint8Array;
  readonly payload: Uint8Array;
  readonly recordCount: number;
}

/** The range of buckets of a run, [firstBucket, endBucket), and the index that they belong to. */
export interface BucketRunPlan {
  readonly firstBucket: number;
  readonly endBucket: number;
  /** Number of buckets of the index. */
  readonly bucketCount: number;
  /** Salt of the index, see `IndexWriter`. */
  readonly salt: number;
}

/** Builds a run from the records of its buckets, which are added in hash order. */
export class BucketRunBuilder {
  readonly #firstBucket: number;
  readonly #endBucket: number;
  readonly #bucketCount: number;
  readonly #salt: number;
  readonly #buckets: Uint8Array;
  #payload: Uint8Array;
  #size = 0;
  #recordCount = 0;
  #hashA = -1;
  #hashB = -1;
  /** Payload offset of the previous record. */
  #recordAt = -1;
  #bucket: number;
  #bucketStart = 0;
  #bucketRecords = 0;
  // Fingerprints and length codes of the current bucket, including records without a slot.
  readonly #fingerprints: Uint8Array = new Uint8Array(RECORDS_PER_BUCKET_MAX);
  readonly #lengths: Uint8Array = new Uint8Array(RECORDS_PER_BUCKET_MAX);

  /** @param payloadSizeHint initial size of the payload buffer, in bytes; the buffer grows as needed */
  constructor({ firstBucket, endBucket, bucketCount, salt }: BucketRunPlan, payloadSizeHint: number = 1 << 16) {
    this.#salt = salt;
    this.#firstBucket = firstBucket;
    this.#endBucket = endBucket;
    this.#bucketCount = bucketCount;
    this.#bucket = firstBucket;
    this.#buckets = new Uint8Array((endBucket - firstBucket) * BUCKET_SIZE_BYTES);
    this.#payload = new Uint8Array(payloadSizeHint);
  }

  /**
   * Adds the record `bytes[start, end)`, as the encoder returned it. Records must come in the order of hashA, hashB, and the bytes of the
   * encoded domain. No domain may come twice.
   *
   * @throws PagegateError index_out_of_order
   * @throws PagegateError index_limit if a bucket gets more than 255 records, or if a record is too long
   */
  add(hashA: number, hashB: number, bytes: Uint8Array, start: number, end: number): void {
    this.#checkOrder(hashA, hashB, bytes, start);
    const bucket = bucketOfHash(hashA, this.#bucketCount);
    if (bucket < this.#firstBucket || bucket >= this.#endBucket) {
      throw new PagegateError(
        'index_out_of_order',
        `Bucket ${bucket} is not in [${this.#firstBucket}, ${this.#endBucket}).`,
      );
    }
    while (this.#bucket < bucket) this.#closeBucket();
    if (this.#bucketRecords === RECORDS_PER_BUCKET_MAX) {
      throw new PagegateError(
        'index_limit',
        `More than ${RECORDS_PER_BUCKET_MAX} records fall into bucket ${bucket}.`,
        {
          bucket,
        },
      );
    }
    // The CRC-8 takes one byte.
    const code = lengthCodeOf(end - start + 1);
    if (code < 0) throw new PagegateError('index_limit', `A record has ${end - start} bytes.`);
    const size = SIZE_OF_LENGTH_CODE[code]!;
    this.#reserve(size);
    const payload = this.#payload;
    const at = this.#size;
    for (let i = start, to = at; i < end; i++, to++) payload[to] = bytes[i]!;
    // The padding is zero, because these bytes were never written.
    payload[at + size - 1] = crc8(payload, at, at + size - 1, recordSeed(this.#salt, bucket, hashB & 0xff));
    this.#fingerprints[this.#bucketRecords] = hashB & 0xff;
    this.#lengths[this.#bucketRecords] = code;
    this.#bucketRecords += 1;
    this.#recordCount += 1;
    this.#recordAt = at;
    this.#size = at + size;
    this.#hashA = hashA;
    this.#hashB = hashB;
  }

  /** Returns the run. The builder must not be used afterwards. */
  finish(): BucketRun {
    while (this.#bucket < this.#endBucket) this.#closeBucket();
    return {
      firstBucket: this.#firstBucket,
      buckets: this.#buckets,
      payload: this.#payload.subarray(0, this.#size),
      recordCount: this.#recordCount,
    };
  }

  #checkOrder(hashA: number, hashB: number, bytes: Uint8Array, start: number): void {
    if (hashA > this.#hashA) return;
    if (hashA === this.#hashA && hashB > this.#hashB) return;
    // An overflow table moves the last record only when its bucket is closed, and the next record then has a larger hashA.
    if (
      hashA === this.#hashA &&
      hashB === this.#hashB &&
      compareDomains(this.#payload, this.#recordAt, bytes, start) < 0
    )
      return;
    throw new PagegateError(
      'index_out_of_order',
      `Hash ${hashA}/${hashB} came after ${this.#hashA}/${this.#hashB} (equal hashes: the same domain twice, or domains out of order).`,
    );
  }

  #closeBucket(): void {
    const count = this.#bucketRecords;
    const at = (this.#bucket - this.#firstBucket) * BUCKET_SIZE_BYTES;
    const inBucket = Math.min(count, SLOTS_PER_BUCKET);
    if (count > SLOTS_PER_BUCKET) this.#writeOverflow(count - SLOTS_PER_BUCKET);
    this.#buckets[at + BUCKET.count.offset] = count;
    for (let i = 0; i < inBucket; i++) {
      this.#buckets[at + BUCKET.fingerprints.offset + i] = this.#fingerprints[i]!;
      this.#buckets[at + BUCKET.lengths.offset + i] = this.#lengths[i]!;
    }
    writeBucketBase(this.#buckets, at, this.#bucketStart);
    this.#bucket += 1;
    this.#bucketStart = this.#size;
    this.#bucketRecords = 0;
  }

  /** Moves the bucket's records to make space, and writes the overflow table before them. */
  #writeOverflow(extra: number): void {
    const tableSize = 2 * extra + 1;
    this.#reserve(tableSize);
    const payload = this.#payload;
    const at = this.#bucketStart;
    payload.copyWithin(at + tableSize, at, this.#size);
    payload.set(this.#fingerprints.subarray(SLOTS_PER_BUCKET, SLOTS_PER_BUCKET + extra), at);
    payload.set(this.#lengths.subarray(SLOTS_PER_BUCKET, SLOTS_PER_BUCKET + extra), at + extra);
    payload[at + 2 * extra] = crc8(payload, at, at + 2 * extra, recordSeed(this.#salt, this.#bucket, 0));
    this.#size += tableSize;
    this.#recordAt += tableSize;
  }

  #reserve(sizeBytes: number): void {
    if (this.#size + sizeBytes <= this.#payload.length) return;
    const larger = new Uint8Array(Math.max(this.#payload.length * 1.5, this.#size + sizeBytes) | 0);
    larger.set(this.#payload.subarray(0, this.#size));
    this.#payload = larger;
  }
}

/** Compares the encoded domains of two records, which begin at `aStart` and `bStart`. */
export function compareDomains(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number): number {
  const aSize = a[aStart]!;
  const bSize = b[bStart]!;
  for (let i = 1; i <= aSize && i <= bSize; i++) {
    const difference = a[aStart + i]! - b[bStart + i]!;
    if (difference !== 0) return difference;
  }
  return aSize - bSize;
}
