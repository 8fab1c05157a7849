/** Reads an index from end to end and says whether every byte of it is what was written, and if not, where the first damage is. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PagegateError } from '../errors.ts';
import { crc8, xxh64 } from './checksum.ts';
import { decodeHeader, type Header, readHeader } from './header.ts';
import type { IndexBytes } from './index-bytes.ts';
import { xxh32 } from './key-hash.ts';
import {
  BLOCK_CHECKSUM_SIZE_BYTES,
  BLOCK_SIZE_BYTES,
  HEADER_SIZE_BYTES,
  LINE,
  LINE_SIZE_BYTES,
  LINE_SIZE_WORDS,
  lineOfHash,
  MAX_RECORD_SIZE_BYTES,
  SECTIONS,
  SEED_A,
  SEED_B,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_LINE,
} from './layout.ts';
import { lineIsIntact, readLineBase } from './line.ts';
import { openMappedFile } from './mapped-file.ts';
import { PayloadWindows } from './payload-windows.ts';
import { readTables } from './read-tables.ts';
import { ImpossibleRecord, RecordDecoder } from './record-decoder.ts';
import { RecordRenderer } from './record-renderer.ts';
import type { RenderTables } from './render-tables.ts';

/** One damaged range of bytes of the file. */
export interface Damage {
  /** In bytes from the beginning of the file. */
  readonly offset: number;
  readonly sizeBytes: number;
  readonly where: string;
  readonly what: string;
}

export interface VerifyReport {
  readonly path: string;
  readonly sizeBytes: number;
  readonly ok: boolean;
  readonly recordCount: number;
  /** In the order of the file, at most `MAX_DAMAGES`. */
  readonly damages: readonly Damage[];
}

export interface VerifyOptions {
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
  /**
   * Decode the records of every nth line only (1, all of them, without it); checksums and lines are checked throughout. For who has
   * just written the file and wants to know that it reached the disk.
   */
  readonly decodeEveryNthLine?: number;
}

const MAX_DAMAGES = 20;
const LINES_PER_TURN = 8192;
const NO_TABLE = new Uint8Array(0);

/** Verifies a file. Damage is reported, not thrown; what is no index at all (missing, a directory, a newer version) throws. */
export async function verifyIndex(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const bytes = openMappedFile(path);
  try {
    return await verifyIndexBytes(bytes, options);
  } finally {
    bytes.close();
  }
}

/** The same over bytes that somebody else opened. */
export async function verifyIndexBytes(bytes: IndexBytes, options: VerifyOptions = {}): Promise<VerifyReport> {
  const damages: Damage[] = [];
  let recordCount = 0;
  let header: Header;
  let tables: RenderTables;
  try {
    header = readHeader(bytes);
    damages.push(...checkGaps(bytes, header));
    tables = readTables(bytes, header);
  } catch (error) {
    if (!(error instanceof PagegateError) || error.code !== 'index_corrupt') throw error;
    damages.push(damageOfSection(bytes, error));
    return { path: bytes.path, sizeBytes: bytes.sizeBytes, ok: false, recordCount, damages };
  }
  const progress = new ProgressOf(options, header);
  damages.push(...(await checkBlocks(bytes, header, progress)));
  if (damages.length === 0) {
    const walk = new RecordWalk(bytes, header, tables, options.decodeEveryNthLine ?? 1);
    for (let line = 0; line < header.lineCount && walk.damages.length < MAX_DAMAGES; line++) {
      if (line % LINES_PER_TURN === 0) await progress.pause();
      walk.checkLine(line);
      progress.add(LINE_SIZE_BYTES + walk.lineSizeBytes);
    }
    walk.checkEnd();
    recordCount = walk.recordCount;
    damages.push(...walk.damages);
  }
  const sorted = damages.sort((a, b) => a.offset - b.offset).slice(0, MAX_DAMAGES);
  return { path: bytes.path, sizeBytes: bytes.sizeBytes, ok: sorted.length === 0, recordCount, damages: sorted };
}

