/** The records of an index, one line after the other: whether they are what a writer can have meant. */
import { crc8 } from './checksum.ts';
import type { Header } from './header.ts';
import type { IndexBytes } from './index-bytes.ts';
import { hashKeyA, hashKeyB } from './key-hash.ts';
import {
  HEADER_SIZE_BYTES,
  LINE,
  LINE_SIZE_BYTES,
  LINE_SIZE_WORDS,
  lineOfHash,
  RECORD_MAX_BYTES,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_LINE,
} from './layout.ts';
import { lineIsIntact, readLineBase } from './line.ts';
import { PayloadWindows } from './payload-windows.ts';
import { ImpossibleRecord, RecordDecoder } from './record-decoder.ts';
import { RecordRenderer } from './record-renderer.ts';
import type { RenderTables } from './render-tables.ts';

const NO_TABLE = new Uint8Array(0);

/** One damaged range of bytes of the file. */
export interface Damage {
  /** In bytes from the beginning of the file. */
  readonly offset: number;
  readonly sizeBytes: number;
  readonly where: string;
  readonly what: string;
}

/** Consecutive lines: [from, to). */
export interface LineRange {
  readonly from: number;
  readonly to: number;
}

/** Lines that were walked and have nothing wrong, if the payload of those before them ends where theirs begins. */
export interface SoundLines extends LineRange {
  /** Where their part of the payload begins and ends. */
  readonly base: number;
  readonly end: number;
  readonly recordCount: number;
}

/** Walks lines and records in order and checks what the checksums cannot: that the writer meant something possible. */
export class RecordWalk {
  readonly damages: Damage[] = [];
  recordCount = 0;
  readonly lineCount: number;
  /** The next one to check. */
  line = 0;
  /** Payload bytes of the line checked last. */
  lineSizeBytes = 0;
  readonly #bytes: IndexBytes;
  readonly #header: Header;
  readonly #tables: RenderTables;
  readonly #directory: Uint8Array;
  readonly #words: Uint32Array;
  readonly #payload: PayloadWindows;
  readonly #decoder: RecordDecoder;
  readonly #renderer: RecordRenderer;
  readonly #decodeEveryNthLine: number;
  #expectedBase = 0;
  #hashA = -1;
  #hashB = -1;

  constructor(bytes: IndexBytes, header: Header, tables: RenderTables, decodeEveryNthLine: number) {
    this.#bytes = bytes;
    this.#decodeEveryNthLine = decodeEveryNthLine;
    this.#header = header;
    this.lineCount = header.lineCount;
    this.#tables = tables;
    const { directory, payload } = header.sections;
    this.#payload = new PayloadWindows(bytes, payload.offset, payload.size);
    this.#directory = bytes.view(directory.offset, directory.size);
    this.#words = new Uint32Array(this.#directory.buffer, directory.offset, this.lineCount * LINE_SIZE_WORDS);
    this.#decoder = new RecordDecoder(tables);
    this.#renderer = new RecordRenderer(tables, this.#decoder);
  }

