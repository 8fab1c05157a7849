/** Reads an index from end to end and says whether every byte of it is what was written, and if not, where the first damage is. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PagegateError } from '../errors.ts';
import { workerCount } from '../platform/threads.ts';
import { xxh64 } from './format/checksum.ts';
import { decodeHeader, type Header, readHeader } from './format/header.ts';
import {
  BLOCK_CHECKSUM_SIZE_BYTES,
  BLOCK_SIZE_BYTES,
  BUCKET_SIZE_BYTES,
  HEADER_SIZE_BYTES,
  SECTIONS,
} from './format/layout.ts';
import type { IndexBytes } from './read/index-bytes.ts';
import { openMappedFile } from './read/mapped-file.ts';
import { readTables } from './read/read-tables.ts';
import type { RenderTables } from './read/render-tables.ts';
import { type Damage, type IntactBuckets, RecordWalk } from './verify/record-walk.ts';
import { walkInThreads } from './verify/verify-pool.ts';

export interface VerifyReport {
  readonly path: string;
  readonly sizeBytes: number;
  readonly ok: boolean;
  readonly recordCount: number;
  /** In the order of the file, at most `DAMAGES_MAX`. */
  readonly damages: readonly Damage[];
}

export interface VerifyOptions {
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
  /**
   * Threads that decode, at most `WORKERS_MAX` of them; with 0 or 1 the caller's does it alone. Without it, as many as the machine has
   * cores, but no more than have enough to do.
   */
  readonly workers?: number;
  /**
   * Decode the records of every nth bucket only (1, all of them, without it); checksums and buckets are checked throughout. For who has
   * just written the file and wants to know that it reached the disk.
   */
  readonly decodeEveryNthBucket?: number;
}

const DAMAGES_MAX = 20;
const BUCKETS_PER_TURN = 8192;
/** To start a thread, and to have its code compiled anew, takes about as long as to decode so many records. */
const RECORDS_WORTH_A_THREAD = 500_000;

/** Verifies a file. Damage is reported, not thrown; what is no index at all (missing, a directory, a newer version) throws. */
export async function verifyIndex(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const bytes = openMappedFile(path);
  try {
    return await verify(bytes, options, bytes.address);
  } finally {
    bytes.close();
  }
}

/** The same over bytes that somebody else opened, in the caller's thread. */
export function verifyIndexBytes(
  bytes: IndexBytes,
  options: Omit<VerifyOptions, 'workers'> = {},
): Promise<VerifyReport> {
  return verify(bytes, options);
}

/** With the address of their mapping, threads may read the bytes, too. */
async function verify(bytes: IndexBytes, options: VerifyOptions, address?: bigint): Promise<VerifyReport> {
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
    const { decodeEveryNthBucket = 1, signal } = options;
    const walk = new RecordWalk(bytes, header, tables, decodeEveryNthBucket);
    const workers = countWorkers(options, header);
    if (address !== undefined && workers > 1) {
      const { path, sizeBytes } = bytes;
      const onSkipped = async ({ from, to, base, end }: IntactBuckets): Promise<void> => {
        progress.add((to - from) * BUCKET_SIZE_BYTES + end - base);
        await progress.pause();
      };
      await walkInThreads(walk, workers, { path, address, sizeBytes, decodeEveryNthBucket }, onSkipped, signal);
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
  return { path: bytes.path, sizeBytes: bytes.sizeBytes, ok: sorted.length === 0, recordCount, damages: sorted };
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
        if (damages.length >= DAMAGES_MAX) return damages;
      }
      block++;
      progress.add(sizeBytes);
      if (block % 16 === 0) await progress.pause();
    }
  }
  return damages;
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
