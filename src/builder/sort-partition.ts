/** Second half of a build: one partition's records, read back, in hash order, of several entries of a domain the latest. */
import { closeSync, openSync, readSync } from 'node:fs';
import { PagegateError } from '../errors.ts';
import { compareDomains } from '../index/writer.ts';
import { partitionSize, readWord, SPILL_HEADER_BYTES, type SpillFile, spilledPosition, spilledSize } from './spill.ts';

/** Memory for one partition, in bytes. Many entries of few domains may take more on disk, as their earlier entries are dropped. */
const PARTITION_MAX_BYTES = 64 << 20;
/** A bucket with more records than this is sorted by the library. */
const INSERTION_MAX = 24;
const BUCKET_BITS_MAX = 18;

/** Reads and sorts partitions; its memory is used again for each. */
export class PartitionSorter {
  /** The partition's records, each behind its spill header. */
  bytes: Uint8Array = new Uint8Array(0);
  /** Where the records begin (their spill headers), in hash order; the first `count` are valid. */
  order: Uint32Array = new Uint32Array(0);
  count = 0;
  /** Entries dropped for a later one of the same domain, in the partition read last. */
  duplicates = 0;
  readonly #maxBytes: number;
  #filled = 0;
  #scratch = new Uint32Array(0);
  #buckets = new Uint32Array(0);

  constructor(maxBytes: number = PARTITION_MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Reads a partition and sorts it. Throws `build_too_large` where its domains do not fit into memory. */
  load(files: readonly SpillFile[], partition: number): void {
    this.duplicates = 0;
    this.#filled = 0;
    const wanted = Math.min(this.#maxBytes, partitionSize(files, partition));
    if (this.bytes.length < wanted) this.bytes = new Uint8Array(Math.min(this.#maxBytes, Math.ceil(wanted * 1.1)));
    for (const { path, blocks } of files) {
      const list = blocks[partition]!;
      if (list.length === 0) continue;
      const descriptor = openSync(path, 'r');
      try {
        for (let i = 0; i < list.length; i += 2) this.#read(descriptor, list[i]!, list[i + 1]!);
      } finally {
        closeSync(descriptor);
      }
    }
    this.#sort();
    this.#dropEarlier();
  }

  #read(descriptor: number, position: number, size: number): void {
    if (this.#filled + size > this.bytes.length) this.#compact(size);
    let done = 0;
    while (done < size) {
      const got = readSync(descriptor, this.bytes, this.#filled + done, size - done, position + done);
      if (got === 0) throw new PagegateError('build_failed', 'A temporary file ended too early.');
      done += got;
    }
    this.#filled += size;
  }

  /** Drops what a later entry replaces, to make room for a block of that size. */
  #compact(size: number): void {
    this.#sort();
    this.#dropEarlier();
    const kept = this.order.subarray(0, this.count).sort();
    let to = 0;
    for (const from of kept) {
      const end = from + SPILL_HEADER_BYTES + spilledSize(this.bytes, from);
      this.bytes.copyWithin(to, from, end);
      to += end - from;
    }
    this.#filled = to;
    // Room for one more block is not enough to go on with: the next block would compact again.
    if (to + size <= this.bytes.length - this.bytes.length / 8) return;
    const what = `One of its parts by hash has more than ${Math.floor(this.#maxBytes / 2 ** 20)} MB of different domains.`;
    throw new PagegateError('build_too_large', what);
  }

  /** Finds the records and puts them in order: first into buckets by the bits of the hash that tell them apart, then within each. */
  #sort(): void {
    const { bytes } = this;
    let count = 0;
    for (let at = 0; at < this.#filled; at += SPILL_HEADER_BYTES + spilledSize(bytes, at)) count += 1;
    this.count = count;
    if (this.order.length < count) {
      this.order = new Uint32Array(Math.ceil(count * 1.1));
      this.#scratch = new Uint32Array(this.order.length);
    }
    const { low, shift, bucketCount } = this.#planBuckets();
    if (this.#buckets.length < bucketCount + 1) this.#buckets = new Uint32Array(bucketCount + 1);
    const ends = this.#buckets.fill(0);
    let i = 0;
    for (let at = 0; at < this.#filled; at += SPILL_HEADER_BYTES + spilledSize(bytes, at)) {
      this.#scratch[i++] = at;
      const bucket = (readWord(bytes, at) - low) >>> shift;
      ends[bucket + 1] = ends[bucket + 1]! + 1;
    }
    for (let bucket = 0; bucket < bucketCount; bucket++) ends[bucket + 1] = ends[bucket + 1]! + ends[bucket]!;
    for (let j = 0; j < count; j++) {
      const at = this.#scratch[j]!;
      const bucket = (readWord(bytes, at) - low) >>> shift;
      this.order[ends[bucket]!] = at;
      ends[bucket] = ends[bucket]! + 1;
    }
    let start = 0;
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      const end = ends[bucket]!;
      if (end - start > 1) this.#sortBucket(start, end);
      start = end;
    }
  }

  /** The range of hashes here, cut into about as many buckets as there are records. */
  #planBuckets(): { low: number; shift: number; bucketCount: number } {
    const { bytes } = this;
    let low = 0xffff_ffff;
    let high = 0;
    for (let at = 0; at < this.#filled; at += SPILL_HEADER_BYTES + spilledSize(bytes, at)) {
      const hash = readWord(bytes, at);
      if (hash < low) low = hash;
      if (hash > high) high = hash;
    }
    if (high < low) return { low: 0, shift: 31, bucketCount: 2 };
    const bits = Math.min(BUCKET_BITS_MAX, Math.max(1, 32 - Math.clz32(this.count)));
    const shift = Math.max(0, 32 - Math.clz32(high - low) - bits);
    return { low, shift, bucketCount: ((high - low) >>> shift) + 1 };
  }

  #sortBucket(start: number, end: number): void {
    const { order } = this;
    if (end - start > INSERTION_MAX) {
      order.subarray(start, end).sort((a, b) => this.#compare(a, b));
      return;
    }
    for (let i = start + 1; i < end; i++) {
      const at = order[i]!;
      let j = i - 1;
      while (j >= start && this.#compare(order[j]!, at) > 0) {
        order[j + 1] = order[j]!;
        j -= 1;
      }
      order[j + 1] = at;
    }
  }

  /** Order of two records: hash, then domain, then position in the drop. */
  #compare(a: number, b: number): number {
    const { bytes } = this;
    return (
      readWord(bytes, a) - readWord(bytes, b) ||
      readWord(bytes, a + 4) - readWord(bytes, b + 4) ||
      this.#compareDomains(a, b) ||
      spilledPosition(bytes, a) - spilledPosition(bytes, b)
    );
  }

  #compareDomains(a: number, b: number): number {
    return compareDomains(this.bytes, a + SPILL_HEADER_BYTES, this.bytes, b + SPILL_HEADER_BYTES);
  }

  /** Of neighbors with one domain keeps the last. */
  #dropEarlier(): void {
    const { bytes, order } = this;
    let kept = 0;
    for (let i = 0; i < this.count; i++) {
      const at = order[i]!;
      const next = i + 1 < this.count ? order[i + 1]! : -1;
      const isReplaced =
        next !== -1 &&
        readWord(bytes, at) === readWord(bytes, next) &&
        readWord(bytes, at + 4) === readWord(bytes, next + 4) &&
        this.#compareDomains(at, next) === 0;
      if (!isReplaced) order[kept++] = at;
    }
    this.duplicates += this.count - kept;
    this.count = kept;
  }
}
