/** First half of a build: bytes → lines → entries → encoded records, partitioned by hash into the worker's temporary file. */
import { lineBlocks } from '../../drop/line-blocks.ts';
import { checkCount, checkCountSoFar } from '../../drop/line-counter.ts';
import { type LineSink, LineSplitter } from '../../drop/line-splitter.ts';
import type { DropPart } from '../../drop/manifest.ts';
import { type PartReadOptions, readPart } from '../../drop/part-reader.ts';
import { PagegateError } from '../../errors.ts';
import {
  type Dictionary,
  fieldsFromEntry,
  hashKeyA,
  hashKeyB,
  RecordEncoder,
  RecordFields,
} from '../../index/write.ts';
import { parseEntry } from '../../record/entry.ts';
import type { RecordNames } from '../../record/names.ts';
import type { Reject } from '../../record/reject-reasons.ts';
import type { VocabularyScope } from '../../record/vocabulary.ts';
import type { SpillWriter } from '../arrange/spill.ts';
import { RejectsWriter } from '../files/rejects-file.ts';
import type { BlockQueue, BlockSpace, QueuedBlock } from './block-queue.ts';
import { type Counts, increment } from './counts.ts';
import { FastScanner } from './fast-scanner.ts';
import { HeldLines } from './held-lines.ts';
import type { RankSet } from './rank-set.ts';

/** The counts of one worker's scan. */
export interface ScanOutcome {
  /** Lines that are not blank. */
  readonly records: number;
  readonly entries: number;
  readonly pages: number;
  readonly rejects: Counts;
  readonly repairs: Counts;
  /** Entries whose global rank an entry scanned earlier already had. */
  readonly ranksRepeated: number;
}

/** Everything that a worker needs to scan. */
export interface ScanSetup {
  readonly drop: string;
  readonly parts: readonly DropPart[];
  readonly tempDir: string;
  readonly worker: number;
  readonly scope: VocabularyScope;
  readonly dictionary: Dictionary;
  readonly names: RecordNames;
  readonly ranks: RankSet;
  readonly queue: BlockQueue;
}

const NO_BYTES = Buffer.alloc(0);

/** Parses lines, encodes their records and adds them to the spill. */
class EntrySink implements LineSink {
  readonly rejects: Counts = {};
  readonly repairs: Counts = {};
  /** Number of the part that the next lines belong to. */
  part = 0;
  records = 0;
  entries = 0;
  pages = 0;
  ranksRepeated = 0;
  readonly #setup: ScanSetup;
  readonly #rejectsWriter: RejectsWriter;
  readonly #encoder: RecordEncoder;
  readonly #fields = new RecordFields();
  readonly #scanner: FastScanner;
  readonly #spill: SpillWriter;
  /** Lines that the fast scanner does not know. Each is held with its place in the drop, so it may be read later. */
  readonly #odd: HeldLines = new HeldLines((...line) => this.#readOdd(...line));

  constructor(setup: ScanSetup, encoder: RecordEncoder, spill: SpillWriter) {
    this.#setup = setup;
    this.#encoder = encoder;
    this.#spill = spill;
    this.#rejectsWriter = new RejectsWriter(setup);
    this.#scanner = new FastScanner(this.#fields, setup.scope, setup.dictionary.pathTemplates);
  }

  line(buffer: Buffer, start: number, end: number, number: number): void {
    this.records += 1;
    if (!this.#scanner.scan(buffer, start, end)) {
      this.#odd.add(buffer, start, end, this.part, number);
      return;
    }
    for (const repair of this.#scanner.repairs) increment(this.repairs, repair);
    this.#store(this.part, number);
  }

  overlong(number: number): void {
    this.records += 1;
    // Held as an empty line, because the rejects of a part must be written in the order of its lines.
    this.#odd.add(NO_BYTES, 0, 0, this.part, number);
  }

  repair(name: string): void {
    increment(this.repairs, name);
  }

  /** Call after the last line. */
  end(): void {
    this.#odd.readAll();
    this.#rejectsWriter.flush();
  }

  #readOdd(buffer: Buffer, start: number, end: number, part: number, line: number): void {
    if (start === end) {
      this.#reject(part, line, { level: 'line', reason: 'line_too_long', detail: '' });
      return;
    }
    const parsed = parseEntry(buffer.subarray(start, end), this.#setup.scope);
    for (const reject of parsed.rejects) this.#reject(part, line, reject);
    for (const repair of parsed.repairs) increment(this.repairs, repair);
    if (parsed.entry === undefined) return;
    fieldsFromEntry(parsed.entry, this.#fields);
    this.#store(part, line);
  }

  #reject(part: number, line: number, reject: Reject): void {
    increment(this.rejects, reject.reason);
    this.#rejectsWriter.add(part, line, reject);
  }

  #store(part: number, line: number): void {
    const fields = this.#fields;
    const size = this.#encoder.encode(fields);
    const { source, domainStart, domainEnd } = fields;
    const hashA = hashKeyA(source, domainStart, domainEnd);
    const hashB = hashKeyB(source, domainStart, domainEnd);
    this.#spill.add(hashA, hashB, part, line, this.#encoder.out, size);
    this.entries += 1;
    this.pages += fields.pageCount;
    if (fields.globalRank !== 0 && this.#setup.ranks.add(fields.globalRank)) this.ranksRepeated += 1;
  }
}

/**
 * Reads parts, one after the other, and scans lines into one spill. Each part is read by one worker. The smaller parts come first; their
 * reader scans them in place. The lines of the largest parts, one for each worker, go through the queue, from which workers that have no
 * part to read take them. So it makes no difference whether a drop is one part or many, and all workers end at the same time.
 */
export class PartScanner {
  readonly #setup: ScanSetup;
  readonly #encoder: RecordEncoder;
  readonly #sink: EntrySink;
  readonly #lines: LineSplitter;
  /** Numbers of the parts, the smallest first. */
  readonly #order: readonly number[];
  #isStopped = false;

