/**
 * Looks up keys in an index. A miss reads one bucket of the directory, a hit that bucket and the record. Whatever is read is checked
 * first: the bucket's check, the bounds of the record, the record's check, and (before anything is rendered) its whole structure.
 */

import { COPY_SLACK_BYTES } from '../bytes/json-pieces.ts';
import { PagegateError } from '../errors.ts';
import type { DomainRecord, PageUrl } from '../record/types.ts';
import { bucketBase, bucketIsIntact, slotOfLowestBit, slotsWithFingerprint } from './format/bucket.ts';
import { crc8 } from './format/checksum.ts';
import { type Header, readHeader, type Section } from './format/header.ts';
import { HashedKey, hashKeyA, hashKeyB } from './format/key-hash.ts';
import {
  BUCKET,
  BUCKET_SIZE_BYTES,
  BUCKET_SIZE_WORDS,
  bucketOfHash,
  type SectionName,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_BUCKET,
} from './format/layout.ts';
import type { Metadata } from './format/metadata.ts';
import type { SymbolTable } from './format/symbol-table.ts';
import type { IndexBytes } from './read/index-bytes.ts';
import { openMappedFile } from './read/mapped-file.ts';
import { PayloadWindows } from './read/payload-windows.ts';
import { readTables } from './read/read-tables.ts';
import { ImpossibleRecord, RecordDecoder, type RecordParts } from './read/record-decoder.ts';
import { RecordRenderer } from './read/record-renderer.ts';
import type { RenderTables } from './read/render-tables.ts';

/** What `find` returns for a key that the index does not have. */
export const NOT_FOUND = -1;
/** A record of one index: where it begins in the payload × 256 + its length code. Only good for the index that gave it. */
export type RecordHandle = number;

/** What an index says about itself. */
export interface IndexInfo extends Metadata {
  readonly path: string;
  /** Format version, `major.minor`. */
  readonly formatVersion: string;
  readonly recordCount: number;
  readonly bucketCount: number;
  readonly sizeBytes: number;
}

/** Opens an index: checks the file, its header and the small sections, which takes the same time whatever the number of records. */
export function openIndex(path: string): Index {
  const bytes = openMappedFile(path);
  try {
    const index = openIndexBytes(bytes);
    bytes.adviseRandom();
    return index;
  } catch (error) {
    bytes.close();
    throw error;
  }
}

/** The same over bytes that somebody else opened. */
export function openIndexBytes(bytes: IndexBytes): Index {
  const header = readHeader(bytes);
  return new Index(bytes, header, readTables(bytes, header));
}

/** An open index. Not shared between threads: each opens its own, which costs milliseconds and no memory. */
export class Index {
  readonly info: IndexInfo;
  readonly #bytes: IndexBytes;
  readonly #sections: Readonly<Record<SectionName, Section>>;
  readonly #bucketCount: number;
  readonly #payloadSize: number;
  #directory: Uint8Array;
  #words: Uint32Array;
  #payload: PayloadWindows;
  readonly #domainSymbols: SymbolTable;
  readonly #key = new HashedKey();
  readonly #decoder: RecordDecoder;
  readonly #renderer: RecordRenderer;
  /** The record that the decoder holds. */
  #parsed: RecordHandle = NOT_FOUND;
  #out: Uint8Array = new Uint8Array(0);
  #outView: DataView = new DataView(this.#out.buffer);
  #isOpen = true;

