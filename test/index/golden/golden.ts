/**
 * The golden file: a small index with the features that readers get wrong. After an intended change of the format, `node_modules/.bin/node
 * test/index/golden/golden.ts` writes it again. FORMAT.md quotes its bytes.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { hashKeyA } from '../../../src/index/write.ts';
import type { Entry } from '../../../src/record/entry.ts';
import type { RecordNames } from '../../../src/record/names.ts';
import { entryOf, tinyIndexBytes } from '../../support/tiny-index.ts';

const PATH = new URL('./format-2.0.pgx', import.meta.url);

/** Two page types, and more IAB categories than one byte can number. */
const names: RecordNames = {
  vocabulary: { name: 'example', version: 1, pageTypes: ['login', 'pricing'] },
  iab: { version: 'example-iab', names: Array.from({ length: 230 }, (_, i) => `Topic ${i}`) },
  filtering: { version: 'example-filtering', names: ['News', 'Games'] },
};

const isInSecondBucket = (domain: string): boolean => hashKeyA(Buffer.from(domain), 0, domain.length) >= 2 ** 31;

/** One bucket with a single record; one with 30, two of which have no slot. */
export const goldenEntries: readonly Entry[] = [
  entryOf(
    'example.com',
    // The backslash is not in the symbol table, and JSON escapes it.
    { login: 'https://example.com/login', pricing: 'https://www.example.com/p?\\' },
    { language: 'en', iabCategory: 1, filteringCategories: [0], openPageRankHundredths: 550, globalRank: 1000 },
    names,
  ),
  entryOf('example.org', {}, {}, names),
  ...Array.from({ length: 200 }, (_, i) => `site-${i}.example`)
    .filter(isInSecondBucket)
    .slice(0, 29)
    .map((domain) => entryOf(domain, {}, {}, names)),
];

/** Returns the writer's output for these entries. */
export function writeGolden(): Uint8Array {
  return tinyIndexBytes(goldenEntries, {
    names,
    bucketCount: 2,
    metadata: { unicodeVersion: '17.0' },
    // Training would move the used category to the front, with an ordinal of one byte. Here it comes last.
    dictionary: (trained) => ({
      ...trained,
      iabOrder: [...trained.iabOrder.slice(1), ...trained.iabOrder.slice(0, 1)],
    }),
  });
}

/** Returns the committed file. */
export const readGolden = (): Uint8Array => Uint8Array.from(readFileSync(PATH));

if (import.meta.main) writeFileSync(PATH, writeGolden());
