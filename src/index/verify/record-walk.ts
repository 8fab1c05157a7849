/** The records of an index, one bucket after the other: whether they are what a writer can have meant. */

import { bucketIsIntact, readBucketBase } from '../format/bucket.ts';
import { crc8 } from '../format/checksum.ts';
import type { Header } from '../format/header.ts';
import { hashKeyA, hashKeyB } from '../format/key-hash.ts';
import {
  BUCKET,
  BUCKET_SIZE_BYTES,
  BUCKET_SIZE_WORDS,
  bucketOfHash,
  HEADER_SIZE_BYTES,
  RECORD_MAX_BYTES,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_BUCKET,
} from '../format/layout.ts';
import type { IndexBytes } from '../read/index-bytes.ts';
import { PayloadWindows } from '../read/payload-windows.ts';
import { ImpossibleRecord, RecordDecoder } from '../read/record-decoder.ts';
import { RecordRenderer } from '../read/record-renderer.ts';
import type { RenderTables } from '../read/render-tables.ts';

const NO_TABLE = new Uint8Array(0);

/** One damaged range of bytes of the file. */
export interface Damage {
  /** In bytes from the beginning of the file. */
  readonly offset: number;
  readonly sizeBytes: number;
  readonly where: string;
  readonly what: string;
}

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

/** Walks buckets and records in order and checks what the checksums cannot: that the writer meant something possible. */
export class RecordWalk {
  readonly damages: Damage[] = [];
  recordCount = 0;
  readonly bucketCount: number;
  /** The next one to check. */
  bucket = 0;
  /** Payload bytes of the bucket checked last. */
  bucketRecordsSizeBytes = 0;
  readonly #bytes: IndexBytes;
  readonly #header: Header;
  readonly #tables: RenderTables;
  readonly #directory: Uint8Array;
  readonly #words: Uint32Array;
  readonly #payload: PayloadWindows;
  readonly #decoder: RecordDecoder;
  readonly #renderer: RecordRenderer;
  readonly #decodeEveryNthBucket: number;
  #expectedBase = 0;
  #hashA = -1;
  #hashB = -1;

  constructor(bytes: IndexBytes, header: Header, tables: RenderTables, decodeEveryNthBucket: number) {
    this.#bytes = bytes;
    this.#decodeEveryNthBucket = decodeEveryNthBucket;
    this.#header = header;
    this.bucketCount = header.bucketCount;
    this.#tables = tables;
    const { directory, payload } = header.sections;
    this.#payload = new PayloadWindows(bytes, payload.offset, payload.size);
    this.#directory = bytes.view(directory.offset, directory.size);
    this.#words = new Uint32Array(this.#directory.buffer, directory.offset, this.bucketCount * BUCKET_SIZE_WORDS);
    this.#decoder = new RecordDecoder(tables);
    this.#renderer = new RecordRenderer(tables, this.#decoder);
  }

  /** Walks these buckets only; undefined where anything is wrong with them. For a walk that has done nothing yet. */
  checkBuckets({ from, to }: BucketRange): IntactBuckets | undefined {
    const base = readBucketBase(this.#directory, from * BUCKET_SIZE_BYTES);
    this.bucket = from;
    this.#expectedBase = base;
    while (this.bucket < to && this.damages.length === 0) this.checkBucket();
    if (this.damages.length > 0) return undefined;
    return { from, to, base, end: this.#expectedBase, recordCount: this.recordCount };
  }

  /**
   * Goes on behind buckets that another walk has found intact; false where they do not follow on what this one has seen. The base is all
   * that can fail to: a record's hash says which bucket is its own, so records of intact buckets are in hash order across buckets, too.
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
    const what = this.#checkSlots(bucket) ?? this.#checkRecords(bucket);
    if (what === undefined) return;
    const offset = this.#header.sections.directory.offset + bucket * BUCKET_SIZE_BYTES;
    this.damages.push({ offset, sizeBytes: BUCKET_SIZE_BYTES, where: `bucket ${bucket}`, what });
  }

  /** What is wrong with the bucket itself; undefined when nothing is. */
  #checkSlots(bucket: number): string | undefined {
    const at = bucket * BUCKET_SIZE_BYTES;
    const directory = this.#directory;
    if (!bucketIsIntact(this.#words, bucket)) return 'its check is wrong';
    const base = readBucketBase(directory, at);
    if (base !== this.#expectedBase) return `its base is ${base}, expected ${this.#expectedBase}`;
    for (let i = directory[at + BUCKET.count.offset]!; i < SLOTS_PER_BUCKET; i++) {
      if (directory[at + BUCKET.fingerprints.offset + i] !== 0 || directory[at + BUCKET.lengths.offset + i] !== 0) {
        return 'an unused slot is not zero';
      }
    }
    return undefined;
  }

  /** Checks the records of a bucket whose slots are in order. */
  #checkRecords(bucket: number): string | undefined {
    const at = bucket * BUCKET_SIZE_BYTES;
    const directory = this.#directory;
    const { payload } = this.#header.sections;
    const base = this.#expectedBase;
    const count = directory[at + BUCKET.count.offset]!;
    const extra = Math.max(0, count - SLOTS_PER_BUCKET);
    const tableSize = extra === 0 ? 0 : 2 * extra + 1;
    if (base + tableSize > payload.size) return 'its records lie outside the payload';
    const table = extra === 0 ? NO_TABLE : this.#bytes.view(payload.offset + base, tableSize);
    if (extra > 0 && crc8(table, 0, 2 * extra) !== table[2 * extra]) return 'its overflow table is damaged';
    let offset = base + tableSize;
    for (let i = 0; i < count; i++) {
      const inBucket = i < SLOTS_PER_BUCKET;
      const fingerprint = inBucket ? directory[at + BUCKET.fingerprints.offset + i]! : table[i - SLOTS_PER_BUCKET]!;
      const code = inBucket ? directory[at + BUCKET.lengths.offset + i]! : table[extra + i - SLOTS_PER_BUCKET]!;
      const sizeBytes = SIZE_OF_LENGTH_CODE[code]!;
      if (offset + sizeBytes > payload.size) return 'its records lie outside the payload';
      const isDecoded = bucket % this.#decodeEveryNthBucket === 0;
      const what = isDecoded ? this.#checkRecord(offset, sizeBytes, bucket, fingerprint) : undefined;
      if (what !== undefined) {
        const where = `record ${this.recordCount} (bucket ${bucket})`;
        this.damages.push({ offset: payload.offset + offset, sizeBytes, where, what });
      }
      this.recordCount += 1;
      offset += sizeBytes;
    }
    this.bucketRecordsSizeBytes = offset - base;
    this.#expectedBase = offset;
    return undefined;
  }

  /** What is wrong with a record; undefined when nothing is. */
  #checkRecord(offset: number, size: number, bucket: number, fingerprint: number): string | undefined {
    if (size > RECORD_MAX_BYTES) return 'it is too long';
    const bytes = this.#payload.at(offset);
    const { start } = this.#payload;
    const last = start + size - 1;
    if (crc8(bytes, start, last) !== bytes[last]) return 'its check byte is wrong';
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
    if (answerSize > this.#tables.metadata.maxAnswerSizeBytes) {
      return `its answer has ${answerSize} bytes, more than the metadata allow`;
    }
    return undefined;
  }

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
