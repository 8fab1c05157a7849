/**
 * The state that the workers of a scan share: the next part to read, and a queue of blocks of lines. One worker reads a part and puts
 * blocks, any worker takes and scans them. First in, first out, so that no worker gets lines of a part before earlier ones of it. All of it
 * is in shared memory. A worker waits for others only if there is nothing to do.
 */

/** Space for four lines of maximum length. Small enough to stay in the processor's cache from the copy until the lines are scanned. */
const BLOCK_BYTES = 1 << 18;
/**
 * Blocks for each worker. A reader fills up to two, each worker scans one, and up to `BLOCKS_AHEAD` wait for each helper. With fewer than
 * four for each worker, a reader could find no free block although none is queued.
 */
const BLOCKS_PER_WORKER = 4;
/** Blocks to keep queued for each helper, so that it has work while the reader scans a block itself. */
const BLOCKS_AHEAD = 2;

// Indexes of the control words.
const LOCK = 0;
/** Counts changes that workers may wait for. */
const CHANGES = 1;
const NEXT_PART = 2;
const PARTS_LEFT = 3;
/** Number of helpers: workers that have no part to read, or have read theirs. */
const HELPING = 4;
const FREE_COUNT = 5;
const QUEUE_FIRST = 6;
const QUEUE_COUNT = 7;
const LISTS = 8;

/** The shared memory, in the form that is passed to a thread. */
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
  /** Number of workers that share it. */
  readonly workers: number;
  readonly #worker: number;
  readonly #control: Int32Array;
  readonly #firstLines: Float64Array;
  readonly #spaces: readonly BlockSpace[];
  /** Where the lists begin in the control words: free blocks, queued blocks, and for each block its size, its part and the part's reader. */
  readonly #free: number;
  readonly #queue: number;
  readonly #sizes: number;
  readonly #parts: number;
  readonly #readers: number;
  /** The same for the lists by worker: blocks of its part that are not scanned yet, and lines of its part that are, without blank ones. */
  readonly #pending: number;
  readonly #counted: number;

  /** Allocates the memory. `workers`: at least 1. */
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

  /** The queue for worker `worker`, counted from 0. */
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

  /** Claims the next part for this worker, which then must read it, and returns its index. If there is none, the index is beyond the last part. */
  beginPart(): number {
    Atomics.store(this.#control, this.#counted + this.#worker, 0);
    return Atomics.add(this.#control, NEXT_PART, 1);
  }

  /** Call when this worker's part has been read and scanned. */
  endPart(): void {
    if (Atomics.sub(this.#control, PARTS_LEFT, 1) === 1) this.#notify();
  }

  /** Number of lines of this worker's part that have been scanned, without blank ones. */
  get counted(): number {
    return Atomics.load(this.#control, this.#counted + this.#worker);
  }

  /** True if all blocks put for this worker's part have been scanned. */
  get isPartScanned(): boolean {
    return Atomics.load(this.#control, this.#pending + this.#worker) === 0;
  }

  /** True if all parts have been read and scanned. */
  get isAllScanned(): boolean {
    return Atomics.load(this.#control, PARTS_LEFT) === 0;
  }

  /** Returns a free block to fill. If it returns undefined, all blocks are in use and some are queued. */
  reserve(): BlockSpace | undefined {
    return this.#locked((control) => {
      if (control[FREE_COUNT] === 0) return undefined;
      control[FREE_COUNT]! -= 1;
      return this.#spaces[control[this.#free + control[FREE_COUNT]!]!]!;
    });
  }

  /** Queues a block with lines of this worker's part. `firstLine`: the number of its first line, from 1. */
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
    this.#notify();
  }

  /** True if more blocks are queued than the helpers need. A reader then scans some before it reads on. */
  get hasSurplus(): boolean {
    return Atomics.load(this.#control, QUEUE_COUNT) > BLOCKS_AHEAD * Atomics.load(this.#control, HELPING);
  }

  /** Takes the oldest queued block; undefined if the queue is empty. */
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

  /** Frees a block that has been scanned. `records`: the number of its lines that are not blank. */
  release({ space, reader }: QueuedBlock, records: number): void {
    const isLast = this.#locked((control) => {
      control[this.#free + control[FREE_COUNT]!] = space.number;
      control[FREE_COUNT]! += 1;
      control[this.#counted + reader]! += records;
      control[this.#pending + reader]! -= 1;
      return control[this.#pending + reader] === 0;
    });
    if (isLast) this.#notify();
  }

  /** Scans queued blocks until `isDone` returns true. Waits while the queue is empty. */
  help(scan: (block: QueuedBlock) => void, isDone: () => boolean): void {
    Atomics.add(this.#control, HELPING, 1);
    for (;;) {
      // Read before the checks: a change after this point ends the wait.
      const changes = Atomics.load(this.#control, CHANGES);
      if (isDone()) break;
      const block = this.take();
      if (block !== undefined) scan(block);
      else Atomics.wait(this.#control, CHANGES, changes);
    }
    Atomics.sub(this.#control, HELPING, 1);
  }

  #notify(): void {
    Atomics.add(this.#control, CHANGES, 1);
    Atomics.notify(this.#control, CHANGES);
  }

  /** Calls `run` with the lock held. The call must be short: less than a microsecond. */
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
