/**
 * What the workers of a scan share: which part is read next, and blocks of lines on their way from the worker that reads their part to the
 * one that scans them. First in, first out, so that no worker gets lines of a part before earlier ones of it. All of it is shared memory;
 * a worker waits for others only where there is nothing that it could do.
 */

/** Four of the longest lines; small enough to stay in the processor's cache from the copy to the last look at a line. */
const BLOCK_BYTES = 1 << 18;
/**
 * Blocks for each worker. One that reads fills up to two, each scans one, and up to `BLOCKS_AHEAD` wait for each that helps: with fewer
 * than four for each worker, one that reads could find none free though none waits.
 */
const BLOCKS_PER_WORKER = 4;
/** Blocks that wait for a worker that helps: it need not wait for the next while the one that reads scans a block itself. */
const BLOCKS_AHEAD = 2;

// Places in the control words.
const LOCK = 0;
/** Counts what workers may wait for. */
const CHANGES = 1;
const NEXT_PART = 2;
const PARTS_LEFT = 3;
/** Workers that have no part to read. */
const HELPING = 4;
const FREE_COUNT = 5;
const QUEUE_FIRST = 6;
const QUEUE_COUNT = 7;
const LISTS = 8;

/** The memory, as it crosses to a thread. */
export interface SharedBlocks {
  readonly control: SharedArrayBuffer;
  readonly firstLines: SharedArrayBuffer;
  readonly bytes: SharedArrayBuffer;
}

/** Memory for one block. */
export interface BlockSpace {
  readonly number: number;
  readonly bytes: Buffer;
}

/** A block to scan. */
export interface QueuedBlock {
  readonly space: BlockSpace;
  readonly lines: Buffer;
  readonly part: number;
  /** Number of the first line, from 1. */
  readonly firstLine: number;
  /** The worker that reads the part. */
  readonly reader: number;
}

/** The queue, as one worker sees it. */
export class BlockQueue {
  /** How many workers share it. */
  readonly workers: number;
  readonly #worker: number;
  readonly #control: Int32Array;
  readonly #firstLines: Float64Array;
  readonly #spaces: readonly BlockSpace[];
  /** Where in the control words lists begin: of free blocks, of those that wait, of what each holds, and of what each worker reads. */
  readonly #free: number;
  readonly #queue: number;
  readonly #sizes: number;
  readonly #parts: number;
  readonly #readers: number;
  /** Blocks of a worker's part that are not scanned yet, and the lines of it that are, without the blank ones. */
  readonly #pending: number;
  readonly #counted: number;

  /** The memory for so many workers (at least one) and parts. */
  static allocate(workers: number, parts: number): SharedBlocks {
    const count = workers * BLOCKS_PER_WORKER;
    const control = new Int32Array(new SharedArrayBuffer(4 * (LISTS + 5 * count + 2 * workers)));
    control[PARTS_LEFT] = parts;
    control[FREE_COUNT] = count;
    for (let i = 0; i < count; i++) control[LISTS + i] = i;
    return {
      control: control.buffer,
      firstLines: new SharedArrayBuffer(8 * count),
      bytes: new SharedArrayBuffer(count * BLOCK_BYTES),
    };
  }

