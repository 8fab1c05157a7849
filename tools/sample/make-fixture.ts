/**
 * Creates test/data/fixture-drop: a small synthetic drop, marked as such, with every field, every page type, every filtering category and the
 * limits of every range. It covers data that no redistributable source has, such as Open PageRank.
 * Usage: node tools/sample/make-fixture.ts [DIRECTORY]
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { languages } from '../../src/record/language-codes.ts';
import { filteringCategories, iabPaths } from '../../src/record/taxonomy.ts';
import { pageTypes, VOCABULARY_NAME, VOCABULARY_VERSION } from '../../src/record/vocabulary.ts';

interface FixtureEntry {
  readonly domain: string;
  readonly language?: string;
  readonly page_types?: Readonly<Record<string, string>>;
  readonly iab_category?: string;
  readonly filtering_categories?: readonly string[];
  readonly open_page_rank?: number;
  readonly global_rank?: number;
}

const types = pageTypes('full').map((type) => type.name);
const RANK_MAX = 4_294_967_295;

/** Records whose names say what they test. */
const named: readonly FixtureEntry[] = [
  {
    domain: 'everything.example.com',
    language: 'en',
    page_types: Object.fromEntries(types.map((type) => [type, `https://everything.example.com/${type}`])),
    iab_category: 'Technology & Computing > Artificial Intelligence',
    filtering_categories: ['Generative AI', 'Business'],
    open_page_rank: 6.54,
    global_rank: 4321,
  },
  { domain: 'nothing.example.com' },
  { domain: 'no-pages.example.com', language: 'de', page_types: {}, open_page_rank: 1.5 },
  { domain: 'lowest.example.com', open_page_rank: 0, global_rank: 1 },
  { domain: 'highest.example.com', open_page_rank: 10, global_rank: RANK_MAX },
  { domain: 'hundredth.example.com', open_page_rank: 0.01, global_rank: 2 },
  { domain: 'all-categories.example.com', filtering_categories: filteringCategories },
  { domain: 'phishing.example.com', filtering_categories: ['Phishing'], language: 'en' },
  { domain: 'malware.example.com', filtering_categories: ['Malware', 'Adult Content'] },
  {
    domain: 'xn--bcher-kva.example.com',
    language: 'de',
    page_types: { cart: 'https://xn--bcher-kva.example.com/warenkorb', product: 'http://xn--bcher-kva.example.com/' },
    iab_category: 'Books and Literature',
  },
  {
    domain: 'odd-pages.example.com',
    page_types: {
      login: 'https://login.odd-pages.example.com/?next=%2Fhome&lang=en#form',
      checkout: 'https://odd-pages.example.com:8443/pay',
      docs: 'http://odd-pages.example.com/',
      help: `https://odd-pages.example.com/${'long/'.repeat(100)}end`,
    },
  },
  { domain: 'example.com', page_types: { login: 'https://accounts.example.com/login' }, language: 'en' },
  // The next part has this domain again, and the later record wins.
  { domain: 'twice.example.com', language: 'fr', global_rank: 100 },
];

function* numbered(): Generator<FixtureEntry> {
  for (const [i, type] of types.entries()) {
    yield {
      domain: `only-${type.replaceAll('_', '-')}.example.net`,
      language: languages[(i * 37) % languages.length]!,
      page_types: { [type]: `https://www.only-${type.replaceAll('_', '-')}.example.net/${type}/` },
      iab_category: iabPaths[(i * 97) % iabPaths.length]!,
      filtering_categories: [filteringCategories[(i * 13) % filteringCategories.length]!],
      open_page_rank: ((i * 263) % 1001) / 100,
      global_rank: 1000 + i,
    };
  }
  yield { domain: 'twice.example.com', language: 'it', page_types: { about: 'https://twice.example.com/about' } };
}

/** Yields one record for each IAB category and each language, to detect a dictionary that loses one. */
function* catalog(): Generator<FixtureEntry> {
  for (const [i, path] of iabPaths.entries()) {
    yield {
      domain: `iab-${i}.example.org`,
      language: languages[i % languages.length]!,
      iab_category: path,
      open_page_rank: (i % 1001) / 100,
    };
  }
}

const lines = (entries: Iterable<FixtureEntry>): string =>
  [...entries].map((entry) => `${JSON.stringify(entry)}\n`).join('');

function main(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const parts = [
    { name: 'named.ndjson', text: lines(named), bytes: Buffer.from(lines(named)) },
    { name: 'numbered.ndjson.gz', text: lines(numbered()), bytes: gzipSync(lines(numbered()), { level: 9 }) },
    { name: 'catalog.ndjson.zst', text: lines(catalog()), bytes: zstdCompressSync(lines(catalog())) },
  ];
  for (const { name, bytes } of parts) writeFileSync(join(directory, name), bytes);
  const manifest = {
    format: 'pagegate-drop/1',
    dataset: 'pagegate-fixture',
    revision: 1,
    created: '2026-01-01T00:00:00Z',
    kind: 'full',
    vocabulary: { name: VOCABULARY_NAME, version: VOCABULARY_VERSION },
    page_types: 'complete',
    notice: 'Made up for tests by tools/sample/make-fixture.ts. No record is true of any domain.',
    files: parts.map(({ name, text, bytes }) => ({
      name,
      bytes: bytes.length,
      records: text.split('\n').length - 1,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    })),
  };
  writeFileSync(join(directory, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

if (import.meta.main) main(process.argv[2] ?? 'test/data/fixture-drop');
