/** Damages an index deliberately: changes fields and, on request, recomputes the checksums that cover them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { sealBucket, writeBucketBase } from '../../src/index/format/bucket.ts';
import { xxh64 } from '../../src/index/format/checksum.ts';
import { decodeHeader, type RawHeader } from '../../src/index/format/header.ts';
import {
  BLOCK_CHECKSUM_SIZE_BYTES,
  BLOCK_SIZE_BYTES,
  BUCKET_SIZE_BYTES,
  HEADER,
  SECTION_ENTRY,
  SECTIONS,
  type SectionName,
} from '../../src/index/format/layout.ts';
import { bucketChecksum, saltOf } from '../../src/index/format/salt.ts';
import type { IndexBytes } from '../../src/index/read/index-source.ts';
import { type Index, NO_RECORD, openIndexBytes } from '../../src/index/read.ts';
import { IndexScan } from '../../src/index/read-all.ts';
import { type VerifyReport, verifyIndex, verifyIndexBytes } from '../../src/index/verify.ts';
import type { Entry } from '../../src/record/entry.ts';
import { entryOf, smallNames, withTempDirectory } from '../support/tiny-index.ts';

/** Bytes that a test can change while an index over them is open. */
export function sharedBytes(bytes: Uint8Array): IndexBytes {
  return {
    path: '<shared>',
    sizeBytes: bytes.length,
    readInto: (target, offset) => target.set(bytes.subarray(offset, offset + target.length)),
    view: (offset, sizeBytes) => new Uint8Array(bytes.buffer, bytes.byteOffset + offset, sizeBytes),
    adviseRandom: () => {},
    warm: async () => {},
    problem: () => undefined,
    close: () => {},
  };
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function sectionsOf(bytes: Uint8Array): RawHeader['sections'] {
  return decodeHeader(bytes).sections;
}

/** Offset of a section's entry in the header. */
export function entryOffset(name: SectionName): number {
  return HEADER.sections.offset + SECTIONS.indexOf(name) * SECTION_ENTRY.end.offset;
}

export function sealHeader(bytes: Uint8Array): void {
  viewOf(bytes).setBigUint64(HEADER.checksum.offset, xxh64(bytes.subarray(0, HEADER.checksum.offset)), true);
}

/** Recomputes the checksums of a section and of the header. */
export function sealSection(bytes: Uint8Array, name: SectionName): void {
  const { offset, size } = sectionsOf(bytes)[name];
  const checksum = xxh64(bytes.subarray(offset, offset + size));
  viewOf(bytes).setBigUint64(entryOffset(name) + SECTION_ENTRY.checksum.offset, checksum, true);
  sealHeader(bytes);
}

/** Recomputes the checksums of directory and payload, so that `verify` continues with buckets and records. */
export function sealBlocks(bytes: Uint8Array): void {
  const { directory, payload, blocks } = sectionsOf(bytes);
  let at = blocks.offset;
  for (const { offset, size } of [directory, payload]) {
    for (let start = 0; start < size; start += BLOCK_SIZE_BYTES) {
      const block = bytes.subarray(offset + start, offset + Math.min(size, start + BLOCK_SIZE_BYTES));
      viewOf(bytes).setBigUint64(at, xxh64(block), true);
      at += BLOCK_CHECKSUM_SIZE_BYTES;
    }
  }
  sealSection(bytes, 'blocks');
}

/** Returns the salt of the file's buckets and records. */
export function saltOfFile(bytes: Uint8Array): number {
  const { dictionary, metadata } = sectionsOf(bytes);
  return saltOf(dictionary.checksum, metadata.checksum);
}

/** Sets a bucket's base and recomputes the bucket's checksum. */
export function sealBucketOf(bytes: Uint8Array, bucket: number, base: number): void {
  const at = sectionsOf(bytes).directory.offset + bucket * BUCKET_SIZE_BYTES;
  writeBucketBase(bytes, at, base);
  sealBucket(bytes, at, bucketChecksum(saltOfFile(bytes), bucket));
}

/** Entries that use every part of the format, with the small names. */
export function sampleEntries(count: number): Entry[] {
  const names = ['alpha', 'beta-shop', 'gamma.news', 'delta_x', 'xn--bcher-kva', 'e'];
  return Array.from({ length: count }, (_, i) => {
    const domain = `${names[i % names.length]}${i}.example`;
    const pages: Record<string, string> = {};
    if (i % 2 === 0) pages['login'] = `https://${domain}/login`;
    if (i % 3 === 0) pages['pricing'] = `https://www.${domain}/pricing?plan=${i}`;
    if (i % 4 === 0) pages['docs'] = `http://docs.${domain}/en/guide-${i}.html`;
    if (i % 5 === 0) pages['contact'] = 'https://elsewhere.test/\\contact';
    if (i % 7 === 0) pages['help'] = `https://${domain}/${'very/long/'.repeat(24)}${i}`;
    return entryOf(
      domain,
      pages,
      {
        ...(i % 2 === 0 ? { language: 'de' } : {}),
        ...(i % 3 === 0 ? { iabCategory: i % 2 } : {}),
        filteringCategories: i % 4 === 0 ? [0, 2] : i % 11 === 0 ? [1] : [],
        ...(i % 5 === 0 ? {} : { openPageRankHundredths: (i * 37) % 1001 }),
        ...(i % 6 === 0 ? { globalRank: 1 + i * 70_001 } : {}),
      },
      smallNames,
    );
  });
}

export type Outcome = 'right' | 'wrong' | 'not found' | 'record_corrupt';

/** Returns the outcome of a lookup: the expected answer, another answer, no record, or a corrupt record. Rethrows any other error. */
export function lookUp(index: Index, key: string, expected: string, out: Uint8Array): Outcome {
  try {
    const handle = index.find(key);
    if (handle === NO_RECORD) return 'not found';
    const end = index.writeTail(handle, out, index.writeHead(handle, out, 0));
    index.pageUrls(handle);
    return Buffer.from(out.subarray(0, end)).toString('latin1') === expected ? 'right' : 'wrong';
  } catch (error) {
    if (error instanceof PagegateError && error.code === 'record_corrupt') return 'record_corrupt';
    throw error;
  }
}

/** Returns every key of an index with its rendered answer. */
export function expectations(bytes: Uint8Array): Map<string, string> {
  const index = openIndexBytes(sharedBytes(bytes));
  const out = Buffer.alloc(4 * index.info.maxAnswerSizeBytes);
  const expected = new Map<string, string>();
  for (const key of domainsOf(bytes)) {
    const handle = index.find(key);
    const end = index.writeTail(handle, out, index.writeHead(handle, out, 0));
    expected.set(key, out.toString('latin1', 0, end));
  }
  return expected;
}

/** Returns the keys of an index, in the order of the file. */
export function domainsOf(bytes: Uint8Array): string[] {
  const scan = new IndexScan(sharedBytes(bytes));
  const domains: string[] = [];
  while (scan.nextBucket()) while (scan.nextRecord()) domains.push(scan.domain);
  return domains;
}

/** Opens an index, or returns the error message. */
export function tryOpen(bytes: Uint8Array): Index | string {
  try {
    return openIndexBytes(sharedBytes(bytes));
  } catch (error) {
    if (error instanceof PagegateError) return error.code;
    throw error;
  }
}

/** Expects the same report, or the same error, from `verify` with any number of threads. Returns that of the calling thread alone. */
export async function expectSameReport(bytes: Uint8Array, threads = [0, 1, 2, 3]): Promise<unknown> {
  const outcome = (report: Promise<VerifyReport>): Promise<unknown> =>
    report.catch((error: unknown) => {
      if (error instanceof PagegateError) return { code: error.code, message: error.message, details: error.details };
      throw error;
    });
  return await withTempDirectory(async (directory) => {
    const path = join(directory, 'index.pgx');
    writeFileSync(path, bytes, { mode: 0o444 });
    const alone = await outcome(verifyIndexBytes({ ...sharedBytes(bytes), path }));
    for (const workers of threads) expect(await outcome(verifyIndex(path, { workers }))).toEqual(alone);
    return alone;
  });
}