  /** @param spill receives the records */
  constructor(setup: ScanSetup, spill: SpillWriter) {
    this.#setup = setup;
    this.#encoder = new RecordEncoder(setup.dictionary, setup.names);
    this.#sink = new EntrySink(setup, this.#encoder, spill);
    this.#lines = new LineSplitter(this.#sink);
    const { parts } = setup;
    this.#order = parts.map((_, number) => number).sort((a, b) => parts[a]!.bytes - parts[b]!.bytes || a - b);
  }

  /** Size of the largest answer that any record scanned so far can produce. */
  get maxAnswerSizeBytes(): number {
    return this.#encoder.maxAnswerSizeBytes;
  }

  /** Stops a running scan before it adds to the spill again. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Reads parts as long as there are any, then helps the other workers until all parts are scanned.
   *
   * @throws PagegateError drop_part_records if a part does not have the number of lines that the manifest states, and whatever `readPart` throws
   */
  async scan(options?: PartReadOptions): Promise<ScanOutcome> {
    const { queue } = this.#setup;
    const order = this.#order;
    for (let place = queue.beginPart(); place < order.length; place = queue.beginPart()) {
      if (place + queue.workers < order.length) await this.#scanAlone(order[place]!, options);
      else await this.#share(order[place]!, options);
      queue.endPart();
    }
    queue.help(this.#scanBlock, () => queue.isAllScanned);
    this.#sink.end();
    const { records, entries, pages, ranksRepeated, rejects, repairs } = this.#sink;
    return { records, entries, pages, ranksRepeated, rejects, repairs };
  }

  async #scanAlone(number: number, options?: PartReadOptions): Promise<void> {
    const { drop, parts } = this.#setup;
    const part = parts[number]!;
    const sink = this.#sink;
    const before = sink.records;
    sink.part = number;
    this.#lines.skipTo(1);
    for await (const chunk of readPart(drop, part, options)) {
      this.#throwIfStopped();
      this.#lines.push(chunk);
      checkCountSoFar(part, sink.records - before);
    }
    this.#throwIfStopped();
    this.#lines.end();
    checkCount(part, sink.records - before);
  }

  async #share(number: number, options?: PartReadOptions): Promise<void> {
    const { drop, parts, queue } = this.#setup;
    const part = parts[number]!;
    for await (const block of lineBlocks(readPart(drop, part, options), this.#reserve)) {
      queue.put(block.space, block.sizeBytes, number, block.firstLine);
      // If no worker helps, each block is scanned here at once, while it is still in this core's cache.
      while (queue.hasSurplus) this.#scanOldest();
      checkCountSoFar(part, queue.counted);
    }
    this.#throwIfStopped();
    queue.help(this.#scanBlock, () => queue.isPartScanned);
    checkCount(part, queue.counted);
  }

  #throwIfStopped(): void {
    if (this.#isStopped) throw new PagegateError('interrupted');
  }

  readonly #reserve = (): BlockSpace => {
    const { queue } = this.#setup;
    for (;;) {
      const space = queue.reserve();
      if (space !== undefined) return space;
      this.#scanOldest();
    }
  };

  #scanOldest(): void {
    const block = this.#setup.queue.take();
    if (block !== undefined) this.#scanBlock(block);
  }

  readonly #scanBlock = (block: QueuedBlock): void => {
    this.#throwIfStopped();
    const sink = this.#sink;
    const before = sink.records;
    sink.part = block.part;
    this.#lines.skipTo(block.firstLine);
    this.#lines.push(block.lines);
    this.#lines.end();
    this.#setup.queue.release(block, sink.records - before);
  };
}
