/**
 * Looks up keys in an index. A miss reads one bucket of the directory. A hit reads that bucket and the record. Everything is checked before
 * it is used: the bucket's checksum, the bounds of the record, its CRC-8, and its structure before anything is rendered.
 */
import { PagegateError } from '../errors.ts';
import type { DomainRecord, PageFilter, PageUrl } from '../record/types.ts';
import { bucketBase, bucketIsIntact, slotOfLowestBit, slotsWithFingerprint } from './format/bucket.ts';
import { crc8 } from './format/checksum.ts';
import type { Header } from './format/header.ts';
import { HashedKey, hashKeyA, hashKeyB } from './format/key-hash.ts';
import {
  BUCKET,
  BUCKET_SIZE_BYTES,
  BUCKET_SIZE_WORDS,
  bucketOfHash,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_BUCKET,
} from './format/layout.ts';
import { bucketChecksum, recordSeed, saltOf } from './format/salt.ts';
import type { SymbolTable } from './format/symbol-table.ts';
import { readHeader, readTables } from './read/checked-sections.ts';
import { IndexFile } from './read/index-file.ts';
import { type IndexInfo, infoOf } from './read/index-info.ts';
import type { IndexBytes } from './read/index-source.ts';
import { MappedFile } from './read/mapped-file.ts';
import { PayloadWindows } from './read/payload-windows.ts';
import { ImpossibleRecord, RecordDecoder } from './read/record-decoder.ts';
import { RecordRenderer } from './read/record-renderer.ts';
import type { RenderTables } from './read/render-tables.ts';

export { isIndexFile } from './read/index-file.ts';
export type { IndexInfo } from './read/index-info.ts';
export { bytesOfBuffer } from './read/index-source.ts';

/** Returned by `find` for a key that the index does not have. */
export const NO_RECORD = -1;
/** A record of one index: its payload offset × 256 + its length code. Valid only for the index that returned it. */
export type RecordHandle = number;

/** Options for opening an index. */
export interface OpenIndexOptions {
  /** True (the default) tells the kernel that reads are scattered, as lookups are. False lets it read ahead, as for a sequential read. */
  readonly randomReads?: boolean;
}

/**
 * Opens an index. Checks the file, its header and the small sections. The time does not depend on the number of records.
 *
 * @throws PagegateError index_missing, index_unreadable, index_not_a_file, index_unsafe_mode if the file cannot be used
 * @throws PagegateError index_not_recognized, index_newer_version, index_older_version, index_corrupt if it is not an intact index of this format
 * @throws PagegateError index_changed if the file is modified meanwhile
 * @throws PagegateError mapping_failed
 */
export function openIndex(path: string, { randomReads = true }: OpenIndexOptions = {}): Index {
  const file = new IndexFile(path);
  let bytes: MappedFile | undefined;
  try {
    const header = readHeader(file);
    const tables = readTables(file, header);
    bytes = new MappedFile(file);
    if (randomReads) bytes.adviseRandom();
    return new Index(bytes, header, tables);
  } catch (error) {
    bytes?.close();
    file.close();
    throw error;
  }
}

/** Opens an index over bytes that the caller has opened. */
export function openIndexBytes(bytes: IndexBytes): Index {
  const header = readHeader(bytes);
  return new Index(bytes, header, readTables(bytes, header));
}

/** An open index. Threads do not share it: each opens its own. That takes milliseconds and little memory, because the file is mapped. */
export class Index {
  readonly info: IndexInfo;
  readonly #bytes: IndexBytes;
  readonly #bucketCount: number;
  readonly #salt: number;
  readonly #payloadSize: number;
  #directory: Uint8Array;
  #words: Uint32Array;
  #payload: PayloadWindows;
  readonly #domainSymbols: SymbolTable;
  readonly #key = new HashedKey();
  /** The domain of a record with another key. */
  readonly #other = new HashedKey();
  readonly #decoder: RecordDecoder;
  readonly #renderer: RecordRenderer;
  /** The last record that `find` found, and the seed of its CRC-8. */
  #found: RecordHandle = NO_RECORD;
  #foundSeed = 0;
  /** The record that the decoder has parsed. */
  #parsed: RecordHandle = NO_RECORD;
  /** The record whose head was last written. */
  #headOf: RecordHandle = NO_RECORD;
  #out: Uint8Array = new Uint8Array(0);
  #outView: DataView = new DataView(this.#out.buffer);
  #isOpen = true;

