/**
 * The temporary files of a build: encoded records, partitioned by the first bits of their hash. Each worker appends blocks of one
 * partition each to a file of its own and remembers where they are, so that there are as many files as workers.
 */
import { closeSync, openSync } from 'node:fs';
import { writeFully } from '../../platform/write-fully.ts';

/** Before each record: hash (4 + 4 bytes), position in the drop (part 2, line 5), size of the record (3); little-endian. */
export const SPILL_HEADER_BYTES = 18;
const PART_AT = 8;
const LINE_AT = 10;
const SIZE_AT = 15;

/** What all blocks of one worker take together, in bytes; one block for each partition. */
const BLOCKS_TOTAL_BYTES = 8 << 20;

/** Where the blocks of a partition are: pairs of offset and size in bytes. */
export interface SpillFile {
  readonly path: string;
  readonly blocks: readonly (readonly number[])[];
}

/** The partition of a hash. `partitionBits` from 0 to 16. */
export function partitionOf(hashA: number, partitionBits: number): number {
  return partitionBits === 0 ? 0 : hashA >>> (32 - partitionBits);
}

/** Gathers records by partition and writes them out block by block. */
export class SpillWriter {
  readonly #path: string;
  readonly #descriptor: number;
  readonly #partitionBits: number;
  readonly #blockBytes: number;
  readonly #bytes: Buffer;
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
    this.#filled = new Uint32Array(count);
    this.#blocks = Array.from({ length: count }, () => []);
    this.#descriptor = openSync(path, 'wx', 0o600);
  }

  /** Of the file so far. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Takes a record: bytes 0 up to `size` of `record`. `part` and `line` tell which of two entries of a domain is the later. */
  add(hashA: number, hashB: number, part: number, line: number, record: Uint8Array, size: number): void {
    const partition = partitionOf(hashA, this.#partitionBits);
    const total = SPILL_HEADER_BYTES + size;
    let filled = this.#filled[partition]!;
    if (filled + total > this.#blockBytes) {
      this.#flush(partition);
      filled = 0;
      if (total > this.#blockBytes) {
        const block = Buffer.allocUnsafe(total);
        encodeSpillHeader(block, 0, hashA, hashB, part, line, size);
        block.set(record.subarray(0, size), SPILL_HEADER_BYTES);
        this.#write(partition, block, 0, total);
        return;
      }
    }
    const bytes = this.#bytes;
    const at = partition * this.#blockBytes + filled;
    encodeSpillHeader(bytes, at, hashA, hashB, part, line, size);
    copy(record, size, bytes, at + SPILL_HEADER_BYTES);
    this.#filled[partition] = filled + total;
  }

  /** Writes what is left and closes the file. */
  finish(): SpillFile {
    for (let partition = 0; partition < this.#blocks.length; partition++) this.#flush(partition);
    this.discard();
    return { path: this.#path, blocks: this.#blocks };
  }

  /** Closes the file without what is left to write: nobody will read it. */
  discard(): void {
    closeSync(this.#descriptor);
    // Given back now, the memory does not wait for the garbage collector.
    (this.#bytes.buffer as ArrayBuffer).transfer(0);
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

/** For records of some dozen bytes a loop is faster than a call of `set`. */
function copy(from: Uint8Array, size: number, to: Uint8Array, at: number): void {
  if (size > 200) to.set(from.subarray(0, size), at);
  else for (let i = 0; i < size; i++) to[at + i] = from[i]!;
}

function encodeSpillHeader(
  bytes: Uint8Array,
  at: number,
  hashA: number,
  hashB: number,
  part: number,
  line: number,
  size: number,
): void {
  bytes[at] = hashA;
  bytes[at + 1] = hashA >>> 8;
  bytes[at + 2] = hashA >>> 16;
  bytes[at + 3] = hashA >>> 24;
  bytes[at + 4] = hashB;
  bytes[at + 5] = hashB >>> 8;
  bytes[at + 6] = hashB >>> 16;
  bytes[at + 7] = hashB >>> 24;
  bytes[at + PART_AT] = part;
  bytes[at + PART_AT + 1] = part >>> 8;
  bytes[at + LINE_AT] = line;
  bytes[at + LINE_AT + 1] = line >>> 8;
  bytes[at + LINE_AT + 2] = line >>> 16;
  bytes[at + LINE_AT + 3] = line >>> 24;
  bytes[at + LINE_AT + 4] = line / 0x1_0000_0000;
  bytes[at + SIZE_AT] = size;
  bytes[at + SIZE_AT + 1] = size >>> 8;
  bytes[at + SIZE_AT + 2] = size >>> 16;
}

/** Little-endian, unsigned. */
export function readWord(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

/** Size of the record whose header is at `at`. */
export function spilledSize(bytes: Uint8Array, at: number): number {
  return bytes[at + SIZE_AT]! | (bytes[at + SIZE_AT + 1]! << 8) | (bytes[at + SIZE_AT + 2]! << 16);
}

/** Position in the drop of the record whose header is at `at`: grows with part and line. */
export function spilledPosition(bytes: Uint8Array, at: number): number {
  const part = bytes[at + PART_AT]! | (bytes[at + PART_AT + 1]! << 8);
  return part * 2 ** 40 + bytes[at + LINE_AT + 4]! * 2 ** 32 + readWord(bytes, at + LINE_AT);
}

/** Total size of a partition over all files, in bytes. */
export function partitionSize(files: readonly SpillFile[], partition: number): number {
  let sizeBytes = 0;
  for (const { blocks } of files) {
    const list = blocks[partition]!;
    for (let i = 1; i < list.length; i += 2) sizeBytes += list[i]!;
  }
  return sizeBytes;
}
