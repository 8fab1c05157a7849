/** First half of a build, for one part: bytes → lines → entries → encoded records, partitioned by hash into the worker's temporary file. */

import type { LineBlock } from '../../drop/line-blocks.ts';
import { checkCount, checkCountSoFar } from '../../drop/line-counter.ts';
import { type LineSink, LineSplitter } from '../../drop/line-splitter.ts';
import type { DropPart } from '../../drop/manifest.ts';
import { type OnBytes, readPart } from '../../drop/part-reader.ts';
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
import { type Counts, count } from './counts.ts';
import { FastScanner } from './fast-scanner.ts';
import type { RankSet } from './rank-set.ts';

/** What came of one part. */
export interface PartOutcome {
  /** Lines that are not blank. */
  readonly records: number;
  readonly entries: number;
  readonly pages: number;
  readonly rejects: Counts;
  readonly repairs: Counts;
  /** Entries whose global rank another entry before had already. */
  readonly ranksRepeated: number;
}

/** What all parts that one worker reads have in common. */
export interface ScanSetup {
  readonly drop: string;
  readonly tempDir: string;
  /** Number of the worker. */
  readonly worker: number;
  readonly scope: VocabularyScope;
  readonly dictionary: Dictionary;
  readonly names: RecordNames;
  readonly ranks: RankSet;
}

/** Takes lines, gives records to the spill. */
class EntrySink implements LineSink {
  readonly rejects: Counts = {};
  readonly repairs: Counts = {};
  records = 0;
  entries = 0;
  pages = 0;
  ranksRepeated = 0;
  readonly #part: number;
  readonly #setup: ScanSetup;
  readonly #encoder: RecordEncoder;
  readonly #fields = new RecordFields();
  readonly #scanner: FastScanner;
  readonly #spill: SpillWriter;
  readonly #rejectsWriter: RejectsWriter;

  constructor(part: number, setup: ScanSetup, encoder: RecordEncoder, spill: SpillWriter, rejects: RejectsWriter) {
    this.#part = part;
    this.#setup = setup;
    this.#encoder = encoder;
    this.#spill = spill;
    this.#rejectsWriter = rejects;
    this.#scanner = new FastScanner(this.#fields, setup.scope, setup.dictionary.pathTemplates);
  }

  line(buffer: Buffer, start: number, end: number, number: number): void {
    this.records += 1;
    if (this.#scanner.scan(buffer, start, end)) {
      for (const repair of this.#scanner.repairs) count(this.repairs, repair);
      this.#store(number);
      return;
    }
    const parsed = parseEntry(buffer.subarray(start, end), this.#setup.scope);
    for (const reject of parsed.rejects) this.#reject(number, reject);
    for (const repair of parsed.repairs) count(this.repairs, repair);
    if (parsed.entry === undefined) return;
    fieldsFromEntry(parsed.entry, this.#fields);
    this.#store(number);
  }

  overlong(number: number): void {
    this.records += 1;
    this.#reject(number, { level: 'line', reason: 'line_too_long', detail: '' });
  }

  repair(name: string): void {
    count(this.repairs, name);
  }

  #reject(line: number, reject: Reject): void {
    count(this.rejects, reject.reason);
    this.#rejectsWriter.add(line, reject);
  }

  #store(line: number): void {
    const fields = this.#fields;
    const size = this.#encoder.encode(fields);
    const { source, domainStart, domainEnd } = fields;
    const hashA = hashKeyA(source, domainStart, domainEnd);
    const hashB = hashKeyB(source, domainStart, domainEnd);
    this.#spill.add(hashA, hashB, this.#part, line, this.#encoder.out, size);
    this.entries += 1;
    this.pages += fields.pageCount;
    if (fields.globalRank !== 0 && this.#setup.ranks.add(fields.globalRank)) this.ranksRepeated += 1;
  }
}

/** What scans the lines of one part. */
class PartScan {
  readonly rejects: RejectsWriter;
  readonly sink: EntrySink;
  readonly lines: LineSplitter;

  constructor(number: number, part: DropPart, setup: ScanSetup, encoder: RecordEncoder, spill: SpillWriter) {
    this.rejects = new RejectsWriter(setup, number, part.name);
    this.sink = new EntrySink(number, setup, encoder, spill, this.rejects);
    this.lines = new LineSplitter(this.sink);
  }

  get outcome(): PartOutcome {
    const { records, entries, pages, ranksRepeated, rejects, repairs } = this.sink;
    return { records, entries, pages, ranksRepeated, rejects, repairs };
  }
}

/** Reads parts, one after the other, into one spill. */
export class PartScanner {
  readonly #setup: ScanSetup;
  readonly #encoder: RecordEncoder;
  readonly #spill: SpillWriter;
  #isStopped = false;
  /** The part that is fed. */
  #fed: PartScan | undefined;

  /** What it reads goes into that spill file. */
  constructor(setup: ScanSetup, spill: SpillWriter) {
    this.#setup = setup;
    this.#encoder = new RecordEncoder(setup.dictionary, setup.names);
    this.#spill = spill;
  }

  /** No answer from what was read so far is longer. */
  get maxAnswerSizeBytes(): number {
    return this.#encoder.maxAnswerSizeBytes;
  }

  /** Ends a scan that is under way, before it touches the spill again. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Reads the part of that number in the manifest.
   *
   * @throws PagegateError drop_part_records where the part has another number of lines than its manifest says, and what `readPart` throws
   */
  async scan(number: number, part: DropPart, onBytes?: OnBytes): Promise<PartOutcome> {
    const scan = new PartScan(number, part, this.#setup, this.#encoder, this.#spill);
    const { sink, lines } = scan;
    try {
      for await (const chunk of readPart(this.#setup.drop, part, onBytes)) {
        if (this.#isStopped) throw new PagegateError('interrupted');
        lines.push(chunk);
        checkCountSoFar(part, sink.records);
      }
      if (this.#isStopped) throw new PagegateError('interrupted');
      lines.end();
    } finally {
      scan.rejects.close();
    }
    checkCount(part, sink.records);
    return scan.outcome;
  }

  /** Scans some lines of a part that somebody else reads; how many of them are not blank. */
  feed(number: number, part: DropPart, { bytes, firstLine }: LineBlock): number {
    this.#fed ??= new PartScan(number, part, this.#setup, this.#encoder, this.#spill);
    const { sink, lines } = this.#fed;
    const before = sink.records;
    lines.skipTo(firstLine);
    lines.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    lines.end();
    return sink.records - before;
  }

  /** What came of the lines that were fed. */
  endFeed(number: number, part: DropPart): PartOutcome {
    const scan = this.#fed ?? new PartScan(number, part, this.#setup, this.#encoder, this.#spill);
    this.#fed = undefined;
    scan.rejects.close();
    return scan.outcome;
  }
}