  /** For bytes whose header and small sections have been read. `openIndex` does all of it. */
  constructor(bytes: IndexBytes, header: Header, tables: RenderTables) {
    const { dictionary, directory, payload, metadata } = header.sections;
    this.info = infoOf(bytes, header, tables.metadata);
    this.#bytes = bytes;
    this.#bucketCount = header.bucketCount;
    this.#salt = saltOf(dictionary.checksum, metadata.checksum);
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

  /**
   * Returns the record of a key (a canonical domain), or NO_RECORD.
   *
   * @throws PagegateError record_corrupt if the bytes that it reads are damaged, or belong to another place or another file
   * @throws PagegateError index_closed
   */
  find(key: string): RecordHandle {
    const hashed = this.#key;
    if (!hashed.set(key)) return NO_RECORD;
    const bucket = bucketOfHash(hashed.hashA(), this.#bucketCount) | 0;
    const words = this.#words;
    const atWord = bucket * BUCKET_SIZE_WORDS;
    if (!bucketIsIntact(words, atWord, bucketChecksum(this.#salt, bucket))) this.#failBucket(bucket);
    const at = bucket * BUCKET_SIZE_BYTES;
    const count = this.#directory[at + BUCKET.count.offset]!;
    // Not computed earlier, so that the processor does it while it waits for the bucket from memory.
    const fingerprint = hashed.hashB() & 0xff;
    let candidates = slotsWithFingerprint(words, atWord, fingerprint);
    while (candidates !== 0) {
      const slot = slotOfLowestBit(candidates);
      candidates &= candidates - 1;
      if (slot >= count || this.#directory[at + slot] !== fingerprint) continue;
      const offset = this.#offsetOfSlot(bucket, count, slot);
      const code = this.#directory[at + BUCKET.lengths.offset + slot]!;
      if (this.#holdsKey(offset, code, bucket, fingerprint)) return this.#found;
    }
    return count > SLOTS_PER_BUCKET ? this.#findOverflowing(bucket, count, fingerprint) : NO_RECORD;
  }

  #offsetOfSlot(bucket: number, count: number, slot: number): number {
    const directory = this.#directory;
    const lengths = bucket * BUCKET_SIZE_BYTES + BUCKET.lengths.offset;
    let size = count > SLOTS_PER_BUCKET ? 2 * (count - SLOTS_PER_BUCKET) + 1 : 0;
    const sizes = SIZE_OF_LENGTH_CODE;
    for (let i = 0; i < slot; i++) size += sizes[directory[lengths + i]!]!;
    return bucketBase(this.#words, directory, bucket) + size;
  }

  /** Searches the records of a bucket without a slot. Their fingerprints and length codes precede the bucket's records. */
  #findOverflowing(bucket: number, count: number, fingerprint: number): RecordHandle {
    const extra = count - SLOTS_PER_BUCKET;
    const directory = this.#directory;
    const at = bucket * BUCKET_SIZE_BYTES;
    const base = bucketBase(this.#words, directory, bucket);
    const tableSize = 2 * extra + 1;
    if (base + tableSize > this.#payloadSize) this.#failBucket(bucket);
    const table = this.#payload.at(base);
    const start = this.#payload.start;
    const crc = crc8(table, start, start + 2 * extra, recordSeed(this.#salt, bucket, 0));
    if (crc !== table[start + 2 * extra]) this.#failBucket(bucket);
    let offset = base + tableSize;
    for (let i = 0; i < SLOTS_PER_BUCKET; i++) {
      offset += SIZE_OF_LENGTH_CODE[directory[at + BUCKET.lengths.offset + i]!]!;
    }
    for (let i = 0; i < extra; i++) {
      const code = table[start + extra + i]!;
      if (table[start + i] === fingerprint && this.#holdsKey(offset, code, bucket, fingerprint)) return this.#found;
      offset += SIZE_OF_LENGTH_CODE[code]!;
    }
    return NO_RECORD;
  }

  /**
   * Returns true if the record is that of the key, and sets `#found`. Then all bytes of its domain were compared, and `#parse` checks its
   * CRC-8 before anything else of it is used. Otherwise its CRC-8 and the hashes of its domain are checked here, so that damage does not
   * result in "not found".
   */
  #holdsKey(offset: number, code: number, bucket: number, fingerprint: number): boolean {
    const recordSize = SIZE_OF_LENGTH_CODE[code]!;
    if (offset + recordSize > this.#payloadSize) this.#failRecord(offset, 'it lies outside the payload');
    const bytes = this.#payload.at(offset);
    // `| 0` makes it an integer for the engine, and so everything that is computed from it below.
    const start = this.#payload.start | 0;
    const codesEnd = start + 1 + bytes[start]!;
    if (codesEnd >= start + recordSize) this.#failRecord(offset, 'its domain does not fit');
    const { words, masks, lengths } = this.#domainSymbols;
    const { view, size } = this.#key;
    let isSame = this.#key.isAscii;
    let at = 0;
    for (let read = start + 1; read < codesEnd; read++) {
      const symbol = bytes[read]!;
      // Truncated to 64 bits at each step, so that it compiles to one machine instruction and allocates no BigInt.
      const difference = BigInt.asIntN(64, view.getBigInt64(at, true) ^ words[symbol]!);
      if (BigInt.asIntN(64, difference & masks[symbol]!) !== 0n) isSame = false;
      const symbolSize = lengths[symbol]!;
      // An unknown symbol has no bytes, so it would match anything.
      if (symbolSize === 0) this.#failRecord(offset, 'its domain has an unknown symbol');
      at += symbolSize;
    }
    const seed = recordSeed(this.#salt, bucket, fingerprint);
    if (isSame && at === size) {
      this.#found = offset * 256 + code;
      this.#foundSeed = seed;
      return true;
    }
    this.#checkRecord(bytes, offset, start, recordSize, seed);
    this.#checkPlace(bytes, offset, start, bucket, fingerprint);
    return false;
  }

  /** Checks that a record with another key belongs in its slot. Otherwise it has replaced another record, perhaps the key's. */
  #checkPlace(bytes: Uint8Array, offset: number, start: number, bucket: number, fingerprint: number): void {
    const other = this.#other;
    const { words, lengths } = this.#domainSymbols;
    const codesEnd = start + 1 + bytes[start]!;
    let size = 0;
    for (let read = start + 1; read < codesEnd; read++) {
      const symbol = bytes[read]!;
      other.view.setBigInt64(size, words[symbol]!, true);
      size += lengths[symbol]!;
    }
    other.size = size;
    if (bucketOfHash(other.hashA(), this.#bucketCount) === bucket && (other.hashB() & 0xff) === fingerprint) return;
    this.#failRecord(offset, 'its domain belongs in another slot');
  }

  #checkRecord(bytes: Uint8Array, offset: number, start: number, size: number, seed: number): void {
    const last = start + size - 1;
    if (crc8(bytes, start, last, seed) !== bytes[last]) this.#failRecord(offset, 'its CRC-8 is wrong');
  }

  /** Parses a record, unless it is the last one that was parsed. */
  #parse(handle: RecordHandle): RecordRenderer {
    if (handle === this.#parsed) return this.#renderer;
    this.#parsed = NO_RECORD;
    if (!this.#isOpen) throw new PagegateError('index_closed');
    const offset = Math.floor(handle / 256);
    const size = SIZE_OF_LENGTH_CODE[handle - offset * 256]!;
    if (!(offset >= 0) || offset + size > this.#payloadSize) this.#failRecord(offset, 'it lies outside the payload');
    const bytes = this.#payload.at(offset);
    const start = this.#payload.start;
    const isFound = handle === this.#found;
    if (isFound) this.#checkRecord(bytes, offset, start, size, this.#foundSeed);
    try {
      this.#decoder.parse(bytes, start, start + size - 1);
    } catch (error) {
      if (error instanceof ImpossibleRecord) this.#failRecord(offset, error.message);
      throw error;
    }
    // An earlier lookup found it. The bucket and fingerprint for the seed follow from its domain.
    if (!isFound) this.#checkRecord(bytes, offset, start, size, this.#seedOfParsed());
    this.#parsed = handle;
    return this.#renderer;
  }

  #seedOfParsed(): number {
    const { domain, domainSize } = this.#decoder;
    const bucket = bucketOfHash(hashKeyA(domain, 0, domainSize), this.#bucketCount);
    return recordSeed(this.#salt, bucket, hashKeyB(domain, 0, domainSize) & 0xff);
  }

  /**
   * Returns the whole record as an object. This and the following methods need a handle that `find` returned.
   *
   * @throws PagegateError record_corrupt, index_closed
   */
  decode(handle: RecordHandle): DomainRecord {
    return this.#parse(handle).toObject();
  }

  /** Returns the record's pages in vocabulary order. */
  pageUrls(handle: RecordHandle): readonly PageUrl[] {
    return this.#parse(handle).pageUrls();
  }

  /**
   * Returns the record's pages that may matter. Reads them from the record's head in `out`, if that is the last head written. Otherwise
   * returns all pages.
   */
  pageUrlsInHead(handle: RecordHandle, out: Buffer, mayMatter: PageFilter): readonly PageUrl[] {
    const renderer = this.#parse(handle);
    return handle === this.#headOf && out === this.#out ? renderer.pageUrlsInHead(out, mayMatter) : renderer.pageUrls();
  }

  /** Returns the names of the record's filtering categories; an empty list if there are none. */
  filteringCategories(handle: RecordHandle): readonly string[] {
    return this.#parse(handle).filteringCategories();
  }

  /**
   * Writes the first part of the answer as JSON: `{"domain":"…","found":true[,"language":"…"],"page_types":{…}`. Returns its end. For head and
   * tail together, `out` needs space for `info.maxAnswerSizeBytes`. Up to seven bytes after the end are overwritten too.
   */
  writeHead(handle: RecordHandle, out: Uint8Array, at: number): number {
    return this.#write('writeHead', handle, out, at);
  }

  /** Writes the last part of the answer: `[,"iab_category":…][,"filtering_categories":…][,"open_page_rank":…][,"global_rank":…]}`. */
  writeTail(handle: RecordHandle, out: Uint8Array, at: number): number {
    return this.#write('writeTail', handle, out, at);
  }

  #write(part: 'writeHead' | 'writeTail', handle: RecordHandle, out: Uint8Array, at: number): number {
    const renderer = this.#parse(handle);
    // Callers reuse the same buffer, so keep its view.
    if (out !== this.#out) {
      this.#out = out;
      this.#outView = new DataView(out.buffer, out.byteOffset, out.byteLength);
    }
    try {
      // Two separate calls, because a call by a variable method name is looked up each time.
      if (part === 'writeTail') return renderer.writeTail(this.#outView, at);
      this.#headOf = handle;
      return renderer.writeHead(this.#outView, at);
    } catch (error) {
      // Too little space: either `out` is smaller than the metadata require, or the record is longer than they allow.
      if (!(error instanceof RangeError)) throw error;
      return this.#failRecord(Math.floor(handle / 256), `its answer does not fit into ${out.length} bytes`);
    }
  }

  /** Reads the whole index into memory. `onProgress` gets the number of bytes done and the total. */
  async warm(onProgress: (doneBytes: number, totalBytes: number) => void = () => {}): Promise<void> {
    await this.#bytes.warm((done) => onProgress(done, this.#bytes.sizeBytes));
  }

  /**
   * Checks whether the file has changed since it was opened. Returns an index_changed error whose `details.what` is `size`, `times`, `header`
   * or `status`, or undefined. A server should call it regularly; it takes two system calls. Replacing the file by renaming another one over
   * its name is not a change. Writing into the file mixes two indexes, and lookups then fail with record_corrupt. If the file is truncated,
   * a lookup that reads beyond its end, before a call of this method has detected it, ends the process (SIGBUS).
   */
  fileProblem(): PagegateError | undefined {
    return this.#isOpen ? this.#bytes.problem() : undefined;
  }

  /** Closes the index. Handles become invalid. Safe to call twice. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#parsed = NO_RECORD;
    this.#found = NO_RECORD;
    // Nothing may access the mapping after it is removed: that would end the process.
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
