/**
 * The temporary files of a build: encoded records, partitioned by the first bits of their hash. Each worker has one file. It appends
 * blocks, each with records of one partition, and remembers where they are.
 */
import { closeSync, openSync } from 'node:fs';
import { COPY_SLACK_BYTES, copyRange } from '../../bytes/json-pieces.ts';
import { writeFully } from '../../platform/write-fully.ts';

/** Header before each record: hash (4 + 4 bytes), position in the drop (part 2, line 5), size of the record (3); little-endian. */
export const SPILL_HEADER_BYTES = 18;
const PART_AT = 8;
const LINE_AT = 10;
const SIZE_AT = 15;

/** Records up to this size are copied word by word; for larger ones, `set` is faster. */
const COPIED_MAX_BYTES = 200;

/** Total memory for the blocks of one worker, in bytes. It has one block for each partition. */
const BLOCKS_TOTAL_BYTES = 8 << 20;

/** A finished spill file. */
export interface SpillFile {
  readonly path: string;
  /** For each partition, its blocks: pairs of offset and size, in bytes. */
  readonly blocks: readonly (readonly number[])[];
}

/** Returns the partition of a hash. `partitionBits`: from 0 to 16. */
export function partitionOf(hashA: number, partitionBits: number): number {
  return partitionBits === 0 ? 0 : hashA >>> (32 - partitionBits);
}

/** Collects records by partition and writes them block by block. */
export class SpillWriter {
  readonly #path: string;
  readonly #descriptor: number;
  readonly #partitionBits: number;
  readonly #blockBytes: number;
  readonly #bytes: Buffer;
  readonly #view: DataView;
  /** The array of the last record, and a view of it. Kept, because callers use one array for all records. */
  #record: Uint8Array = new Uint8Array(0);
  #recordView: DataView = new DataView(this.#record.buffer);
  readonly #filled: Uint32Array;
  readonly #blocks: number[][];
  #sizeBytes = 0;

  /** Creates the file at `path`, which must not exist. */
  constructor(path: string, partitionBits: number) {
    const count = 2 ** partitionBits;
    this.#path = path;
    this.#partitionBits = partitionBits;
    this.#blockBytes = Math.min(1 << 16, BLOCKS_TOTAL_BYTES / count);
    this.#bytes = Buffer.allocUnsafeSlow(this.#blockBytes * count);
    this.#view = new DataView(this.#bytes.buffer);
    this.#filled = new Uint32Array(count);
    this.#blocks = Array.from({ length: count }, () => []);
    this.#descriptor = openSync(path, 'wx', 0o600);
  }

  /** Size of the file so far, in bytes. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Adds the record `record[0, size)`. `part` and `line` determine which of two entries of a domain is the later one. */
  add(hashA: number, hashB: number, part: number, line: number, record: Uint8Array, size: number): void {
    const partition = partitionOf(hashA, this.#partitionBits);
    const total = SPILL_HEADER_BYTES + size;
    let filled = this.#filled[partition]!;
    if (filled + total + COPY_SLACK_BYTES > this.#blockBytes) {
      this.#flush(partition);
      filled = 0;
      if (total + COPY_SLACK_BYTES > this.#blockBytes) {
        const block = Buffer.alloc(total);
        encodeSpillHeader(new DataView(block.buffer, block.byteOffset), 0, hashA, hashB, part, line, size);
        block.set(record.subarray(0, size), SPILL_HEADER_BYTES);
        this.#write(partition, block, 0, total);
        return;
      }
    }
    const at = partition * this.#blockBytes + filled;
    encodeSpillHeader(this.#view, at, hashA, hashB, part, line, size);
    this.#copy(record, size, at + SPILL_HEADER_BYTES);
    this.#filled[partition] = filled + total;
  }

  /** Writes the remaining blocks and closes the file. */
  finish(): SpillFile {
    for (let partition = 0; partition < this.#blocks.length; partition++) this.#flush(partition);
    this.discard();
    return { path: this.#path, blocks: this.#blocks };
  }

  /** Closes the file without writing the remaining blocks. For a file that will not be read. */
  discard(): void {
    closeSync(this.#descriptor);
    // Free the memory now instead of waiting for the garbage collector.
    (this.#bytes.buffer as ArrayBuffer).transfer(0);
  }

  #copy(record: Uint8Array, size: number, at: number): void {
    if (size > COPIED_MAX_BYTES || size + COPY_SLACK_BYTES > record.length) {
      this.#bytes.set(record.subarray(0, size), at);
      return;
    }
    if (record !== this.#record) {
      this.#record = record;
      this.#recordView = new DataView(record.buffer, record.byteOffset, record.byteLength);
    }
    copyRange(this.#recordView, 0, size, this.#view, at);
  }

  #flush(partition: number): void {
    const filled = this.#filled[partition]!;
    if (filled === 0) return;
    this.#write(partition, this.#bytes, partition * this.#blockBytes, filled);
    this.#filled[partition] = 0;
  }

  #write(partition: number, bytes: Buffer, start: number, size: number): void {
    writeFully(this.#descriptor, bytes, start, size, this.#sizeBytes);
    this.#blocks[partition]!.push(this.#sizeBytes, size);
    this.#sizeBytes += size;
  }
}

function encodeSpillHeader(
  view: DataView,
  at: number,
  hashA: number,
  hashB: number,
  part: number,
  line: number,
  size: number,
): void {
  view.setUint32(at, hashA, true);
  view.setUint32(at + 4, hashB, true);
  view.setUint16(at + PART_AT, part, true);
  view.setUint32(at + LINE_AT, line, true);
  view.setUint8(at + LINE_AT + 4, line / 0x1_0000_0000);
  view.setUint16(at + SIZE_AT, size, true);
  view.setUint8(at + SIZE_AT + 2, size >>> 16);
}

/** Reads an unsigned 32-bit integer, little-endian. */
export function readWord(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

/** Size of the record whose header is at `at`, in bytes. */
export function spilledSize(bytes: Uint8Array, at: number): number {
  return bytes[at + SIZE_AT]! | (bytes[at + SIZE_AT + 1]! << 8) | (bytes[at + SIZE_AT + 2]! << 16);
}

/** Position in the drop of the record whose header is at `at`: a number that orders records by part, then line. */
export function spilledPosition(bytes: Uint8Array, at: number): number {
  const part = bytes[at + PART_AT]! | (bytes[at + PART_AT + 1]! << 8);
  return part * 2 ** 40 + bytes[at + LINE_AT + 4]! * 2 ** 32 + readWord(bytes, at + LINE_AT);
}

/** The same position as the number of the part, from 0, and of the line, from 1. */
export function spilledPlace(bytes: Uint8Array, at: number): { readonly part: number; readonly line: number } {
  const position = spilledPosition(bytes, at);
  return { part: Math.floor(position / 2 ** 40), line: position % 2 ** 40 };
}

/** Total size of a partition in all files, in bytes. */
export function partitionSize(files: readonly SpillFile[], partition: number): number {
  let sizeBytes = 0;
  for (const { blocks } of files) {
    const list = blocks[partition]!;
    for (let i = 1; i < list.length; i += 2) sizeBytes += list[i]!;
  }
  return sizeBytes;
}
