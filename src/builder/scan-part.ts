/** First half of a build, for one part: bytes → lines → entries → encoded records, parted by hash into the worker's temporary file. */
import { PagegateError } from '../errors.ts';
import {
  type Catalog,
  type Dictionary,
  fieldsFromEntry,
  hashKeyA,
  hashKeyB,
  RecordEncoder,
  RecordFields,
} from '../index/writer.ts';
import { parseEntry } from '../record/entry.ts';
import type { Finding } from '../record/findings.ts';
import type { VocabularyScope } from '../record/vocabulary.ts';
import { FastScanner } from './fast-scanner.ts';
import { checkCount, checkCountSoFar } from './line-counter.ts';
import { type LineSink, LineSplitter } from './line-splitter.ts';
import type { DropPart } from './manifest.ts';
import { type OnBytes, readPart } from './part-reader.ts';
import type { RankSet } from './rank-set.ts';
import { RejectsWriter } from './rejects.ts';
import type { SpillWriter } from './spill.ts';
import { type Counts, count } from './tally.ts';

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
  readonly scope: VocabularyScope;
  readonly dictionary: Dictionary;
  readonly catalog: Catalog;
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
    this.#scanner = new FastScanner(this.#fields, setup.scope, setup.dictionary.shapes);
  }

  line(buffer: Buffer, start: number, end: number, number: number): void {
    this.records += 1;
    if (this.#scanner.scan(buffer, start, end)) {
      for (const repair of this.#scanner.repairs) count(this.repairs, repair);
      this.#store(number);
      return;
    }
    const parsed = parseEntry(buffer.subarray(start, end), this.#setup.scope);
    for (const finding of parsed.rejects) this.#reject(number, finding);
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

  #reject(line: number, finding: Finding): void {
    count(this.rejects, finding.reason);
    this.#rejectsWriter.add(line, finding);
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

/** Reads parts, one after the other, into one spill. */
export class PartScanner {
  readonly #setup: ScanSetup;
  readonly #encoder: RecordEncoder;
  readonly #spill: SpillWriter;
  #isStopped = false;

  constructor(setup: ScanSetup, spill: SpillWriter) {
    this.#setup = setup;
    this.#encoder = new RecordEncoder(setup.dictionary, setup.catalog);
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
   * Reads the part of that number in the manifest. Throws what `readPart` throws, and `drop_part_records` where the part
   * has another number of lines than its manifest says.
   */
  async scan(number: number, part: DropPart, onBytes?: OnBytes): Promise<PartOutcome> {
    const rejects = new RejectsWriter(this.#setup.tempDir, number, part.name);
    const sink = new EntrySink(number, this.#setup, this.#encoder, this.#spill, rejects);
    const lines = new LineSplitter(sink);
    try {
      for await (const chunk of readPart(this.#setup.drop, part, onBytes)) {
        if (this.#isStopped) throw new PagegateError('interrupted');
        lines.push(chunk);
        checkCountSoFar(part, sink.records);
      }
      if (this.#isStopped) throw new PagegateError('interrupted');
      lines.end();
    } finally {
      rejects.close();
    }
    checkCount(part, sink.records);
    const { records, entries, pages, ranksRepeated, repairs } = sink;
    return { records, entries, pages, ranksRepeated, rejects: sink.rejects, repairs };
  }
}
