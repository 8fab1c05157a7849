/**
 * Reads an index from end to end and says whether every byte of it is what was written, and if not, where the first damage is. It reads
 * with calls and not through a mapping: a file that is cut meanwhile ends it with an error.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PagegateError } from '../errors.ts';
import { workerCount } from '../platform/threads.ts';
import { xxh64 } from './format/checksum.ts';
import { decodeHeader, type Header } from './format/header.ts';
import {
  BLOCK_CHECKSUM_SIZE_BYTES,
  BLOCK_SIZE_BYTES,
  BUCKET_SIZE_BYTES,
  HEADER_SIZE_BYTES,
  SECTIONS,
} from './format/layout.ts';
import { readHeader, readTables } from './read/checked-sections.ts';
import { chunksOf, isZero } from './read/chunk-reader.ts';
import { IndexFile } from './read/index-file.ts';
import { type IndexSource, readBytes } from './read/index-source.ts';
import type { RenderTables } from './read/render-tables.ts';
import { type Damage, RecordWalk } from './verify/record-walk.ts';
import type { BucketWalker, IntactBuckets, VerifySetup } from './verify/verify-messages.ts';
import { skipIntactBuckets, VerifyThreads } from './verify/verify-pool.ts';

export { BucketWalks } from './verify/bucket-walks.ts';
export type { BucketRange, IntactBuckets, VerifySetup } from './verify/verify-messages.ts';

/** What came of it. */
export interface VerifyReport {
  readonly path: string;
  readonly sizeBytes: number;
  readonly ok: boolean;
  readonly recordCount: number;
  /** In the order of the file, at most `DAMAGES_MAX`. */
  readonly damages: readonly Damage[];
}

/** How an index is verified. */
export interface VerifyOptions {
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
  /**
   * Threads that decode, at most `LIMITS.workers` of them; with 0 or 1 the caller's does it alone. Without it, as many as the machine has
   * cores, but no more than have enough to do.
   */
  readonly workers?: number;
  /** In place of threads of its own: what walks buckets in threads that the caller has, with `BucketWalks`. */
  readonly walkers?: (setup: VerifySetup) => readonly BucketWalker[];
  /**
   * Decode the records of every nth bucket only (1, all of them, without it); checksums and buckets are checked throughout. For whoever has
   * just written the file and wants to know that it reached the disk.
   */
  readonly decodeEveryNthBucket?: number;
}

const DAMAGES_MAX = 20;
const BUCKETS_PER_TURN = 8192;
/** Starting a thread, whose code is compiled again, takes about as long as decoding so many records. */
const RECORDS_WORTH_A_THREAD = 500_000;

/**
 * Verifies a file. Damage is reported, not thrown.
 *
 * @throws PagegateError for what is no index that this program reads: missing, a directory, another version
 * @throws PagegateError index_changed where the file is written to, or cut, meanwhile
 */
export async function verifyIndex(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const file = new IndexFile(path);
  try {
    const report = await verifyIndexBytes(file, options, file.descriptor);
    const problem = file.problem();
    if (problem !== undefined) throw problem;
    return report;
  } finally {
    file.close();
  }
}

/**
 * The same over bytes that somebody else opened.
 *
 * @param descriptor of the file, where threads may read it, too; without it all is done in the caller's thread.
 */
export async function verifyIndexBytes(
  source: IndexSource,
  options: VerifyOptions = {},
  descriptor?: number,
): Promise<VerifyReport> {
  const damages: Damage[] = [];
  let recordCount = 0;
  let header: Header;
  let tables: RenderTables;
  try {
    header = readHeader(source);
    damages.push(...checkGaps(source, header));
    tables = readTables(source, header);
  } catch (error) {
    if (!(error instanceof PagegateError) || error.code !== 'index_corrupt') throw error;
    damages.push(damageOfSection(source, error));
    return { path: source.path, sizeBytes: source.sizeBytes, ok: false, recordCount, damages };
  }
  const progress = new ProgressOf(options, header);
  damages.push(...(await checkBlocks(source, header, progress)));
  if (damages.length === 0) {
    const { decodeEveryNthBucket = 1 } = options;
    const walk = new RecordWalk(source, header, tables, decodeEveryNthBucket);
    if (descriptor !== undefined) {
      const { path, sizeBytes } = source;
      await walkInThreads(walk, { path, descriptor, sizeBytes, decodeEveryNthBucket }, options, header, progress);
    }
    while (walk.bucket < header.bucketCount && walk.damages.length < DAMAGES_MAX) {
      if (walk.bucket % BUCKETS_PER_TURN === 0) await progress.pause();
      walk.checkBucket();
      progress.add(BUCKET_SIZE_BYTES + walk.bucketRecordsSizeBytes);
    }
    await progress.pause();
    walk.checkEnd();
    recordCount = walk.recordCount;
    damages.push(...walk.damages);
  }
  const sorted = damages.sort((a, b) => a.offset - b.offset).slice(0, DAMAGES_MAX);
  return { path: source.path, sizeBytes: source.sizeBytes, ok: sorted.length === 0, recordCount, damages: sorted };
}

