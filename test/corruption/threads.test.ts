/** An index that is read by several threads: the report depends neither on their number nor on where their parts meet. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readBucketBase } from '../../src/index/format/bucket.ts';
import { crc8 } from '../../src/index/format/checksum.ts';
import { BUCKET, BUCKET_SIZE_BYTES, HEADER, SIZE_OF_LENGTH_CODE } from '../../src/index/format/layout.ts';
import { recordSeed } from '../../src/index/format/salt.ts';
import { readHeader, readTables } from '../../src/index/read/checked-sections.ts';
import { IndexFile } from '../../src/index/read/index-file.ts';
import { type Damage, RecordWalk } from '../../src/index/verify/record-walk.ts';
import { skipIntactBuckets, VerifyThreads } from '../../src/index/verify/verify-pool.ts';
import { type VerifyReport, verifyIndex } from '../../src/index/verify.ts';
import { Random } from '../../tools/random.ts';
import { smallNames, tinyIndexBytes, withTempDirectory, writeTinyIndex } from '../support/tiny-index.ts';
import {
  expectSameReport,
  saltOfFile,
  sampleEntries,
  sealBlocks,
  sealBucketOf,
  sealHeader,
  sectionsOf,
  sharedBytes,
  viewOf,
} from './support.ts';

/** With two threads the parts meet at bucket 12, with three at buckets 8 and 16. */
const BUCKETS = 24;
const SEAMS = [12, 16];
const RECORDS = BUCKETS * 5;
const good = tinyIndexBytes(sampleEntries(RECORDS), { names: smallNames, bucketCount: BUCKETS });
const { directory, payload } = sectionsOf(good);

const bucketAt = (bucket: number): number => directory.offset + bucket * BUCKET_SIZE_BYTES;
const baseOf = (bytes: Uint8Array, bucket: number): number => readBucketBase(bytes, bucketAt(bucket));

/** Removes all records from a bucket, whose base stays. */
function emptyBucket(bytes: Uint8Array, bucket: number): void {
  const base = baseOf(bytes, bucket);
  bytes.fill(0, bucketAt(bucket), bucketAt(bucket + 1));
  sealBucketOf(bytes, bucket, base);
}

/** Recomputes the checksum of a bucket's first record. */
function sealFirstRecord(bytes: Uint8Array, bucket: number): void {
  const at = bucketAt(bucket);
  const record = payload.offset + baseOf(bytes, bucket);
  const last = record + SIZE_OF_LENGTH_CODE[bytes[at + BUCKET.lengths.offset]!]! - 1;
  const seed = recordSeed(saltOfFile(bytes), bucket, bytes[at + BUCKET.fingerprints.offset]!);
  bytes[last] = crc8(bytes, record, last, seed);
}

/** Verifies a changed copy whose buckets are unchanged and whose blocks have valid checksums. */
async function report(change: (bytes: Uint8Array) => void): Promise<VerifyReport> {
  const bytes = good.slice();
  change(bytes);
  sealBlocks(bytes);
  return (await expectSameReport(bytes)) as VerifyReport;
}

