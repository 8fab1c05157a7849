/** The records of a dataset in the form that the peers store: key → record as MessagePack, without the key. */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { Packr } from 'msgpackr';
import { datasetOf } from './data.ts';

const packr = new Packr({ useRecords: false });
const BLOCK_SIZE_BYTES = 1 << 26;

export interface PackedRecord {
  readonly key: string;
  readonly value: Uint8Array;
}

/** A range of record numbers, [from, to), in a dataset of `count` records. */
export interface RecordRange {
  readonly count: number;
  readonly from: number;
  readonly to: number;
}

/** The packed records of a range. Their values are in a few large blocks, so that millions of them fit into memory. */
export interface PackedRange {
  readonly keys: readonly string[];
  readonly blocks: readonly Uint8Array<ArrayBuffer>[];
  /** Three numbers for each key: the block of its value, and the start and end offset in that block. */
  readonly places: Uint32Array<ArrayBuffer>;
}

/** Yields each record of a range in the order of the drop. A later record of a name replaces an earlier one. */
export function* packedRecords({ count, from, to }: RecordRange): Generator<PackedRecord> {
  for (const chunk of datasetOf(count).chunks(from, to)) {
    for (const line of chunk.toString('utf8').split('\n')) {
      if (line === '') continue;
      const { domain, ...rest } = JSON.parse(line) as { domain: string };
      yield { key: domain, value: packr.pack(rest) };
    }
  }
}

export function unpackRecord(value: Uint8Array): object {
  return packr.unpack(value) as object;
}

/** Renders a packed record as the body of an answer. */
export function renderPacked(key: string, value: Uint8Array): Buffer {
  return Buffer.from(JSON.stringify({ domain: key, found: true, ...unpackRecord(value) }));
}

export function packRange(range: RecordRange): PackedRange {
  const keys: string[] = [];
  const blocks: Uint8Array<ArrayBuffer>[] = [];
  const places = new Uint32Array(3 * (range.to - range.from));
  let filled = BLOCK_SIZE_BYTES;
  for (const { key, value } of packedRecords(range)) {
    if (filled + value.length > BLOCK_SIZE_BYTES) {
      blocks.push(new Uint8Array(BLOCK_SIZE_BYTES));
      filled = 0;
    }
    const block = blocks.length - 1;
    blocks[block]!.set(value, filled);
    places.set([block, filled, filled + value.length], 3 * keys.length);
    keys.push(key);
    filled += value.length;
  }
  return { keys, blocks, places };
}

function packInThread(range: RecordRange): Promise<PackedRange> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./pack-thread.ts', import.meta.url), { workerData: range });
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('a thread that packs records ended')));
  });
}

/** All records of a dataset, sorted by key. */
export class SortedRecords {
  readonly #ranges: readonly PackedRange[];
  readonly #keys: readonly string[];
  /** Number of records in a range; only the last may have fewer. */
  readonly #rangeSize: number;
  readonly #order: Uint32Array;

  private constructor(ranges: readonly PackedRange[], rangeSize: number) {
    this.#ranges = ranges;
    this.#rangeSize = rangeSize;
    const keys = ranges.flatMap((range) => range.keys);
    this.#keys = keys;
    // Equal keys stay in the order of the drop, so that the later record is written last and replaces the earlier one.
    this.#order = Uint32Array.from(keys.keys()).sort((a, b) =>
      keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b,
    );
  }

  /** Packs one range on each core, then sorts all keys. */
  static async read(count: number): Promise<SortedRecords> {
    const rangeSize = Math.ceil(count / availableParallelism());
    const froms = Array.from({ length: Math.ceil(count / rangeSize) }, (_, i) => i * rangeSize);
    const packed = froms.map((from) => packInThread({ count, from, to: Math.min(count, from + rangeSize) }));
    return new SortedRecords(await Promise.all(packed), rangeSize);
  }

  *batches(size: number): Generator<PackedRecord[]> {
    for (let from = 0; from < this.#order.length; from += size) {
      yield Array.from(this.#order.subarray(from, from + size), (i) => this.#record(i));
    }
  }

  #record(i: number): PackedRecord {
    const { blocks, places } = this.#ranges[Math.floor(i / this.#rangeSize)]!;
    const at = 3 * (i % this.#rangeSize);
    return { key: this.#keys[i]!, value: blocks[places[at]!]!.subarray(places[at + 1], places[at + 2]) };
  }
}