/** Takes the walk past what threads find intact, where there are any. */
async function walkInThreads(
  walk: RecordWalk,
  setup: VerifySetup,
  options: VerifyOptions,
  header: Header,
  progress: ProgressOf,
): Promise<void> {
  const onSkipped = async ({ from, to, base, end }: IntactBuckets): Promise<void> => {
    progress.add((to - from) * BUCKET_SIZE_BYTES + end - base);
    await progress.pause();
  };
  if (options.walkers !== undefined) {
    await skipIntactBuckets(walk, options.walkers(setup), onSkipped, options.signal);
    return;
  }
  const workers = countWorkers(options, header);
  if (workers < 2) return;
  const threads = new VerifyThreads(Math.min(workers, header.bucketCount), setup);
  try {
    await skipIntactBuckets(walk, threads.walkers, onSkipped, options.signal);
  } finally {
    await threads.close();
  }
}

function countWorkers({ workers, decodeEveryNthBucket = 1 }: VerifyOptions, header: Header): number {
  if (workers !== undefined) return workerCount(workers);
  const worthwhile = Math.floor(header.recordCount / decodeEveryNthBucket / RECORDS_WORTH_A_THREAD);
  return Math.min(worthwhile, workerCount(undefined));
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

function checkGaps(source: IndexSource, header: Header): Damage[] {
  const damages: Damage[] = [];
  let end = HEADER_SIZE_BYTES;
  for (const name of SECTIONS) {
    const { offset, size } = header.sections[name];
    if (!isZero(source, end, offset - end)) {
      damages.push({ offset: end, sizeBytes: offset - end, where: `gap before ${name}`, what: 'it is not zero' });
    }
    end = offset + size;
  }
  return damages;
}

async function checkBlocks(source: IndexSource, header: Header, progress: ProgressOf): Promise<Damage[]> {
  const damages: Damage[] = [];
  const { blocks } = header.sections;
  const expected = new DataView(readBytes(source, blocks.offset, blocks.size).buffer);
  let block = 0;
  for (const name of ['directory', 'payload'] as const) {
    let { offset } = header.sections[name];
    for (const piece of chunksOf(source, header.sections[name], BLOCK_SIZE_BYTES)) {
      const sizeBytes = piece.length;
      if (xxh64(piece) !== expected.getBigUint64(block * BLOCK_CHECKSUM_SIZE_BYTES, true)) {
        damages.push({ offset, sizeBytes, where: name, what: `the checksum of block ${block} is wrong` });
        if (damages.length >= DAMAGES_MAX) return damages;
      }
      block++;
      offset += sizeBytes;
      progress.add(sizeBytes);
      if (block % 16 === 0) await progress.pause();
    }
  }
  return damages;
}

/** An error of the header or of a small section, as a range of bytes. */
function damageOfSection(source: IndexSource, error: PagegateError): Damage {
  const where = String(error.details['where']);
  if (source.sizeBytes < HEADER_SIZE_BYTES)
    return { offset: 0, sizeBytes: source.sizeBytes, where, what: error.message };
  const raw = decodeHeader(readBytes(source, 0, HEADER_SIZE_BYTES));
  const name = SECTIONS.find((section) => section === where);
  const range = name === undefined ? { offset: 0, size: HEADER_SIZE_BYTES } : raw.sections[name];
  return { offset: range.offset, sizeBytes: range.size, where, what: error.message };
}
