/** Checks the records of an index, bucket by bucket: whether a writer can have written them. */
import { bucketIsIntact, readBucketBase } from '../format/bucket.ts';
import { crc8 } from '../format/checksum.ts';
import type { Header } from '../format/header.ts';
import { hashKeyA, hashKeyB } from '../format/key-hash.ts';
import {
  BUCKET,
  BUCKET_SIZE_BYTES,
  bucketOfHash,
  HEADER_SIZE_BYTES,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_BUCKET,
} from '../format/layout.ts';
import { bucketChecksum, recordSeed, saltOf } from '../format/salt.ts';
import { ChunkReader } from '../read/chunk-reader.ts';
import type { IndexSource } from '../read/index-source.ts';
import { ImpossibleRecord, RecordDecoder } from '../read/record-decoder.ts';
import { RecordRenderer } from '../read/record-renderer.ts';
import type { RenderTables } from '../read/render-tables.ts';
import type { BucketRange, IntactBuckets } from './verify-messages.ts';

/** A damaged range of bytes of the file. */
export interface Damage {
  /** Offset in the file. */
  readonly offset: number;
  readonly sizeBytes: number;
  readonly where: string;
  readonly what: string;
}

/** Walks buckets and records in order. Besides checksums, it checks that their structure and contents are valid. */
export class RecordWalk {
  readonly damages: Damage[] = [];
  recordCount = 0;
  readonly bucketCount: number;
  /** Number of the next bucket to check. */
  bucket = 0;
  /** Size of the payload of the last bucket checked, in bytes. */
  bucketRecordsSizeBytes = 0;
  readonly #header: Header;
  readonly #salt: number;
  readonly #maxAnswerSizeBytes: number;
  readonly #directory: ChunkReader;
  readonly #payload: ChunkReader;
  readonly #decoder: RecordDecoder;
  readonly #renderer: RecordRenderer;
  readonly #decodeEveryNthBucket: number;
  /** Fingerprints and length codes of the bucket's records, including those without a slot. */
  readonly #fingerprints: Uint8Array = new Uint8Array(256);
  readonly #lengths: Uint8Array = new Uint8Array(256);
  #expectedBase = 0;
  #hashA = -1;
  #hashB = -1;

  /** Walks an index whose header and small sections have been read. Begins with the first bucket. */
  constructor(source: IndexSource, header: Header, tables: RenderTables, decodeEveryNthBucket: number) {
    const { dictionary, directory, payload, metadata } = header.sections;
    this.#decodeEveryNthBucket = decodeEveryNthBucket;
    this.#header = header;
    this.bucketCount = header.bucketCount;
    this.#salt = saltOf(dictionary.checksum, metadata.checksum);
    this.#maxAnswerSizeBytes = tables.metadata.maxAnswerSizeBytes;
    this.#directory = new ChunkReader(source, directory);
    this.#payload = new ChunkReader(source, payload);
    this.#decoder = new RecordDecoder(tables);
    this.#renderer = new RecordRenderer(tables, this.#decoder);
  }

