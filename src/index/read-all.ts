/**
 * Reads all records of an index in the order of the file. It uses read calls instead of a memory mapping: if the file is truncated
 * meanwhile, the result is an error and not a crash.
 */
import { PagegateError } from '../errors.ts';
import type { DomainRecord } from '../record/types.ts';
import { bucketIsIntact, readBucketBase } from './format/bucket.ts';
import { crc8 } from './format/checksum.ts';
import type { Section } from './format/header.ts';
import { hashKeyA, hashKeyB } from './format/key-hash.ts';
import {
  BUCKET,
  BUCKET_SIZE_BYTES,
  bucketOfHash,
  type SectionName,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_BUCKET,
} from './format/layout.ts';
import { bucketChecksum, recordSeed, saltOf } from './format/salt.ts';
import { readHeader, readTables } from './read/checked-sections.ts';
import { ChunkReader } from './read/chunk-reader.ts';
import { IndexFile } from './read/index-file.ts';
import { type IndexInfo, infoOf } from './read/index-info.ts';
import type { IndexSource } from './read/index-source.ts';
import { ImpossibleRecord, RecordDecoder, type RecordParts } from './read/record-decoder.ts';
import { RecordRenderer } from './read/record-renderer.ts';

/**
 * Opens an index file to read it from beginning to end.
 *
 * @throws PagegateError the same as `openIndex`, except mapping_failed
 */
