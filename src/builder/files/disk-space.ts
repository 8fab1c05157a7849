/** Estimates the disk space that a build needs, and checks that it is available. */
import { closeSync, constants, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { withCommas } from '../../counted.ts';
import type { DropPart, Manifest } from '../../drop/manifest.ts';
import { isPacked } from '../../drop/part-reader.ts';
import { PagegateError } from '../../errors.ts';

/**
 * Size of a record in the temporary files and in the index. The facts take about `RECORD_MIN_BYTES`. The pages vary. If many sites have
 * similar paths, their pages take a small share of their text: at most about as much as a compressor leaves of it.
 */
const RECORD_MIN_BYTES = 40;
const SHARE_OF_PACKED = 1.3;
const SHARE_OF_TEXT_MIN = 0.15;
/** How much of the plain parts is compressed, to measure their redundancy. */
const SAMPLED_PARTS_MAX = 16;
const SAMPLES_PER_PART = 4;
const SAMPLE_BYTES = 64 << 10;
/** Rough ratio of a packed part's unpacked size to its delivered size. */
const UNPACKED_FACTOR = 8;
const SLACK_BYTES = 4 << 20;

/** Returns the total unpacked size of the parts, in bytes; a rough estimate for packed parts. */
export function estimateTextBytes({ files }: Manifest): number {
  return files.reduce((sum, { name, bytes }) => sum + bytes * (isPacked(name) ? UNPACKED_FACTOR : 1), 0);
}

/**
 * Estimates the size of the temporary files, in bytes; the index takes about the same again. The estimate is about twice what ordinary data
 * takes. It can be too low if the pages of each site share much that no other site has, so {@link SpaceWatch} checks the actual size.
 */
function estimateTempBytes(drop: string, { files }: Manifest): number {
  const sum = (parts: readonly DropPart[], of: 'bytes' | 'records'): number =>
    parts.reduce((s, part) => s + part[of], 0);
  const packed = files.filter(({ name }) => isPacked(name));
  const plain = files.filter(({ name, bytes }) => !isPacked(name) && bytes > 0);
  const share = plain.length === 0 ? 0 : Math.max(SHARE_OF_TEXT_MIN, SHARE_OF_PACKED * packedShare(drop, plain));
  const pages = sum(packed, 'bytes') * SHARE_OF_PACKED + sum(plain, 'bytes') * share;
  return Math.ceil(SLACK_BYTES + sum(files, 'records') * RECORD_MIN_BYTES + pages);
}

/** Compressed size of plain parts as a share of their size, from 0 to about 1. Measured with samples spread over all parts. */
function packedShare(drop: string, parts: readonly DropPart[]): number {
  const step = Math.max(1, parts.length / SAMPLED_PARTS_MAX);
  const buffer = Buffer.allocUnsafe(SAMPLE_BYTES);
  let [plainBytes, packedBytes] = [0, 0];
  for (let at = 0; at < parts.length; at += step) {
    const { name, bytes } = parts[Math.floor(at)]!;
    const descriptor = openSync(join(drop, name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      for (let sample = 0; sample < SAMPLES_PER_PART; sample++) {
        const offset = Math.floor((bytes * sample) / SAMPLES_PER_PART);
        const text = buffer.subarray(0, readSync(descriptor, buffer, 0, SAMPLE_BYTES, offset));
        plainBytes += text.length;
        packedBytes += zstdCompressSync(text).length;
      }
    } finally {
      closeSync(descriptor);
    }
  }
  return plainBytes === 0 ? 1 : packedBytes / plainBytes;
}

/**
 * Returns the estimated size of the temporary files, in bytes.
 *
 * @throws PagegateError build_no_space if a folder's file system has less free space than the build needs
 */
export async function checkSpace(
  drop: string,
  manifest: Manifest,
  tempFolder: string,
  outFolder: string,
): Promise<number> {
  const tempBytes = estimateTempBytes(drop, manifest);
  const isSame = statSync(tempFolder).dev === statSync(outFolder).dev;
  await checkFolder(tempFolder, isSame ? 2 * tempBytes : tempBytes);
  if (!isSame) await checkFolder(outFolder, tempBytes);
  return tempBytes;
}

async function checkFolder(folder: string, neededBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes) return;
  const mb = (bytes: number): string => `${withCommas(Math.ceil(bytes / 1e6))} MB`;
  const what = `${folder} has ${mb(freeBytes)} free, the build may need ${mb(neededBytes)}.`;
  throw new PagegateError('build_no_space', what, { folder, free_bytes: freeBytes, needed_bytes: neededBytes });
}

const WATCH_INTERVAL_MS = 200;

/**
 * Watches the temporary files while they grow: the index that is built from them needs as much free space as they take. A build whose
 * estimate was too low thus ends before it fills the disk, on which the ledger may also be.
 */
export class SpaceWatch {
  /** Never resolves. @throws PagegateError build_no_space */
  readonly exhausted: Promise<never>;
  readonly #tempFolder: string;
  readonly #outFolder: string;
  #timer: NodeJS.Timeout;

  /** @param tempFolder the folder of this build's temporary files @param outFolder where the index goes */
  constructor(tempFolder: string, outFolder: string) {
    this.#tempFolder = tempFolder;
    this.#outFolder = outFolder;
    const { promise, reject } = Promise.withResolvers<never>();
    this.exhausted = promise;
    // Without this handler, a rejection would end the process if the caller does not wait for it yet.
    promise.catch(() => {});
    this.#timer = setInterval(() => this.check().catch(reject), WATCH_INTERVAL_MS);
    this.#timer.unref();
  }

  /** @throws PagegateError build_no_space if there is not enough space for the index */
  async check(): Promise<void> {
    const folder = this.#tempFolder;
    const tempBytes = readdirSync(folder).reduce(
      (sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
    await checkFolder(this.#outFolder, tempBytes + SLACK_BYTES);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