  /** Walks only these buckets, independent of earlier calls. Returns undefined if it finds any damage. */
  checkBuckets({ from, to }: BucketRange): IntactBuckets | undefined {
    this.damages.length = 0;
    this.recordCount = 0;
    this.#hashA = -1;
    this.#hashB = -1;
    const base = readBucketBase(this.#directory.at(from * BUCKET_SIZE_BYTES, BUCKET_SIZE_BYTES), this.#directory.start);
    this.bucket = from;
    this.#expectedBase = base;
    while (this.bucket < to && this.damages.length === 0) this.checkBucket();
    if (this.damages.length > 0) return undefined;
    return { from, to, base, end: this.#expectedBase, recordCount: this.recordCount };
  }

  /**
   * Skips buckets that another walk has found intact. Returns false if they do not begin where this walk is. It is enough to compare the
   * base: hashes determine the bucket of a record, so the records of intact buckets are also in hash order across buckets.
   */
  skip({ from, to, base, end, recordCount }: IntactBuckets): boolean {
    if (from !== this.bucket || base !== this.#expectedBase) return false;
    this.bucket = to;
    this.#expectedBase = end;
    this.recordCount += recordCount;
    return true;
  }

  /** Checks the next bucket and its records. */
  checkBucket(): void {
    const { bucket } = this;
    this.bucket += 1;
    this.bucketRecordsSizeBytes = 0;
    const what = this.#checkRecordsOf(bucket);
    if (what === undefined) return;
    const offset = this.#header.sections.directory.offset + bucket * BUCKET_SIZE_BYTES;
    this.damages.push({ offset, sizeBytes: BUCKET_SIZE_BYTES, where: `bucket ${bucket}`, what });
  }

  /** Returns the problem of the bucket itself, if any. Problems of its records are added to the damages. */
  #checkRecordsOf(bucket: number): string | undefined {
    const directory = this.#directory.at(bucket * BUCKET_SIZE_BYTES, BUCKET_SIZE_BYTES);
    const at = this.#directory.start;
    if (!bucketIsIntact(this.#directory.words, at / 4, bucketChecksum(this.#salt, bucket)))
      return 'its checksum is wrong';
    const base = readBucketBase(directory, at);
    if (base !== this.#expectedBase) return `its base is ${base}, expected ${this.#expectedBase}`;
    const count = directory[at + BUCKET.count.offset]!;
    for (let i = 0; i < SLOTS_PER_BUCKET; i++) {
      this.#fingerprints[i] = directory[at + BUCKET.fingerprints.offset + i]!;
      this.#lengths[i] = directory[at + BUCKET.lengths.offset + i]!;
      if (i >= count && (this.#fingerprints[i] !== 0 || this.#lengths[i] !== 0)) return 'an unused slot is not zero';
    }
    const { payload } = this.#header.sections;
    const extra = Math.max(0, count - SLOTS_PER_BUCKET);
    const tableSize = extra === 0 ? 0 : 2 * extra + 1;
    if (base + tableSize > payload.size) return 'its records lie outside the payload';
    if (extra > 0 && !this.#readOverflow(bucket, base, extra)) return 'its overflow table is damaged';
    return this.#checkRecords(bucket, base + tableSize, count);
  }

  #readOverflow(bucket: number, base: number, extra: number): boolean {
    const table = this.#payload.at(base, 2 * extra + 1);
    const { start } = this.#payload;
    if (crc8(table, start, start + 2 * extra, recordSeed(this.#salt, bucket, 0)) !== table[start + 2 * extra])
      return false;
    for (let i = 0; i < extra; i++) {
      this.#fingerprints[SLOTS_PER_BUCKET + i] = table[start + i]!;
      this.#lengths[SLOTS_PER_BUCKET + i] = table[start + extra + i]!;
    }
    return true;
  }

  /** Checks the records of a bucket whose slots are valid. The first record is at payload offset `start`. */
  #checkRecords(bucket: number, start: number, count: number): string | undefined {
    const { payload } = this.#header.sections;
    const isDecoded = bucket % this.#decodeEveryNthBucket === 0;
    let offset = start;
    for (let i = 0; i < count; i++) {
      const sizeBytes = SIZE_OF_LENGTH_CODE[this.#lengths[i]!]!;
      if (offset + sizeBytes > payload.size) return 'its records lie outside the payload';
      const what = isDecoded ? this.#checkRecord(offset, sizeBytes, bucket, this.#fingerprints[i]!) : undefined;
      if (what !== undefined) {
        const where = `record ${this.recordCount} (bucket ${bucket})`;
        this.damages.push({ offset: payload.offset + offset, sizeBytes, where, what });
      }
      this.recordCount += 1;
      offset += sizeBytes;
    }
    this.bucketRecordsSizeBytes = offset - this.#expectedBase;
    this.#expectedBase = offset;
    return undefined;
  }

  /** Returns the problem of a record, if any. */
  #checkRecord(offset: number, size: number, bucket: number, fingerprint: number): string | undefined {
    const bytes = this.#payload.at(offset, size);
    const { start } = this.#payload;
    const last = start + size - 1;
    if (crc8(bytes, start, last, recordSeed(this.#salt, bucket, fingerprint)) !== bytes[last])
      return 'its CRC-8 is wrong';
    const decoder = this.#decoder;
    try {
      decoder.parse(bytes, start, last);
    } catch (error) {
      if (error instanceof ImpossibleRecord) return error.message;
      throw error;
    }
    const hashA = hashKeyA(decoder.domain, 0, decoder.domainSize);
    const hashB = hashKeyB(decoder.domain, 0, decoder.domainSize);
    if (bucketOfHash(hashA, this.bucketCount) !== bucket) return 'its domain belongs in another bucket';
    if ((hashB & 0xff) !== fingerprint) return 'its fingerprint is not that of its domain';
    if (hashA < this.#hashA || (hashA === this.#hashA && hashB < this.#hashB)) return 'it is not in hash order';
    this.#hashA = hashA;
    this.#hashB = hashB;
    const answerSize = this.#renderer.answerSize();
    if (answerSize > this.#maxAnswerSizeBytes) {
      return `its answer has ${answerSize} bytes, more than the metadata allow`;
    }
    return undefined;
  }

  /** Compares the totals with the header. Call after the last bucket. */
  checkEnd(): void {
    if (this.damages.length > 0) return;
    const { payload } = this.#header.sections;
    if (this.#expectedBase !== payload.size) {
      const sizeBytes = payload.size - this.#expectedBase;
      this.damages.push({
        offset: payload.offset + this.#expectedBase,
        sizeBytes,
        where: 'payload',
        what: 'no bucket refers to these bytes',
      });
    }
    if (this.recordCount !== this.#header.recordCount) {
      const what = `it says ${this.#header.recordCount} records, there are ${this.recordCount}`;
      this.damages.push({ offset: 0, sizeBytes: HEADER_SIZE_BYTES, where: 'header', what });
    }
  }
}