  constructor(bytes: IndexBytes, header: Header, tables: RenderTables) {
    const { directory, payload } = header.sections;
    this.info = {
      ...tables.metadata,
      maxAnswerSizeBytes: tables.metadata.maxAnswerSizeBytes + COPY_SLACK_BYTES,
      path: bytes.path,
      formatVersion: `${header.major}.${header.minor}`,
      recordCount: header.recordCount,
      bucketCount: header.bucketCount,
      sizeBytes: bytes.sizeBytes,
    };
    this.#bytes = bytes;
    this.#sections = header.sections;
    this.#bucketCount = header.bucketCount;
    this.#payloadSize = payload.size;
    this.#directory = bytes.view(directory.offset, directory.size);
    this.#words = new Uint32Array(
      this.#directory.buffer,
      this.#directory.byteOffset,
      header.bucketCount * BUCKET_SIZE_WORDS,
    );
    this.#payload = new PayloadWindows(bytes, payload.offset, payload.size);
    this.#domainSymbols = tables.dictionary.domainSymbols;
    this.#decoder = new RecordDecoder(tables);
    this.#renderer = new RecordRenderer(tables, this.#decoder);
  }

  /** The record of a key (a canonical domain), or NOT_FOUND. Throws record_corrupt where what it has to read is damaged. */
  find(key: string): RecordHandle {
    const hashed = this.#key;
    if (!hashed.set(key)) return NOT_FOUND;
    const bucket = bucketOfHash(hashed.hashA(), this.#bucketCount) | 0;
    if (!bucketIsIntact(this.#words, bucket)) this.#failBucket(bucket);
    const count = this.#directory[bucket * BUCKET_SIZE_BYTES + BUCKET.count.offset]!;
    // Only now: computed while the bucket is on its way from memory.
    const fingerprint = hashed.hashB() & 0xff;
    let candidates = slotsWithFingerprint(this.#words, bucket, fingerprint);
    while (candidates !== 0) {
      const slot = slotOfLowestBit(candidates);
      candidates &= candidates - 1;
      if (slot >= count || this.#directory[bucket * BUCKET_SIZE_BYTES + slot] !== fingerprint) continue;
      const offset = this.#offsetOfSlot(bucket, count, slot);
      const code = this.#directory[bucket * BUCKET_SIZE_BYTES + BUCKET.lengths.offset + slot]!;
      if (this.#holdsKey(offset, code)) return offset * 256 + code;
    }
    return count > SLOTS_PER_BUCKET ? this.#findOverflowing(bucket, count, fingerprint) : NOT_FOUND;
  }

  #offsetOfSlot(bucket: number, count: number, slot: number): number {
    const directory = this.#directory;
    const lengths = bucket * BUCKET_SIZE_BYTES + BUCKET.lengths.offset;
    let size = count > SLOTS_PER_BUCKET ? 2 * (count - SLOTS_PER_BUCKET) + 1 : 0;
    const sizes = SIZE_OF_LENGTH_CODE;
    for (let i = 0; i < slot; i++) size += sizes[directory[lengths + i]!]!;
    return bucketBase(this.#words, directory, bucket) + size;
  }

  /** Searches the records of a bucket that have no slot in it: their fingerprints and length codes precede the bucket's records. */
  #findOverflowing(bucket: number, count: number, fingerprint: number): RecordHandle {
    const extra = count - SLOTS_PER_BUCKET;
    const directory = this.#directory;
    const at = bucket * BUCKET_SIZE_BYTES;
    const base = bucketBase(this.#words, directory, bucket);
    const tableSize = 2 * extra + 1;
    if (base + tableSize > this.#payloadSize) this.#failBucket(bucket);
    const table = this.#payload.at(base);
    const start = this.#payload.start;
    if (crc8(table, start, start + 2 * extra) !== table[start + 2 * extra]) this.#failBucket(bucket);
    let offset = base + tableSize;
    for (let i = 0; i < SLOTS_PER_BUCKET; i++)
      offset += SIZE_OF_LENGTH_CODE[directory[at + BUCKET.lengths.offset + i]!]!;
    for (let i = 0; i < extra; i++) {
      const code = table[start + extra + i]!;
      if (table[start + i] === fingerprint && this.#holdsKey(offset, code)) return offset * 256 + code;
      offset += SIZE_OF_LENGTH_CODE[code]!;
    }
    return NOT_FOUND;
  }

  /**
   * Whether the record is that of the key. Where it is, its domain was compared byte by byte, and `#parse` looks at its check before anything
   * else of it is used; where it is not, its check is looked at here, so that damage is never a "not found".
   */
  #holdsKey(offset: number, code: number): boolean {
    const size = SIZE_OF_LENGTH_CODE[code]!;
    if (offset + size > this.#payloadSize) this.#failRecord(offset, 'it lies outside the payload');
    const bytes = this.#payload.at(offset);
    // As an integer, and with it all that is computed from it below.
    const start = this.#payload.start | 0;
    const codesEnd = start + 1 + bytes[start]!;
    if (codesEnd >= start + size) this.#failRecord(offset, 'its domain does not fit');
    const { words, masks, lengths } = this.#domainSymbols;
    const { view, key } = this.#key;
    let isSame = this.#key.isAscii;
    let at = 0;
    for (let read = start + 1; read < codesEnd; read++) {
      const code = bytes[read]!;
      // Cut to 64 bits at each step, so that it is one machine instruction and no BigInt is made.
      const difference = BigInt.asIntN(64, view.getBigInt64(at, true) ^ words[code]!);
      if (BigInt.asIntN(64, difference & masks[code]!) !== 0n) isSame = false;
      const symbolSize = lengths[code]!;
      // A symbol that does not exist has no bytes and would match anything.
      if (symbolSize === 0) this.#failRecord(offset, 'its domain has an unknown symbol');
      at += symbolSize;
    }
    if (isSame && at === key.length) return true;
    this.#checkRecord(bytes, offset, start, size);
    return false;
  }

  #checkRecord(bytes: Uint8Array, offset: number, start: number, size: number): void {
    const last = start + size - 1;
    if (crc8(bytes, start, last) !== bytes[last]) this.#failRecord(offset, 'its check byte is wrong');
  }

  /** Parses a record, unless it is the one that was parsed last. */
  #parse(handle: RecordHandle): RecordRenderer {
    if (handle === this.#parsed) return this.#renderer;
    this.#parsed = NOT_FOUND;
    if (!this.#isOpen) throw new PagegateError('index_closed');
    const offset = Math.floor(handle / 256);
    const size = SIZE_OF_LENGTH_CODE[handle - offset * 256]!;
    if (!(offset >= 0) || offset + size > this.#payloadSize) this.#failRecord(offset, 'it lies outside the payload');
    const bytes = this.#payload.at(offset);
    const start = this.#payload.start;
    this.#checkRecord(bytes, offset, start, size);
    try {
      this.#decoder.parse(bytes, start, start + size - 1);
    } catch (error) {
      if (error instanceof ImpossibleRecord) this.#failRecord(offset, error.message);
      throw error;
    }
    this.#parsed = handle;
    return this.#renderer;
  }

  /** The whole record as an object. */
  decode(handle: RecordHandle): DomainRecord {
    return this.#parse(handle).toObject();
  }

  /** The record's pages, in vocabulary order. */
  pageUrls(handle: RecordHandle): readonly PageUrl[] {
    return this.#parse(handle).pageUrls();
  }

  /** The names of the record's filtering categories; empty when there are none. */
  filteringCategories(handle: RecordHandle): readonly string[] {
    return this.#parse(handle).filteringCategories();
  }

  /**
   * Writes the answer's first part as JSON bytes: `{"domain":"…","found":true[,"language":"…"],"page_types":{…}`. Returns where it ends.
   * `out` needs `info.maxAnswerSizeBytes` for head and tail together; up to seven bytes behind what is written are overwritten too.
   */
  writeHead(handle: RecordHandle, out: Uint8Array, at: number): number {
    return this.#write('writeHead', handle, out, at);
  }

  /** Writes the answer's last part: `[,"iab_category":…][,"filtering_categories":…][,"open_page_rank":…][,"global_rank":…]}`. */
  writeTail(handle: RecordHandle, out: Uint8Array, at: number): number {
    return this.#write('writeTail', handle, out, at);
  }

  /** Writes the record as an entry of a drop, without a line end; returns where it ends. */
  writeEntry(handle: RecordHandle, out: Uint8Array, at: number): number {
    return this.#write('writeEntry', handle, out, at);
  }

  /** Sizes of the record's parts in bytes, the check not counted. */
  partsOf(handle: RecordHandle): RecordParts {
    this.#parse(handle);
    return { ...this.#decoder.parts };
  }

  /** Size of the record's answer, head and tail together. */
  answerSizeOf(handle: RecordHandle): number {
    return this.#parse(handle).answerSize();
  }

  pageCountOf(handle: RecordHandle): number {
    this.#parse(handle);
    return this.#decoder.pageCount;
  }

  /** Both hashes of a record's domain: the order of the file. */
  hashesOf(handle: RecordHandle): { readonly hashA: number; readonly hashB: number } {
    this.#parse(handle);
    const { domain, domainSize } = this.#decoder;
    return { hashA: hashKeyA(domain, 0, domainSize), hashB: hashKeyB(domain, 0, domainSize) };
  }

  domainOf(handle: RecordHandle): string {
    return this.#parse(handle).domainText();
  }

  /** Number of records in a bucket. Throws record_corrupt. */
  countOfBucket(bucket: number): number {
    if (!bucketIsIntact(this.#words, bucket)) this.#failBucket(bucket);
    return this.#directory[bucket * BUCKET_SIZE_BYTES + BUCKET.count.offset]!;
  }

  /** The sections and where they lie. */
  sections(): Readonly<Record<SectionName, Section>> {
    return this.#sections;
  }

  #write(part: 'writeHead' | 'writeTail' | 'writeEntry', handle: RecordHandle, out: Uint8Array, at: number): number {
    const renderer = this.#parse(handle);
    // Callers write into the same buffer again and again, so its view is kept.
    if (out !== this.#out) {
      this.#out = out;
      this.#outView = new DataView(out.buffer, out.byteOffset, out.byteLength);
    }
    try {
      // Spelled out: a method called by a name that varies is looked up each time.
      if (part === 'writeHead') return renderer.writeHead(this.#outView, at);
      if (part === 'writeTail') return renderer.writeTail(this.#outView, at);
      return renderer.writeEntry(this.#outView, at);
    } catch (error) {
      // Too little space: less than the metadata ask for, or a record that is longer than they say.
      if (!(error instanceof RangeError)) throw error;
      return this.#failRecord(Math.floor(handle / 256), `its answer does not fit into ${out.length} bytes`);
    }
  }

  /** Reads the whole index into memory. `onProgress` gets the bytes done and the bytes in all. */
  async warm(
    onProgress: (doneBytes: number, totalBytes: number) => void = () => {},
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#bytes.warm((done) => onProgress(done, this.#bytes.sizeBytes), signal);
  }

  /** All records in the order of the file, a handle each. Throws record_corrupt at the first damaged bucket. */
  *handles(): Generator<RecordHandle> {
    for (let bucket = 0; bucket < this.#bucketCount; bucket++) {
      for (const handle of this.handlesOfBucket(bucket)) yield handle;
    }
  }

  /** The records of one bucket. */
  handlesOfBucket(bucket: number): RecordHandle[] {
    if (!this.#isOpen) throw new PagegateError('index_closed');
    if (!bucketIsIntact(this.#words, bucket)) this.#failBucket(bucket);
    const at = bucket * BUCKET_SIZE_BYTES;
    const count = this.#directory[at + BUCKET.count.offset]!;
    const extra = Math.max(0, count - SLOTS_PER_BUCKET);
    const base = bucketBase(this.#words, this.#directory, bucket);
    const codes = Array.from(
      this.#directory.subarray(at + BUCKET.lengths.offset, at + BUCKET.lengths.offset + count - extra),
    );
    let offset = base;
    if (extra > 0) {
      if (base + 2 * extra + 1 > this.#payloadSize) this.#failBucket(bucket);
      const table = this.#payload.at(base);
      const start = this.#payload.start;
      if (crc8(table, start, start + 2 * extra) !== table[start + 2 * extra]) this.#failBucket(bucket);
      codes.push(...table.subarray(start + extra, start + 2 * extra));
      offset += 2 * extra + 1;
    }
    return codes.map((code) => {
      const handle = offset * 256 + code;
      offset += SIZE_OF_LENGTH_CODE[code]!;
      return handle;
    });
  }

  /** Ends the mapping. Handles and views are of no use any more. Safe to call twice. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#parsed = NOT_FOUND;
    // Nothing may touch the mapping after it ended: an access would end the process.
    this.#directory = new Uint8Array(0);
    this.#words = new Uint32Array(0);
    this.#payload = new PayloadWindows(this.#bytes, 0, 0);
    this.#bytes.close();
  }

  #failBucket(bucket: number): never {
    if (!this.#isOpen) throw new PagegateError('index_closed');
    throw new PagegateError('record_corrupt', `Bucket ${bucket} of the directory is damaged.`, {
      path: this.info.path,
      bucket,
    });
  }

  #failRecord(offset: number, what: string): never {
    if (!this.#isOpen) throw new PagegateError('index_closed');
    throw new PagegateError('record_corrupt', `The record at payload offset ${offset}: ${what}.`, {
      path: this.info.path,
      offset,
    });
  }
}
