/**
 * Reads an index from beginning to end and checks that every byte is what was written. If not, reports where the damage is. It uses read
 * calls instead of a memory mapping: if the file is truncated meanwhile, the result is an error and not a crash.
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

/** The result of a verification. */
export interface VerifyReport {
  readonly path: string;
  readonly sizeBytes: number;
  readonly ok: boolean;
  readonly recordCount: number;
  /** In the order of the file, at most `DAMAGES_MAX`. */
  readonly damages: readonly Damage[];
}

/** Options of a verification. */
export interface VerifyOptions {
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
  /**
   * Number of threads that decode, at most `LIMITS.workers`. With 0 or 1, the caller's thread works alone. Default: the number of cores, but
   * no more threads than the size of the index justifies.
   */
  readonly workers?: number;
  /** Returns walkers that use the caller's threads (with `BucketWalks`); they replace threads that the verification would start. */
  readonly walkers?: (setup: VerifySetup) => readonly BucketWalker[];
  /**
   * Decode only the records of every nth bucket. Default: 1, which decodes all. Checksums and buckets are always checked. For a caller that
   * has just written the file and wants to check that it reached the disk.
   */
  readonly decodeEveryNthBucket?: number;
}

const DAMAGES_MAX = 20;
const BUCKETS_PER_TURN = 8192;
/** Starting a thread takes about as long as decoding this many records, because it compiles its code anew. */
const RECORDS_WORTH_A_THREAD = 500_000;

/**
 * Verifies a file. Damage is reported, not thrown.
 *
 * @throws PagegateError if the file is not an index that this program can read: missing, a directory, another version
 * @throws PagegateError index_changed if the file is modified or truncated meanwhile
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
 * Verifies a source that the caller has opened.
 *
 * @param descriptor of the file, if threads may read it too. Without it, the caller's thread works alone.
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
  const progress = new VerifyProgress(options, header);
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

/** Lets threads check buckets, if there are any threads, and moves the walk past the buckets that they find intact. */
async function walkInThreads(
  walk: RecordWalk,
  setup: VerifySetup,
  options: VerifyOptions,
  header: Header,
  progress: VerifyProgress,
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

/** Counts bytes, and lets other work run between pieces. Each of the two passes reads the directory and the payload once. */
class VerifyProgress {
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

async function checkBlocks(source: IndexSource, header: Header, progress: VerifyProgress): Promise<Damage[]> {
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

/** Converts an error in the header or in a small section to a damaged range of bytes. */
function damageOfSection(source: IndexSource, error: PagegateError): Damage {
  const where = String(error.details['where']);
  if (source.sizeBytes < HEADER_SIZE_BYTES)
    return { offset: 0, sizeBytes: source.sizeBytes, where, what: error.message };
  const raw = decodeHeader(readBytes(source, 0, HEADER_SIZE_BYTES));
  const name = SECTIONS.find((section) => section === where);
  const range = name === undefined ? { offset: 0, size: HEADER_SIZE_BYTES } : raw.sections[name];
  return { offset: range.offset, sizeBytes: range.size, where, what: error.message };
}
