/** Parts of one index in place of another's: a copy over a served file, records and buckets that are swapped. */
import { describe, expect, it } from 'vitest';
import { BUCKET, BUCKET_SIZE_BYTES, SIZE_OF_LENGTH_CODE, SLOTS_PER_BUCKET } from '../../src/index/format/layout.ts';
import { bucketChecksum } from '../../src/index/format/salt.ts';
import { openIndexBytes } from '../../src/index/read.ts';
import { entryOf, smallNames, tinyIndexBytes } from '../support/tiny-index.ts';
import { domainsOf, expectations, lookUp, type Outcome, sampleEntries, sectionsOf, sharedBytes } from './support.ts';

const BUCKETS = 16;
const out = new Uint8Array(64 * 1024);
const noOutcome = (): Record<Outcome, number> => ({ right: 0, wrong: 0, 'not found': 0, record_corrupt: 0 });

/** Looks up every key of an index after its bytes were changed. */
function outcomesOf(bytes: Uint8Array, change: () => void): Record<Outcome, number> {
  const expected = expectations(bytes);
  const index = openIndexBytes(sharedBytes(bytes));
  const counts = noOutcome();
  change();
  for (const [key, answer] of expected) counts[lookUp(index, key, answer, out)] += 1;
  return counts;
}

/** Returns the offsets of the records of a small index, by domain. */
function recordsOf(bytes: Uint8Array): { domain: string; start: number; end: number; bucket: number; slot: number }[] {
  const { directory, payload } = sectionsOf(bytes);
  const domains = domainsOf(bytes);
  let start = payload.offset;
  return Array.from({ length: directory.size / BUCKET_SIZE_BYTES }, (_, bucket) => {
    const at = directory.offset + bucket * BUCKET_SIZE_BYTES;
    return Array.from({ length: bytes[at + BUCKET.count.offset]! }, (_, slot) => {
      const size = SIZE_OF_LENGTH_CODE[bytes[at + BUCKET.lengths.offset + slot]!]!;
      start += size;
      return { domain: domains.shift()!, start: start - size, end: start, bucket, slot };
    });
  }).flat();
}

describe('swapped records', () => {
  it('are detected by every lookup that reads one: none returns "not found", none is answered from another record', () => {
    const bytes = tinyIndexBytes(sampleEntries(150), { names: smallNames, bucketCount: BUCKETS });
    expect(sectionsOf(bytes).directory.size).toBe(BUCKETS * BUCKET_SIZE_BYTES);
    const expected = expectations(bytes);
    const records = recordsOf(bytes);
    const index = openIndexBytes(sharedBytes(bytes));
    const counts = noOutcome();
    for (const [i, a] of records.entries()) {
      expect(a.slot).toBeLessThan(SLOTS_PER_BUCKET);
      for (const b of records.slice(i + 1)) {
        if (a.end - a.start !== b.end - b.start) continue;
        const kept = bytes.slice(a.start, a.end);
        bytes.copyWithin(a.start, b.start, b.end);
        bytes.set(kept, b.start);
        for (const { domain } of [a, b]) counts[lookUp(index, domain, expected.get(domain)!, out)] += 1;
        bytes.copyWithin(b.start, a.start, a.end);
        bytes.set(kept, a.start);
      }
    }
    expect(counts.record_corrupt).toBeGreaterThan(500);
    expect(counts).toMatchObject({ wrong: 0, 'not found': 0 });
  });
});

describe('another index in place of the one that is open', () => {
  /** The same domains with other pages: the same size, with another dictionary. */
  const entriesOf = (word: string): ReturnType<typeof entryOf>[] =>
    Array.from({ length: 200 }, (_, i) =>
      entryOf(`host-${i}.example`, { login: `https://host-${i}.example/${word}/login` }, {}, smallNames),
    );
  const options = { names: smallNames, bucketCount: BUCKETS };
  const first = tinyIndexBytes(entriesOf('alpha'), options);
  const second = tinyIndexBytes(entriesOf('omega'), options);

  it('is detected by every lookup, whether the dictionary is the same or not', () => {
    expect(sectionsOf(second).directory).toEqual(sectionsOf(first).directory);
    expect(sectionsOf(second).payload).toEqual(sectionsOf(first).payload);
    expect(sectionsOf(second).dictionary.checksum).not.toBe(sectionsOf(first).dictionary.checksum);
    const sameDictionary = tinyIndexBytes(entriesOf('alpha'), { ...options, metadata: { revision: 2 } });
    expect(sectionsOf(sameDictionary).dictionary).toEqual(sectionsOf(first).dictionary);
    for (const other of [second, sameDictionary]) {
      const bytes = first.slice();
      expect(outcomesOf(bytes, () => bytes.set(other))).toEqual({ ...noOutcome(), record_corrupt: 200 });
    }
  });

  it('is detected if half of it was replaced', () => {
    for (const [from, to] of [
      [0, sectionsOf(first).payload.offset + 500],
      [sectionsOf(first).directory.offset + 5 * BUCKET_SIZE_BYTES, first.length],
    ] as const) {
      const bytes = first.slice();
      const counts = outcomesOf(bytes, () => bytes.set(second.subarray(from, to), from));
      expect(counts.record_corrupt).toBeGreaterThan(50);
      expect(counts).toMatchObject({ wrong: 0, 'not found': 0 });
    }
  });

  it('is also detected if it consists of zeros', () => {
    const { directory, payload } = sectionsOf(first);
    for (const { offset, size } of [directory, payload]) {
      const bytes = first.slice();
      const counts = outcomesOf(bytes, () => bytes.fill(0, offset, offset + size));
      expect(counts).toEqual({ ...noOutcome(), record_corrupt: 200 });
    }
  });
});

it('a bucket of zeros is never a valid empty bucket, whatever the salt', () => {
  for (const salt of [0, 1, 0x5047, -1, 0x12345678]) {
    for (let bucket = 0; bucket < 2 ** 17; bucket++) {
      const checksum = bucketChecksum(salt, bucket);
      if (checksum === 0 || checksum > 0xffff) expect.fail(`salt ${salt}, bucket ${bucket}: ${checksum}`);
    }
  }
});