  /** Walks these lines only; undefined where anything is wrong with them. For a walk that has done nothing yet. */
  checkLines({ from, to }: LineRange): SoundLines | undefined {
    const base = readLineBase(this.#directory, from * LINE_SIZE_BYTES);
    this.line = from;
    this.#expectedBase = base;
    while (this.line < to && this.damages.length === 0) this.checkLine();
    if (this.damages.length > 0) return undefined;
    return { from, to, base, end: this.#expectedBase, recordCount: this.recordCount };
  }

  /**
   * Goes on behind lines that another walk has found sound; false where they do not follow on what this one has seen. The base is all
   * that can fail to: a record's hash says which line is its own, so records of sound lines are in hash order across lines, too.
   */
  skip({ from, to, base, end, recordCount }: SoundLines): boolean {
    if (from !== this.line || base !== this.#expectedBase) return false;
    this.line = to;
    this.#expectedBase = end;
    this.recordCount += recordCount;
    return true;
  }

  /** Checks the next line and its records. */
  checkLine(): void {
    const { line } = this;
    this.line += 1;
    this.lineSizeBytes = 0;
    const what = this.#checkSlots(line) ?? this.#checkRecords(line);
    if (what === undefined) return;
    const offset = this.#header.sections.directory.offset + line * LINE_SIZE_BYTES;
    this.damages.push({ offset, sizeBytes: LINE_SIZE_BYTES, where: `line ${line}`, what });
  }

  /** What is wrong with the line itself; undefined when nothing is. */
  #checkSlots(line: number): string | undefined {
    const at = line * LINE_SIZE_BYTES;
    const directory = this.#directory;
    if (!lineIsIntact(this.#words, line)) return 'its check is wrong';
    const base = readLineBase(directory, at);
    if (base !== this.#expectedBase) return `its base is ${base}, expected ${this.#expectedBase}`;
    for (let i = directory[at + LINE.count.offset]!; i < SLOTS_PER_LINE; i++) {
      if (directory[at + LINE.fingerprints.offset + i] !== 0 || directory[at + LINE.lengths.offset + i] !== 0) {
        return 'an unused slot is not zero';
      }
    }
    return undefined;
  }

  /** Checks the records of a line whose slots are in order. */
  #checkRecords(line: number): string | undefined {
    const at = line * LINE_SIZE_BYTES;
    const directory = this.#directory;
    const { payload } = this.#header.sections;
    const base = this.#expectedBase;
    const count = directory[at + LINE.count.offset]!;
    const extra = Math.max(0, count - SLOTS_PER_LINE);
    const tableSize = extra === 0 ? 0 : 2 * extra + 1;
    if (base + tableSize > payload.size) return 'its records lie outside the payload';
    const table = extra === 0 ? NO_TABLE : this.#bytes.view(payload.offset + base, tableSize);
    if (extra > 0 && crc8(table, 0, 2 * extra) !== table[2 * extra]) return 'its overflow table is damaged';
    let offset = base + tableSize;
    for (let i = 0; i < count; i++) {
      const inLine = i < SLOTS_PER_LINE;
      const fingerprint = inLine ? directory[at + LINE.fingerprints.offset + i]! : table[i - SLOTS_PER_LINE]!;
      const code = inLine ? directory[at + LINE.lengths.offset + i]! : table[extra + i - SLOTS_PER_LINE]!;
      const sizeBytes = SIZE_OF_LENGTH_CODE[code]!;
      if (offset + sizeBytes > payload.size) return 'its records lie outside the payload';
      const isDecoded = line % this.#decodeEveryNthLine === 0;
      const what = isDecoded ? this.#checkRecord(offset, sizeBytes, line, fingerprint) : undefined;
      if (what !== undefined) {
        const where = `record ${this.recordCount} (line ${line})`;
        this.damages.push({ offset: payload.offset + offset, sizeBytes, where, what });
      }
      this.recordCount += 1;
      offset += sizeBytes;
    }
    this.lineSizeBytes = offset - base;
    this.#expectedBase = offset;
    return undefined;
  }

  /** What is wrong with a record; undefined when nothing is. */
  #checkRecord(offset: number, size: number, line: number, fingerprint: number): string | undefined {
    if (size > RECORD_MAX_BYTES) return 'it is too long';
    const bytes = this.#payload.at(offset);
    const { start } = this.#payload;
    const last = start + size - 1;
    if (crc8(bytes, start, last) !== bytes[last]) return 'its check byte is wrong';
    const decoder = this.#decoder;
    try {
      decoder.parse(bytes, start, last);
    } catch (error) {
      if (error instanceof ImpossibleRecord) return error.message;
      throw error;
    }
    const hashA = hashKeyA(decoder.domain, 0, decoder.domainSize);
    const hashB = hashKeyB(decoder.domain, 0, decoder.domainSize);
    if (lineOfHash(hashA, this.lineCount) !== line) return 'its domain belongs into another line';
    if ((hashB & 0xff) !== fingerprint) return 'its fingerprint is not that of its domain';
    if (hashA < this.#hashA || (hashA === this.#hashA && hashB < this.#hashB)) return 'it is not in hash order';
    this.#hashA = hashA;
    this.#hashB = hashB;
    const answerSize = this.#renderer.answerSize();
    if (answerSize > this.#tables.metadata.maxAnswerSizeBytes) {
      return `its answer has ${answerSize} bytes, more than the metadata allow`;
    }
    return undefined;
  }

  checkEnd(): void {
    if (this.damages.length > 0) return;
    const { payload } = this.#header.sections;
    if (this.#expectedBase !== payload.size) {
      const sizeBytes = payload.size - this.#expectedBase;
      this.damages.push({
        offset: payload.offset + this.#expectedBase,
        sizeBytes,
        where: 'payload',
        what: 'no line refers to these bytes',
      });
    }
    if (this.recordCount !== this.#header.recordCount) {
      const what = `it says ${this.#header.recordCount} records, there are ${this.recordCount}`;
      this.damages.push({ offset: 0, sizeBytes: HEADER_SIZE_BYTES, where: 'header', what });
    }
  }
}
