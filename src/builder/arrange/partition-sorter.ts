/** Second half of a build: reads a partition back, sorts it by hash, and keeps the last entry of each domain. */
import { closeSync, openSync, readSync } from 'node:fs';
import { PagegateError } from '../../errors.ts';
import { compareDomains } from '../../index/write.ts';
import { partitionSize, readWord, SPILL_HEADER_BYTES, type SpillFile, spilledPosition, spilledSize } from './spill.ts';

/** Memory for one partition, in bytes. With many entries for few domains, it may take more on disk: earlier entries are dropped. */
export const PARTITION_MAX_BYTES: number = 64 << 20;
/** Bins with more records than this are sorted with the typed array's `sort`, smaller ones by insertion. */
const INSERTION_MAX = 24;
const BIN_BITS_MAX = 18;

/** Reads and sorts partitions. Reuses its memory for each. */
export class PartitionSorter {
  /** The partition's records, each preceded by its spill header. */
  bytes: Uint8Array = new Uint8Array(0);
  /** Offsets of the spill headers of the records, in hash order. Only the first `count` are valid. */
  order: Uint32Array = new Uint32Array(0);
  count = 0;
  /** Entries dropped from the last partition read, because a later one has the same domain. */
  duplicates = 0;
  readonly #maxBytes: number;
  #filled = 0;
  #scratch = new Uint32Array(0);
  #bins = new Uint32Array(0);

  /** `maxBytes`: memory for one partition. */
  constructor(maxBytes: number = PARTITION_MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Reads a partition and sorts it.
   *
   * @throws PagegateError build_too_large if the records of its domains do not fit into memory
   * @throws PagegateError build_failed if a temporary file is truncated
   */
  load(files: readonly SpillFile[], partition: number): void {
    this.duplicates = 0;
    this.#filled = 0;
    const needed = Math.min(this.#maxBytes, partitionSize(files, partition));
    if (this.bytes.length < needed) this.bytes = new Uint8Array(Math.min(this.#maxBytes, Math.ceil(needed * 1.1)));
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
    this.#keepLastOfDomain();
  }

  #read(descriptor: number, position: number, size: number): void {
    if (this.#filled + size > this.bytes.length) this.#compact(size);
    let done = 0;
    while (done < size) {
      const bytesRead = readSync(descriptor, this.bytes, this.#filled + done, size - done, position + done);
      if (bytesRead === 0) throw new PagegateError('build_failed', 'A temporary file ended too early.');
      done += bytesRead;
    }
    this.#filled += size;
  }

  /** Drops entries that a later one replaces, to make space for a block of `size` bytes. */
  #compact(size: number): void {
    this.#sort();
    this.#keepLastOfDomain();
    const kept = this.order.subarray(0, this.count).sort();
    let to = 0;
    for (const from of kept) {
      const end = from + SPILL_HEADER_BYTES + spilledSize(this.bytes, from);
      this.bytes.copyWithin(to, from, end);
      to += end - from;
    }
    this.#filled = to;
    // Space for only one more block is too little: the next block would compact again.
    if (to + size <= this.bytes.length - this.bytes.length / 8) return;
    const what = `One of its partitions by hash has more than ${Math.floor(this.#maxBytes / 2 ** 20)} MB of different domains.`;
    throw new PagegateError('build_too_large', what);
  }

  /** Finds the records and sorts them: first into bins, which are equal ranges of the hash, then within each bin. */
  #sort(): void {
    const { bytes } = this;
    const { count, low, shift, binCount } = this.#planBins();
    this.count = count;
    if (this.order.length < count) {
      this.order = new Uint32Array(Math.ceil(count * 1.1));
      this.#scratch = new Uint32Array(this.order.length);
    }
    if (this.#bins.length < binCount + 1) this.#bins = new Uint32Array(binCount + 1);
    const ends = this.#bins.fill(0);
    let i = 0;
    for (let at = 0; at < this.#filled; at += SPILL_HEADER_BYTES + spilledSize(bytes, at)) {
      this.#scratch[i++] = at;
      const bin = (readWord(bytes, at) - low) >>> shift;
      ends[bin + 1] = ends[bin + 1]! + 1;
    }
    for (let bin = 0; bin < binCount; bin++) ends[bin + 1] = ends[bin + 1]! + ends[bin]!;
    for (let j = 0; j < count; j++) {
      const at = this.#scratch[j]!;
      const bin = (readWord(bytes, at) - low) >>> shift;
      this.order[ends[bin]!] = at;
      ends[bin] = ends[bin]! + 1;
    }
    let start = 0;
    for (let bin = 0; bin < binCount; bin++) {
      const end = ends[bin]!;
      if (end - start > 1) this.#sortBin(start, end);
      start = end;
    }
  }

  /** Counts the records, and divides the range of their hashes into about as many bins. */
  #planBins(): { count: number; low: number; shift: number; binCount: number } {
    const { bytes } = this;
    let count = 0;
    let low = 0xffff_ffff;
    let high = 0;
    for (let at = 0; at < this.#filled; at += SPILL_HEADER_BYTES + spilledSize(bytes, at)) {
      const hash = readWord(bytes, at);
      count += 1;
      if (hash < low) low = hash;
      if (hash > high) high = hash;
    }
    if (high < low) return { count, low: 0, shift: 31, binCount: 2 };
    const bits = Math.min(BIN_BITS_MAX, Math.max(1, 32 - Math.clz32(count)));
    const shift = Math.max(0, 32 - Math.clz32(high - low) - bits);
    return { count, low, shift, binCount: ((high - low) >>> shift) + 1 };
  }

  #sortBin(start: number, end: number): void {
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

  /** Compares two records: by hash, then domain, then position in the drop. */
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

  /** Of adjacent records with the same domain, keeps only the last. */
  #keepLastOfDomain(): void {
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