export function openScan(path: string, options: ScanOptions = {}): IndexScan {
  const file = new IndexFile(path);
  try {
    return new IndexScan(file, () => file.close(), options);
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Options of a scan. */
export interface ScanOptions {
  /** How much of the payload is read at once. Default: one mebibyte, which is best if all records are read. */
  readonly payloadChunkBytes?: number;
}

/** Iterates over the buckets of an index, and over the records of each bucket. */
export class IndexScan {
  readonly info: IndexInfo;
  /** The sections with their offsets and sizes. */
  readonly sections: Readonly<Record<SectionName, Section>>;
  /** Number of the current bucket, and how many records it has. */
  bucket = -1;
  count = 0;
  /** Both hashes of the current record's domain. The file is sorted by them. */
  hashA = 0;
  hashB = 0;
  /** Offset of the current record in the file, and its stored size in bytes. */
  recordOffset = 0;
  recordSizeBytes = 0;
  readonly #close: () => void;
  readonly #salt: number;
  readonly #directory: ChunkReader;
  readonly #payload: ChunkReader;
  readonly #payloadSize: number;
  readonly #decoder: RecordDecoder;
  readonly #renderer: RecordRenderer;
  /** Fingerprints and length codes of the bucket's records. */
  readonly #fingerprints: Uint8Array = new Uint8Array(256);
  readonly #lengths: Uint8Array = new Uint8Array(256);
  /** Payload offset and position in the bucket of the next record. */
  #offset = 0;
  #next = 0;
  #out: Uint8Array = new Uint8Array(0);
  #outView: DataView = new DataView(this.#out.buffer);

  /** Scans a source that the caller has opened. `close` is called to close it. */
  constructor(source: IndexSource, close: () => void = () => {}, options: ScanOptions = {}) {
    const header = readHeader(source);
    const tables = readTables(source, header);
    const { dictionary, directory, payload, metadata } = header.sections;
    this.info = infoOf(source, header, tables.metadata);
    this.sections = header.sections;
    this.#close = close;
    this.#salt = saltOf(dictionary.checksum, metadata.checksum);
    this.#directory = new ChunkReader(source, directory);
    this.#payload = new ChunkReader(source, payload, options.payloadChunkBytes);
    this.#payloadSize = payload.size;
    this.#decoder = new RecordDecoder(tables);
    this.#renderer = new RecordRenderer(tables, this.#decoder);
  }

  /**
   * Advances to the next bucket, before its first record. Returns false after the last one.
   *
   * @throws PagegateError record_corrupt, index_changed
   */
  nextBucket(): boolean {
    if (this.bucket + 1 >= this.info.bucketCount) return false;
    this.bucket += 1;
    const reader = this.#directory;
    const bytes = reader.at(this.bucket * BUCKET_SIZE_BYTES, BUCKET_SIZE_BYTES);
    const at = reader.start;
    if (!bucketIsIntact(reader.words, at / 4, bucketChecksum(this.#salt, this.bucket))) this.#failBucket();
    const count = bytes[at + BUCKET.count.offset]!;
    const extra = Math.max(0, count - SLOTS_PER_BUCKET);
    for (let i = 0; i < count - extra; i++) {
      this.#fingerprints[i] = bytes[at + BUCKET.fingerprints.offset + i]!;
      this.#lengths[i] = bytes[at + BUCKET.lengths.offset + i]!;
    }
    this.count = count;
    this.#offset = readBucketBase(bytes, at);
    this.#next = 0;
    if (extra > 0) this.#readOverflow(extra);
    return true;
  }

  #readOverflow(extra: number): void {
    const tableSize = 2 * extra + 1;
    if (this.#offset + tableSize > this.#payloadSize) this.#failBucket();
    const table = this.#payload.at(this.#offset, tableSize);
    const { start } = this.#payload;
    const crc = crc8(table, start, start + 2 * extra, recordSeed(this.#salt, this.bucket, 0));
    if (crc !== table[start + 2 * extra]) this.#failBucket();
    for (let i = 0; i < extra; i++) {
      this.#fingerprints[SLOTS_PER_BUCKET + i] = table[start + i]!;
      this.#lengths[SLOTS_PER_BUCKET + i] = table[start + extra + i]!;
    }
    this.#offset += tableSize;
  }

  /**
   * Advances to the next record of the bucket. Returns false after the last one.
   *
   * @throws PagegateError record_corrupt, index_changed
   */
  nextRecord(): boolean {
    if (this.#next >= this.count) return false;
    const offset = this.#offset;
    const size = SIZE_OF_LENGTH_CODE[this.#lengths[this.#next]!]!;
    if (offset + size > this.#payloadSize) this.#failRecord(offset, 'it lies outside the payload');
    const bytes = this.#payload.at(offset, size);
    const { start } = this.#payload;
    const last = start + size - 1;
    const seed = recordSeed(this.#salt, this.bucket, this.#fingerprints[this.#next]!);
    if (crc8(bytes, start, last, seed) !== bytes[last]) this.#failRecord(offset, 'its CRC-8 is wrong');
    try {
      this.#decoder.parse(bytes, start, last);
    } catch (error) {
      if (error instanceof ImpossibleRecord) this.#failRecord(offset, error.message);
      throw error;
    }
    const { domain, domainSize } = this.#decoder;
    this.hashA = hashKeyA(domain, 0, domainSize);
    this.hashB = hashKeyB(domain, 0, domainSize);
    const isInPlace =
      bucketOfHash(this.hashA, this.info.bucketCount) === this.bucket &&
      (this.hashB & 0xff) === this.#fingerprints[this.#next];
    if (!isInPlace) this.#failRecord(offset, 'its domain belongs in another slot');
    this.recordOffset = this.sections.payload.offset + offset;
    this.recordSizeBytes = size;
    this.#next += 1;
    this.#offset = offset + size;
    return true;
  }

  /** The record's domain. */
  get domain(): string {
    return this.#renderer.domainText();
  }

  /** Sizes of the record's parts in bytes, without the CRC-8. */
  get parts(): RecordParts {
    return { ...this.#decoder.parts };
  }

  get pageCount(): number {
    return this.#decoder.pageCount;
  }

  /** Size of the record's answer (head and tail) as JSON, in bytes. */
  get answerSizeBytes(): number {
    return this.#renderer.answerSize();
  }

  /** Returns the record as an object. */
  decode(): DomainRecord {
    return this.#renderer.toObject();
  }

  /** Writes the record as an entry of a drop, without a line end, and returns its end. `out` needs space for `info.maxAnswerSizeBytes`. */
  writeEntry(out: Uint8Array, at: number): number {
    // Callers reuse the same buffer, so keep its view.
    if (out !== this.#out) {
      this.#out = out;
      this.#outView = new DataView(out.buffer, out.byteOffset, out.byteLength);
    }
    try {
      return this.#renderer.writeEntry(this.#outView, at);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return this.#failRecord(this.#offset, 'it is longer than the metadata say');
    }
  }

  /** Closes the source. Safe to call twice. */
  close(): void {
    this.#close();
  }

  #failBucket(): never {
    const { bucket, info } = this;
    const { path } = info;
    throw new PagegateError('record_corrupt', `Bucket ${bucket} of the directory is damaged.`, { path, bucket });
  }

  #failRecord(offset: number, what: string): never {
    const { path } = this.info;
    throw new PagegateError('record_corrupt', `The record at payload offset ${offset}: ${what}.`, { path, offset });
  }
}