  /** For the worker of that number. */
  constructor({ control, firstLines, bytes }: SharedBlocks, worker: number) {
    const count = bytes.byteLength / BLOCK_BYTES;
    this.workers = count / BLOCKS_PER_WORKER;
    this.#worker = worker;
    this.#control = new Int32Array(control);
    this.#firstLines = new Float64Array(firstLines);
    this.#spaces = Array.from({ length: count }, (_, number) => ({
      number,
      bytes: Buffer.from(bytes, number * BLOCK_BYTES, BLOCK_BYTES),
    }));
    this.#free = LISTS;
    this.#queue = LISTS + count;
    this.#sizes = LISTS + 2 * count;
    this.#parts = LISTS + 3 * count;
    this.#readers = LISTS + 4 * count;
    this.#pending = LISTS + 5 * count;
    this.#counted = this.#pending + this.workers;
  }

  /** Place of the next part that nobody reads yet, which this worker then has to read; beyond the last there is none. */
  beginPart(): number {
    Atomics.store(this.#control, this.#counted + this.#worker, 0);
    return Atomics.add(this.#control, NEXT_PART, 1);
  }

  /** This worker has read its part, and all of it is scanned. */
  endPart(): void {
    if (Atomics.sub(this.#control, PARTS_LEFT, 1) === 1) this.#tell();
  }

  /** Lines of this worker's part that were scanned, without the blank ones. */
  get counted(): number {
    return Atomics.load(this.#control, this.#counted + this.#worker);
  }

  /** True where all that was put of this worker's part is scanned. */
  get isPartScanned(): boolean {
    return Atomics.load(this.#control, this.#pending + this.#worker) === 0;
  }

  /** True where each part is read and scanned. */
  get isAllScanned(): boolean {
    return Atomics.load(this.#control, PARTS_LEFT) === 0;
  }

  /** Memory to fill; undefined where all of it is in use, and then blocks wait to be scanned. */
  reserve(): BlockSpace | undefined {
    return this.#locked((control) => {
      if (control[FREE_COUNT] === 0) return undefined;
      control[FREE_COUNT]! -= 1;
      return this.#spaces[control[this.#free + control[FREE_COUNT]!]!]!;
    });
  }

  /** Lines of this worker's part wait to be scanned. */
  put({ number }: BlockSpace, sizeBytes: number, part: number, firstLine: number): void {
    this.#locked((control) => {
      control[this.#sizes + number] = sizeBytes;
      control[this.#parts + number] = part;
      control[this.#readers + number] = this.#worker;
      this.#firstLines[number] = firstLine;
      control[this.#queue + ((control[QUEUE_FIRST]! + control[QUEUE_COUNT]!) % this.#spaces.length)] = number;
      control[QUEUE_COUNT]! += 1;
      control[this.#pending + this.#worker]! += 1;
    });
    this.#tell();
  }

  /** True where more blocks wait than those who help need: one that reads scans them before it goes on. */
  get hasSurplus(): boolean {
    return Atomics.load(this.#control, QUEUE_COUNT) > BLOCKS_AHEAD * Atomics.load(this.#control, HELPING);
  }

  /** The block that waits longest; undefined where none does. */
  take(): QueuedBlock | undefined {
    return this.#locked((control) => {
      if (control[QUEUE_COUNT] === 0) return undefined;
      const number = control[this.#queue + control[QUEUE_FIRST]!]!;
      control[QUEUE_FIRST] = (control[QUEUE_FIRST]! + 1) % this.#spaces.length;
      control[QUEUE_COUNT]! -= 1;
      const space = this.#spaces[number]!;
      return {
        space,
        lines: space.bytes.subarray(0, control[this.#sizes + number]!),
        part: control[this.#parts + number]!,
        firstLine: this.#firstLines[number]!,
        reader: control[this.#readers + number]!,
      };
    });
  }

  /** A block that was taken is scanned, and had so many lines that are not blank: its memory is free. */
  release({ space, reader }: QueuedBlock, records: number): void {
    const isLast = this.#locked((control) => {
      control[this.#free + control[FREE_COUNT]!] = space.number;
      control[FREE_COUNT]! += 1;
      control[this.#counted + reader]! += records;
      control[this.#pending + reader]! -= 1;
      return control[this.#pending + reader] === 0;
    });
    if (isLast) this.#tell();
  }

  /** Scans what others read, until `isDone`, and waits while there is nothing. */
  help(scan: (block: QueuedBlock) => void, isDone: () => boolean): void {
    Atomics.add(this.#control, HELPING, 1);
    for (;;) {
      // Asked before anything else: a change that comes later ends the waiting.
      const changes = Atomics.load(this.#control, CHANGES);
      if (isDone()) break;
      const block = this.take();
      if (block !== undefined) scan(block);
      else Atomics.wait(this.#control, CHANGES, changes);
    }
    Atomics.sub(this.#control, HELPING, 1);
  }

  #tell(): void {
    Atomics.add(this.#control, CHANGES, 1);
    Atomics.notify(this.#control, CHANGES);
  }

  /** Holds the lock for the time of a call, which takes less than a microsecond. */
  #locked<T>(run: (control: Int32Array) => T): T {
    const control = this.#control;
    while (Atomics.compareExchange(control, LOCK, 0, 1) !== 0) Atomics.wait(control, LOCK, 1);
    try {
      return run(control);
    } finally {
      Atomics.store(control, LOCK, 0);
      Atomics.notify(control, LOCK, 1);
    }
  }
}
