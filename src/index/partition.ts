/**
 * A run of lines and their records, made apart from the rest of the index: bases are relative to the partition's own payload until the
 * writer appends it. Partitions can so be made in several threads and appended in order; the bytes do not depend on how many.
 */
import { PagegateError } from '../errors.ts';
import { crc8 } from './checksum.ts';
import {
  LINE,
  LINE_SIZE_BYTES,
  lengthCodeOf,
  lineOfHash,
  RECORDS_PER_LINE_MAX,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_LINE,
} from './layout.ts';
import { sealLine } from './line.ts';

/** What the writer appends. Cheap to pass between threads: transfer both buffers. */
export interface Partition {
  readonly firstLine: number;
  /** 64 bytes for each line; bases are relative to `payload`. */
  readonly lines: Uint8Array;
  readonly payload: Uint8Array;
  readonly recordCount: number;
}

/** Takes the records of the lines [firstLine, endLine) of an index with `lineCount` lines, in hash order. */
export class PartitionBuilder {
  readonly #firstLine: number;
  readonly #endLine: number;
  readonly #lineCount: number;
  readonly #lines: Uint8Array;
  #payload: Uint8Array;
  #size = 0;
  #recordCount = 0;
  #hashA = -1;
  #hashB = -1;
  /** Where the domain of the record before begins in the payload. */
  #recordAt = -1;
  #line: number;
  #lineStart = 0;
  #lineRecords = 0;
  // Fingerprints and length codes of the current line, the overflowing ones included.
  readonly #fingerprints: Uint8Array = new Uint8Array(RECORDS_PER_LINE_MAX);
  readonly #lengths: Uint8Array = new Uint8Array(RECORDS_PER_LINE_MAX);

  constructor(firstLine: number, endLine: number, lineCount: number, payloadSizeHint = 1 << 16) {
    this.#firstLine = firstLine;
    this.#endLine = endLine;
    this.#lineCount = lineCount;
    this.#line = firstLine;
    this.#lines = new Uint8Array((endLine - firstLine) * LINE_SIZE_BYTES);
    this.#payload = new Uint8Array(payloadSizeHint);
  }

  /**
   * Adds the record `bytes[start, end)` as the encoder made it. Order: hashA, hashB, then the bytes of the encoded domain; each domain
   * once. Throws index_out_of_order, and index_limit where more than 255 records meet in one line.
   */
  add(hashA: number, hashB: number, bytes: Uint8Array, start: number, end: number): void {
    this.#checkOrder(hashA, hashB, bytes, start);
    const line = lineOfHash(hashA, this.#lineCount);
    if (line < this.#firstLine || line >= this.#endLine) {
      throw new PagegateError('index_out_of_order', `Line ${line} is not in [${this.#firstLine}, ${this.#endLine}).`);
    }
    while (this.#line < line) this.#closeLine();
    if (this.#lineRecords === RECORDS_PER_LINE_MAX) {
      throw new PagegateError('index_limit', `More than ${RECORDS_PER_LINE_MAX} records fall into line ${line}.`, {
        line,
      });
    }
    // The check takes one byte.
    const code = lengthCodeOf(end - start + 1);
    if (code < 0) throw new PagegateError('index_limit', `A record has ${end - start} bytes.`);
    const size = SIZE_OF_LENGTH_CODE[code]!;
    this.#reserve(size);
    const payload = this.#payload;
    const at = this.#size;
    for (let i = start, to = at; i < end; i++, to++) payload[to] = bytes[i]!;
    // What lies beyond was never written: the padding is zero.
    payload[at + size - 1] = crc8(payload, at, at + size - 1);
    this.#fingerprints[this.#lineRecords] = hashB & 0xff;
    this.#lengths[this.#lineRecords] = code;
    this.#lineRecords += 1;
    this.#recordCount += 1;
    this.#recordAt = at;
    this.#size = at + size;
    this.#hashA = hashA;
    this.#hashB = hashB;
  }

  finish(): Partition {
    while (this.#line < this.#endLine) this.#closeLine();
    return {
      firstLine: this.#firstLine,
      lines: this.#lines,
      payload: this.#payload.subarray(0, this.#size),
      recordCount: this.#recordCount,
    };
  }

  #checkOrder(hashA: number, hashB: number, bytes: Uint8Array, start: number): void {
    if (hashA > this.#hashA) return;
    if (hashA === this.#hashA && hashB > this.#hashB) return;
    // The last record may have moved behind a table of overflowing ones only when its line was closed, and then hashA is larger.
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

  #closeLine(): void {
    const count = this.#lineRecords;
    const at = (this.#line - this.#firstLine) * LINE_SIZE_BYTES;
    const inLine = Math.min(count, SLOTS_PER_LINE);
    if (count > SLOTS_PER_LINE) this.#writeOverflow(count - SLOTS_PER_LINE);
    this.#lines[at + LINE.count.offset] = count;
    for (let i = 0; i < inLine; i++) {
      this.#lines[at + LINE.fingerprints.offset + i] = this.#fingerprints[i]!;
      this.#lines[at + LINE.lengths.offset + i] = this.#lengths[i]!;
    }
    sealLine(this.#lines, at, this.#line, this.#lineStart);
    this.#line += 1;
    this.#lineStart = this.#size;
    this.#lineRecords = 0;
  }

  /** Moves the line's records up and puts the fingerprints, length codes and check of those without a slot before them. */
  #writeOverflow(extra: number): void {
    const tableSize = 2 * extra + 1;
    this.#reserve(tableSize);
    const payload = this.#payload;
    const at = this.#lineStart;
    payload.copyWithin(at + tableSize, at, this.#size);
    payload.set(this.#fingerprints.subarray(SLOTS_PER_LINE, SLOTS_PER_LINE + extra), at);
    payload.set(this.#lengths.subarray(SLOTS_PER_LINE, SLOTS_PER_LINE + extra), at + extra);
    payload[at + 2 * extra] = crc8(payload, at, at + 2 * extra);
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

/** Compares the encoded domains of two records. */
export function compareDomains(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number): number {
  const aSize = a[aStart]!;
  const bSize = b[bStart]!;
  for (let i = 1; i <= aSize && i <= bSize; i++) {
    const difference = a[aStart + i]! - b[bStart + i]!;
    if (difference !== 0) return difference;
  }
  return aSize - bSize;
}