/** Counts bytes and lets other work run between pieces. Both passes read the directory and the payload once. */
class ProgressOf {
  readonly #options: VerifyOptions;
  readonly #total: number;
  #done = 0;

  constructor(options: VerifyOptions, header: Header) {
    this.#options = options;
    this.#total = 2 * (header.sections.directory.size + header.sections.payload.size);
  }

  add(bytes: number): void {
    this.#done += bytes;
  }

  async pause(): Promise<void> {
    this.#options.signal?.throwIfAborted();
    this.#options.onProgress?.(this.#done, this.#total);
    await nextTurn();
  }
}

function checkGaps(bytes: IndexBytes, header: Header): Damage[] {
  const damages: Damage[] = [];
  let end = HEADER_SIZE_BYTES;
  for (const name of SECTIONS) {
    const { offset, size } = header.sections[name];
    if (bytes.view(end, offset - end).some((byte) => byte !== 0)) {
      damages.push({ offset: end, sizeBytes: offset - end, where: `gap before ${name}`, what: 'it is not zero' });
    }
    end = offset + size;
  }
  return damages;
}

async function checkBlocks(bytes: IndexBytes, header: Header, progress: ProgressOf): Promise<Damage[]> {
  const damages: Damage[] = [];
  const { blocks } = header.sections;
  const expected = bytes.view(blocks.offset, blocks.size);
  const view = new DataView(expected.buffer, expected.byteOffset, expected.byteLength);
  let block = 0;
  for (const name of ['directory', 'payload'] as const) {
    const { offset, size } = header.sections[name];
    for (let at = 0; at < size; at += BLOCK_SIZE_BYTES) {
      const sizeBytes = Math.min(BLOCK_SIZE_BYTES, size - at);
      if (xxh64(bytes.view(offset + at, sizeBytes)) !== view.getBigUint64(block * BLOCK_CHECKSUM_SIZE_BYTES, true)) {
        damages.push({ offset: offset + at, sizeBytes, where: name, what: `the checksum of block ${block} is wrong` });
        if (damages.length >= MAX_DAMAGES) return damages;
      }
      block++;
      progress.add(sizeBytes);
      if (block % 16 === 0) await progress.pause();
    }
  }
  return damages;
}

/** Walks lines and records in order and checks what the checksums cannot: that the writer meant something possible. */
class RecordWalk {
  readonly damages: Damage[] = [];
  recordCount = 0;
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
    this.#tables = tables;
    const { directory, payload } = header.sections;
    this.#payload = new PayloadWindows(bytes, payload.offset, payload.size);
    this.#directory = bytes.view(directory.offset, directory.size);
    this.#words = new Uint32Array(this.#directory.buffer, directory.offset, header.lineCount * LINE_SIZE_WORDS);
    this.#decoder = new RecordDecoder(tables);
    this.#renderer = new RecordRenderer(tables, this.#decoder);
  }

  /** Checks the next line and its records. */
  checkLine(line: number): void {
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
    if (size > MAX_RECORD_SIZE_BYTES) return 'it is too long';
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
    const hashA = xxh32(decoder.domain, 0, decoder.domainSize, SEED_A);
    const hashB = xxh32(decoder.domain, 0, decoder.domainSize, SEED_B);
    if (lineOfHash(hashA, this.#header.lineCount) !== line) return 'its domain belongs into another line';
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

/** An error of the header or of a small section, as a range of bytes. */
function damageOfSection(bytes: IndexBytes, error: PagegateError): Damage {
  const where = String(error.details['where']);
  if (bytes.sizeBytes < HEADER_SIZE_BYTES) return { offset: 0, sizeBytes: bytes.sizeBytes, where, what: error.message };
  const raw = decodeHeader(bytes.view(0, HEADER_SIZE_BYTES));
  const name = SECTIONS.find((section) => section === where);
  const range = name === undefined ? { offset: 0, size: HEADER_SIZE_BYTES } : raw.sections[name];
  return { offset: range.offset, sizeBytes: range.size, where, what: error.message };
}