describe('the report of several threads', () => {
  it('confirms an intact index', async () => {
    expect(await report(() => {})).toMatchObject({ ok: true, recordCount: RECORDS, damages: [] });
  });

  it('is the same where their parts meet', async () => {
    for (const seam of SEAMS) {
      const shifted = await report((bytes) => {
        for (let bucket = seam; bucket < BUCKETS; bucket++) sealBucketOf(bytes, bucket, baseOf(bytes, bucket) + 1);
      });
      expect(shifted.damages[0]).toMatchObject({ where: `bucket ${seam}` });
      expect(shifted.damages[0]?.what).toMatch(/^its base is/);
      // Each part is intact by itself, but the records between them belong to no bucket.
      const emptied = await report((bytes) => emptyBucket(bytes, seam - 1));
      expect(emptied.damages[0]).toMatchObject({ where: `bucket ${seam}` });
      const swapped = await report((bytes) => {
        const before = bytes.slice(bucketAt(seam - 1), bucketAt(seam));
        bytes.copyWithin(bucketAt(seam - 1), bucketAt(seam), bucketAt(seam + 1));
        bytes.set(before, bucketAt(seam));
        sealBucketOf(bytes, seam - 1, baseOf(good, seam - 1));
        sealBucketOf(bytes, seam, baseOf(good, seam));
      });
      expect(swapped.damages.length).toBeGreaterThan(1);
      // The last record of one part becomes the first record of the next part, without moving.
      const moved = await report((bytes) => {
        const count = bytes[bucketAt(seam - 1) + BUCKET.count.offset]!;
        const size = SIZE_OF_LENGTH_CODE[bytes[bucketAt(seam - 1) + BUCKET.lengths.offset + count - 1]!]!;
        for (const { offset } of [BUCKET.fingerprints, BUCKET.lengths]) {
          const from = bucketAt(seam - 1) + offset + count - 1;
          const to = bucketAt(seam) + offset;
          bytes.copyWithin(to + 1, to, to + BUCKET.fingerprints.size - 1);
          bytes[to] = bytes[from]!;
          bytes[from] = 0;
        }
        bytes[bucketAt(seam - 1) + BUCKET.count.offset]! -= 1;
        bytes[bucketAt(seam) + BUCKET.count.offset]! += 1;
        sealBucketOf(bytes, seam - 1, baseOf(good, seam - 1));
        sealBucketOf(bytes, seam, baseOf(good, seam) - size);
        sealFirstRecord(bytes, seam);
      });
      expect(moved.damages.map(({ what }) => what)).toEqual(['its domain belongs in another bucket']);
    }
  });

  it('contains a value in the first unused slot of a bucket', async () => {
    const { damages } = await report((bytes) => {
      bytes[bucketAt(3) + BUCKET.fingerprints.offset + bytes[bucketAt(3) + BUCKET.count.offset]!] = 1;
      sealBucketOf(bytes, 3, baseOf(good, 3));
    });
    expect(damages[0]).toMatchObject({ where: 'bucket 3', what: 'an unused slot is not zero' });
  });

  it('contains a record that no lookup finds, although all checksums are valid', async () => {
    const hidden = await report((bytes) => {
      bytes[bucketAt(3) + BUCKET.fingerprints.offset]! ^= 1;
      sealBucketOf(bytes, 3, baseOf(good, 3));
      sealFirstRecord(bytes, 3);
    });
    expect(hidden.damages.map(({ what }) => what)).toEqual(['its fingerprint is not that of its domain']);
  });

  it('is the same for the end and for the number of records', async () => {
    const unused = await report((bytes) => {
      emptyBucket(bytes, BUCKETS - 1);
    });
    expect(unused.damages.map(({ where }) => where)).toEqual(['header', 'payload']);
    const counted = await report((bytes) => {
      viewOf(bytes).setBigUint64(HEADER.recordCount.offset, BigInt(RECORDS + 1), true);
      sealHeader(bytes);
    });
    expect(counted.damages.map(({ where }) => where)).toEqual(['header']);
  });

  it('ends after the same number of damages, the same ones', async () => {
    const { damages } = await report((bytes) => {
      for (let at = payload.offset; at < payload.offset + payload.size; at += 97) bytes[at]! ^= 0x55;
    });
    expect(damages).toHaveLength(20);
  });

  it('is the same for random bits, with valid and invalid checksums', async () => {
    const random = new Random(4);
    for (let i = 0; i < 8; i++) {
      const bytes = flipped(random);
      await expectSameReport(bytes);
      sealBlocks(bytes);
      await expectSameReport(bytes);
    }
  });

  it('is the same for any partition into parts', () => {
    const random = new Random(5);
    let damaged = 0;
    for (let i = 0; i < 600; i++) {
      const newWalk = walksOver(flipped(random));
      const whole = walkInParts(newWalk, undefined);
      for (const size of [1, 5, 8, 12, BUCKETS]) expect(walkInParts(newWalk, size)).toEqual(whole);
      if (whole.damages.length > 0) damaged += 1;
    }
    expect(damaged).toBeGreaterThan(300);
  });

  it('does not depend on what a thread has read before', () => {
    const random = new Random(6);
    let damaged = 0;
    for (let i = 0; i < 200; i++) {
      const newWalk = walksOver(flipped(random));
      const used = newWalk();
      for (let calls = 0; calls < 12; calls++) {
        const from = random.below(BUCKETS);
        const buckets = { from, to: from + 1 + random.below(BUCKETS - from) };
        const alone = newWalk().checkBuckets(buckets);
        expect(used.checkBuckets(buckets)).toEqual(alone);
        if (alone === undefined) damaged += 1;
      }
    }
    expect(damaged).toBeGreaterThan(300);
  });
});

