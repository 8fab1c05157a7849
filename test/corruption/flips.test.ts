/** Flipped bits: every bit of a small index, many random ones of a larger one. */
import { describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { HEADER_SIZE_BYTES, SECTIONS, SLOTS_PER_BUCKET } from '../../src/index/format/layout.ts';
import { openIndexBytes } from '../../src/index/read.ts';
import { IndexScan } from '../../src/index/read-all.ts';
import { verifyIndexBytes } from '../../src/index/verify.ts';
import { Random } from '../../tools/random.ts';
import { smallNames, tinyIndexBytes } from '../support/tiny-index.ts';
import { expectations, lookUp, type Outcome, sampleEntries, sectionsOf, sharedBytes, tryOpen } from './support.ts';

const RANDOM_FLIPS = 10_000;

async function isSeenByVerify(bytes: Uint8Array): Promise<boolean> {
  try {
    return !(await verifyIndexBytes(sharedBytes(bytes))).ok;
  } catch (error) {
    if (error instanceof PagegateError) return true;
    throw error;
  }
}

describe('a single bit', () => {
  it('is detected by verify anywhere, and never leads to a wrong answer', async () => {
    const bytes = tinyIndexBytes(sampleEntries(8), { names: smallNames, bucketCount: 2 });
    const expected = expectations(bytes);
    const out = new Uint8Array(64 * 1024);
    const counts: Record<string, number> = {};
    const count = (what: string): void => {
      counts[what] = (counts[what] ?? 0) + 1;
    };
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      const index = tryOpen(bytes);
      if (typeof index === 'string') count(index);
      else {
        for (const [key, entry] of expected) {
          const outcome = lookUp(index, key, entry, out);
          if (outcome !== 'right' && outcome !== 'record_corrupt') expect.fail(`bit ${bit}: ${key} is ${outcome}`);
          count(outcome);
        }
      }
      if (!(await isSeenByVerify(bytes))) expect.fail(`verify does not see bit ${bit}`);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
    }
    expect(counts['right']).toBeGreaterThan(0);
    expect(counts['record_corrupt']).toBeGreaterThan(0);
    expect(counts['index_corrupt']).toBeGreaterThan(HEADER_SIZE_BYTES);
    expect(await isSeenByVerify(bytes)).toBe(false);
  });
});

describe('a single bit of records without a slot in their bucket', () => {
  it('never leads to a wrong answer or a missing record', async () => {
    const extra = 4;
    const bytes = tinyIndexBytes(sampleEntries(SLOTS_PER_BUCKET + extra), { names: smallNames, bucketCount: 1 });
    const expected = expectations(bytes);
    const out = new Uint8Array(64 * 1024);
    const { offset } = sectionsOf(bytes).payload;
    const counts: Partial<Record<Outcome, number>> = {};
    for (let bit = offset * 8; bit < (offset + 2 * extra + 1) * 8; bit++) {
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      const index = openIndexBytes(sharedBytes(bytes));
      for (const [key, entry] of expected) {
        const outcome = lookUp(index, key, entry, out);
        counts[outcome] = (counts[outcome] ?? 0) + 1;
      }
      const scan = new IndexScan(sharedBytes(bytes));
      expect(() => scan.nextBucket()).toThrow(expect.objectContaining({ code: 'record_corrupt' }));
      if (!(await isSeenByVerify(bytes))) expect.fail(`verify does not see bit ${bit}`);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
    }
    expect(Object.keys(counts).sort()).toEqual(['record_corrupt', 'right']);
  });
});

describe('random damage', () => {
  const bytes = tinyIndexBytes(sampleEntries(500), { names: smallNames });
  const expected = expectations(bytes);
  const keys = [...expected.keys()];
  const { directory, payload } = sectionsOf(bytes);
  const out = new Uint8Array(64 * 1024);

  it(`is detected by verify: ${RANDOM_FLIPS.toLocaleString('en-US')} flips of one to four bits`, async () => {
    const random = new Random(1);
    for (let i = 0; i < RANDOM_FLIPS; i++) {
      const flips = Array.from({ length: 1 + random.below(4) }, () => random.below(bytes.length * 8));
      const distinct = new Set(flips);
      for (const bit of distinct) bytes[bit >> 3]! ^= 1 << (bit & 7);
      if (!(await isSeenByVerify(bytes))) expect.fail(`verify does not see the bits ${[...distinct].join(', ')}`);
      const index = tryOpen(bytes);
      if (typeof index !== 'string') lookUp(index, keys[random.below(keys.length)]!, '', out);
      for (const bit of distinct) bytes[bit >> 3]! ^= 1 << (bit & 7);
    }
    expect(await isSeenByVerify(bytes)).toBe(false);
  });

  it('of one or several bytes is detected by the lookup that reads it, except for one in several hundred', () => {
    const index = openIndexBytes(sharedBytes(bytes));
    const random = new Random(2);
    const counts: Record<Outcome, number> = { right: 0, wrong: 0, 'not found': 0, record_corrupt: 0 };
    for (let i = 0; i < RANDOM_FLIPS; i++) {
      const key = keys[random.below(keys.length)]!;
      const handle = index.find(key);
      const offset = payload.offset + Math.floor(handle / 256) + random.below(40);
      const before = bytes.slice(offset, offset + 8);
      const size = 1 + random.below(8);
      for (let j = 0; j < size; j++) bytes[offset + j] = random.below(256);
      const other = keys[random.below(keys.length)]!;
      // A handle is parsed only once; a lookup of another key in between makes the next one parse it again.
      lookUp(index, other, expected.get(other)!, out);
      counts[lookUp(index, key, expected.get(key)!, out)] += 1;
      bytes.set(before, offset);
      lookUp(index, other, expected.get(other)!, out);
    }
    expect(counts.record_corrupt).toBeGreaterThan(RANDOM_FLIPS / 2);
    expect(counts.wrong).toBeLessThan(RANDOM_FLIPS / 100);
    // The hashes detect a record of another domain in the key's slot.
    expect(counts['not found']).toBe(0);
  });

  it('of a bucket is detected by the lookup that reads it', () => {
    const index = openIndexBytes(sharedBytes(bytes));
    const random = new Random(3);
    const counts: Record<Outcome, number> = { right: 0, wrong: 0, 'not found': 0, record_corrupt: 0 };
    for (let i = 0; i < 2000; i++) {
      const at = directory.offset + random.below(directory.size - 8);
      const before = bytes.slice(at, at + 8);
      for (let j = 0; j < 8; j++) bytes[at + j] = random.below(256);
      for (let j = 0; j < 20; j++) {
        const key = keys[random.below(keys.length)]!;
        counts[lookUp(index, key, expected.get(key)!, out)] += 1;
      }
      bytes.set(before, at);
    }
    expect(counts.record_corrupt).toBeGreaterThan(0);
    expect(counts.wrong + counts['not found']).toBe(0);
  });
});

describe('a truncated file', () => {
  it('is refused at every boundary of a section', () => {
    const bytes = tinyIndexBytes(sampleEntries(40), { names: smallNames });
    const sections = sectionsOf(bytes);
    const boundaries = SECTIONS.flatMap((name) => [sections[name].offset, sections[name].offset + sections[name].size]);
    for (const boundary of new Set(boundaries.flatMap((at) => [at - 1, at, at + 1]))) {
      if (boundary >= bytes.length) continue;
      expect(tryOpen(bytes.slice(0, boundary))).toBe('index_corrupt');
    }
    expect(typeof tryOpen(bytes)).toBe('object');
  });
});
