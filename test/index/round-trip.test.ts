/** Entries of every kind, written to indexes of every shape, are read back unchanged. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import {
  BUCKET,
  BUCKET_SIZE_BYTES,
  lengthCodeOf,
  RECORD_MAX_BYTES,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_BUCKET,
} from '../../src/index/format/layout.ts';
import { type Index, NO_RECORD, openIndexBytes } from '../../src/index/read.ts';
import { IndexScan } from '../../src/index/read-all.ts';
import { verifyIndexBytes } from '../../src/index/verify.ts';
import { BucketRunBuilder, hashKeyA, hashKeyB } from '../../src/index/write.ts';
import type { Entry } from '../../src/record/entry.ts';
import { bytesInMemory, entryOf, shippedNames, tinyIndexBytes } from '../support/tiny-index.ts';

const { pageTypes } = shippedNames.vocabulary;
const urlText = fc.string({ maxLength: 40, unit: fc.constantFrom(...'abcdefXYZ019/-_.?=&%\\~:@!$\'()*+,;"|') });
const longText = fc.string({ maxLength: 1900, unit: fc.constantFrom(...'abcdef/019') });
const label = fc.string({
  minLength: 1,
  maxLength: 12,
  unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789_'),
});
const domains = fc
  .array(label, { minLength: 2, maxLength: 4 })
  .map((labels) => labels.join('.'))
  .filter((domain) => domain.length <= 253);

const urlOn = (domain: string): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom('/', '/login', '/pricing', '').map((path) => `https://${domain}${path}`),
    fc
      .tuple(fc.constantFrom('http://', 'https://www.', 'https://docs.', 'http://a.b.'), urlText)
      .map(([o, p]) => `${o}${domain}/${p}`),
    fc.tuple(fc.constantFrom(':8443', '?', '#', '/x'), urlText).map(([sep, p]) => `https://${domain}${sep}${p}`),
    urlText.map((path) => `https://elsewhere.test/${path}`),
    longText.map((path) => `https://${domain}/${path}`),
  );

const entryArbitrary: fc.Arbitrary<Entry> = domains.chain((domain) =>
  fc
    .record(
      {
        pages: fc.dictionary(fc.constantFrom(...pageTypes), urlOn(domain), { maxKeys: 28 }),
        language: fc.constantFrom('en', 'de', 'zu', 'aa'),
        iabCategory: fc.integer({ min: 0, max: shippedNames.iab.names.length - 1 }),
        filteringCategories: fc.uniqueArray(fc.integer({ min: 0, max: 58 }), { minLength: 1 }),
        openPageRankHundredths: fc.integer({ min: 0, max: 1000 }),
        globalRank: fc.oneof(fc.integer({ min: 1, max: 70_000 }), fc.integer({ min: 1, max: 0xffffffff })),
      },
      { requiredKeys: ['pages'] },
    )
    .map(({ pages, filteringCategories = [], ...facts }) =>
      entryOf(domain, pages, { ...facts, filteringCategories: filteringCategories.sort((a, b) => a - b) }),
    ),
);

const entrySets = (minLength: number, maxLength: number): fc.Arbitrary<Entry[]> =>
  fc.uniqueArray(entryArbitrary, { minLength, maxLength, selector: ({ domain }) => domain });

function expectedOf(entry: Entry): unknown {
  const { iab, filtering } = shippedNames;
  return {
    domain: entry.domain,
    found: true,
    ...(entry.language === undefined ? {} : { language: entry.language }),
    page_types: Object.fromEntries(entry.pageTypes.map(({ type, url }) => [type, url])),
    ...(entry.iabCategory === undefined ? {} : { iab_category: iab.names[entry.iabCategory] }),
    ...(entry.filteringCategories.length === 0
      ? {}
      : { filtering_categories: entry.filteringCategories.map((ordinal) => filtering.names[ordinal]) }),
    ...(entry.openPageRankHundredths === undefined ? {} : { open_page_rank: entry.openPageRankHundredths / 100 }),
    ...(entry.globalRank === undefined ? {} : { global_rank: entry.globalRank }),
  };
}

function renderedBy(index: Index, key: string): string {
  const out = Buffer.alloc(index.info.maxAnswerSizeBytes);
  const handle = index.find(key);
  expect(handle).not.toBe(NO_RECORD);
  return out.toString('utf8', 0, index.writeTail(handle, out, index.writeHead(handle, out, 0)));
}

function hashesOf(domain: string): unknown {
  const bytes = Buffer.from(domain);
  return { hashA: hashKeyA(bytes, 0, bytes.length), hashB: hashKeyB(bytes, 0, bytes.length) };
}

describe('any set of entries', () => {
  it('is found, decoded and rendered unchanged, and nothing else is found', async () => {
    let literals = 0;
    let overflowing = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(entrySets(0, 8), entrySets(35, 60)),
        fc.constantFrom(1, 1, 7),
        async (entries, bucketCount) => {
          const bytes = tinyIndexBytes(entries, { bucketCount });
          const index = openIndexBytes(bytesInMemory(bytes));
          expect(index.info.recordCount).toBe(entries.length);
          const domainsOf = new Set(entries.map(({ domain }) => domain));
          for (const entry of entries) {
            const expected = expectedOf(entry);
            expect(JSON.stringify(JSON.parse(renderedBy(index, entry.domain)))).toBe(JSON.stringify(expected));
            const handle = index.find(entry.domain);
            expect(index.pageUrls(handle)).toEqual(entry.pageTypes.map(({ type, url }) => ({ type, url })));
            expect(index.decode(handle).openPageRank).toBe(
              entry.openPageRankHundredths === undefined ? undefined : entry.openPageRankHundredths / 100,
            );
            for (const other of [`${entry.domain}a`, entry.domain.slice(1), `a${entry.domain}`]) {
              if (!domainsOf.has(other)) expect(index.find(other)).toBe(NO_RECORD);
            }
          }
          const scan = new IndexScan(bytesInMemory(bytes));
          const scanned: string[] = [];
          while (scan.nextBucket()) {
            overflowing += Math.max(0, scan.count - SLOTS_PER_BUCKET);
            while (scan.nextRecord()) {
              scanned.push(scan.domain);
              literals += scan.parts.literals;
              expect(scan.answerSizeBytes).toBe(renderedBy(index, scan.domain).length);
              expect(scan.decode()).toEqual(index.decode(index.find(scan.domain)));
              expect({ hashA: scan.hashA, hashB: scan.hashB }).toEqual(hashesOf(scan.domain));
            }
          }
          expect(scanned.sort()).toEqual([...domainsOf].sort());
          expect(await verifyIndexBytes(bytesInMemory(bytes))).toMatchObject({ ok: true, damages: [] });
        },
      ),
      { numRuns: 60 },
    );
    // The rarely used branches were taken.
    expect(literals).toBeGreaterThan(0);
    expect(overflowing).toBeGreaterThan(0);
  });

  it('gives the same bytes each time', () => {
    fc.assert(
      fc.property(entrySets(1, 20), (entries) => {
        expect(Buffer.compare(tinyIndexBytes(entries), tinyIndexBytes(entries))).toBe(0);
      }),
      { numRuns: 10 },
    );
  });
});

describe('a run of buckets', () => {
  const record = (domain: string): Uint8Array => Uint8Array.of(domain.length, ...Buffer.from(domain), 0, 0, 0, 0, 0, 0);
  const add = (builder: BucketRunBuilder, hashA: number, hashB: number, domain: string): void => {
    const bytes = record(domain);
    builder.add(hashA, hashB, bytes, 0, bytes.length);
  };
  const codeOf = (action: () => void): string => {
    try {
      action();
    } catch (error) {
      if (error instanceof PagegateError) return error.code;
      throw error;
    }
    return 'ok';
  };

  it('refuses records that are out of order, repeated, or outside its range', () => {
    const builder = new BucketRunBuilder({ firstBucket: 0, endBucket: 128, bucketCount: 256, salt: 0 });
    add(builder, 5, 5, 'b');
    expect(codeOf(() => add(builder, 5, 5, 'b'))).toBe('index_out_of_order');
    expect(codeOf(() => add(builder, 5, 5, 'a'))).toBe('index_out_of_order');
    expect(codeOf(() => add(builder, 5, 4, 'c'))).toBe('index_out_of_order');
    expect(codeOf(() => add(builder, 4, 9, 'c'))).toBe('index_out_of_order');
    expect(codeOf(() => add(builder, 0x80000000, 0, 'c'))).toBe('index_out_of_order');
    expect(codeOf(() => add(builder, 5, 5, 'c'))).toBe('ok');
    expect(builder.finish().recordCount).toBe(2);
  });

  it('refuses more records for a bucket than its count can represent', () => {
    const builder = new BucketRunBuilder({ firstBucket: 0, endBucket: 1, bucketCount: 1, salt: 0 });
    for (let i = 0; i < 255; i++) add(builder, i, 0, `d${i}`);
    expect(codeOf(() => add(builder, 255, 0, 'one-more'))).toBe('index_limit');
    const { buckets, recordCount } = builder.finish();
    expect([buckets.length, buckets[BUCKET.count.offset], recordCount]).toEqual([BUCKET_SIZE_BYTES, 255, 255]);
  });
});

describe('length codes', () => {
  it('represent every size up to the largest, with the smallest code that fits', () => {
    let before = 0;
    for (let size = 1; size <= RECORD_MAX_BYTES; size++) {
      const code = lengthCodeOf(size);
      if (SIZE_OF_LENGTH_CODE[code]! < size || (code > 0 && SIZE_OF_LENGTH_CODE[code - 1]! >= size) || code < before) {
        expect.fail(`size ${size} has code ${code}`);
      }
      before = code;
    }
    expect(before).toBe(255);
    expect(lengthCodeOf(RECORD_MAX_BYTES + 1)).toBe(-1);
  });
});