/** Flips some bits of directory or payload. Often recomputes the checksums of the buckets, so that their contents are used. */
function flipped(random: Random): Uint8Array {
  const below = (limit: number): number => random.below(limit);
  const bytes = good.slice();
  const { offset, size } = [directory, payload][below(2)]!;
  for (let flips = 1 + below(3); flips > 0; flips--) bytes[offset + below(size)]! ^= 1 << below(8);
  if (below(4) === 0) emptyBucket(bytes, below(BUCKETS));
  if (below(2) === 0)
    for (let bucket = 0; bucket < BUCKETS; bucket++) sealBucketOf(bytes, bucket, baseOf(bytes, bucket));
  return bytes;
}

/** Returns a function that creates unused walks. */
function walksOver(bytes: Uint8Array): () => RecordWalk {
  const shared = sharedBytes(bytes);
  const header = readHeader(shared);
  const tables = readTables(shared, header);
  return () => new RecordWalk(shared, header, tables, 1);
}

/**
 * Does the work of several threads in this one: a walk that skips parts, of `size` buckets, that another walk has found intact, up to the first
 * damaged one.
 */
function walkInParts(newWalk: () => RecordWalk, size: number | undefined): { recordCount: number; damages: Damage[] } {
  const walk = newWalk();
  const other = newWalk();
  for (let from = 0; size !== undefined && from < BUCKETS; from += size) {
    const buckets = { from, to: Math.min(BUCKETS, from + size) };
    const intact = other.checkBuckets(buckets);
    if (intact === undefined || !walk.skip(intact)) break;
  }
  while (walk.bucket < BUCKETS && walk.damages.length < 20) walk.checkBucket();
  walk.checkEnd();
  return { recordCount: walk.recordCount, damages: walk.damages };
}

describe('several threads', () => {
  it('report their progress, up to the end', async () => {
    await withTempDirectory(async (folder) => {
      const path = join(folder, 'index.pgx');
      writeTinyIndex(path, sampleEntries(3000), { names: smallNames });
      for (const workers of [0, 2]) {
        const seen: number[] = [];
        let total = 0;
        const onProgress = (done: number, all: number): void => {
          seen.push(done);
          total = all;
        };
        expect(await verifyIndex(path, { workers, onProgress })).toMatchObject({ ok: true, recordCount: 3000 });
        expect(seen).toEqual([...seen].sort((a, b) => a - b));
        expect(seen.at(-1)).toBe(total);
      }
    });
  });

  it('end when they are told to, whatever they are doing', async () => {
    await withTempDirectory(async (folder) => {
      const path = join(folder, 'index.pgx');
      writeTinyIndex(path, sampleEntries(5000), { names: smallNames });
      const threads = (): string[] =>
        readdirSync('/proc/self/task').filter((task) =>
          /^Worker/.test(readFileSync(`/proc/self/task/${task}/comm`, 'latin1')),
        );
      const before = threads();
      for (let i = 0; i < 6; i++) {
        const controller = new AbortController();
        const stop = new Error('stopped');
        setTimeout(() => controller.abort(stop), 25 * i);
        const ended = await verifyIndex(path, { workers: 3, signal: controller.signal }).catch((error) => error);
        if (ended !== stop) expect(ended).toMatchObject({ ok: true });
        // The kernel still lists a thread for a moment after it was joined.
        await expect.poll(threads).toEqual(before);
      }
    });
  });

  it('report their own failures', async () => {
    await withTempDirectory(async (folder) => {
      const path = join(folder, 'index.pgx');
      const bytes = good.slice();
      bytes[HEADER.checksum.offset]! ^= 1;
      writeFileSync(path, bytes, { mode: 0o444 });
      const changed = new IndexFile(path);
      const { descriptor, sizeBytes } = changed;
      const intact = sharedBytes(good);
      const header = readHeader(intact);
      const walk = new RecordWalk(intact, header, readTables(intact, header), 1);
      const setup = { path, descriptor, sizeBytes, decodeEveryNthBucket: 1 };
      const threads = new VerifyThreads(2, setup);
      const walking = skipIntactBuckets(walk, threads.walkers, async () => {}, undefined);
      await expect(walking).rejects.toMatchObject({ name: 'PagegateError', code: 'index_corrupt', details: { path } });
      await threads.close();
      changed.close();
    });
  });
});
