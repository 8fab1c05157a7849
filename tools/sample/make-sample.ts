/**
 * Creates the sample drop from the staged public data: data/sample (manifest and parts), data/provenance/sample.tsv.zst (the source of
 * every fact, line by line) and data/NOTICE.md.
 * Usage: node tools/sample/make-sample.ts STAGED_DATA DATA_DIRECTORY
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { keyFromHost } from '../../src/domain/host-key.ts';
import { filteringOrdinal, filteringTaxonomy } from '../../src/record/taxonomy.ts';
import { pageTypes, VOCABULARY_NAME, VOCABULARY_VERSION } from '../../src/record/vocabulary.ts';
import { mappingProblems, readMapping, type SourceMapping } from './mapping.ts';
import { noticeText } from './notice.ts';
import { comparePages, pageFacts } from './pages.ts';
import type { SampleRecord } from './record.ts';
import { allFacts, type Fact } from './sources.ts';

const CREATED = '2026-11-21T00:00:00Z';

/** Returns the key under which all spellings of a domain are merged; the domain itself if it has no key. */
function mergeKeyOf(domain: string): string {
  const result = keyFromHost(domain);
  return 'key' in result ? result.key : domain;
}

function addFact(record: SampleRecord, fact: Fact): void {
  const { source, category } = fact;
  if (fact.language !== undefined) record.language ??= { value: fact.language, source };
  if (fact.rank !== undefined) record.rank ??= { value: fact.rank, source };
  if (category?.iab !== undefined) record.iab ??= { value: category.iab, source };
  for (const id of category?.filtering ?? []) {
    record.filtering.set(id, (record.filtering.get(id) ?? new Set()).add(source));
  }
}

/** Returns all records by their merge key. Every record has at least one fact: a name alone is no information about a domain. */
function gather(root: string, mapping: SourceMapping): Map<string, SampleRecord> {
  const records = new Map<string, SampleRecord>();
  const recordOf = (domain: string): SampleRecord => {
    const key = mergeKeyOf(domain);
    const known = records.get(key);
    if (known !== undefined) return known;
    const record: SampleRecord = { domain, pages: new Map(), filtering: new Map() };
    records.set(key, record);
    return record;
  };
  for (const page of pageFacts(root, mapping)) {
    const { pages } = recordOf(page.domain);
    const best = pages.get(page.type);
    if (best === undefined || comparePages(page, best) < 0) pages.set(page.type, page);
  }
  for (const fact of allFacts(root, mapping)) {
    const empty = fact.language === undefined && fact.category === undefined && fact.rank === undefined;
    if (!empty) addFact(recordOf(fact.domain), fact);
  }
  return records;
}

/** Returns the record as a line of the drop, and its provenance as tab-separated `field=source`. */
export function lineOf(record: SampleRecord): { readonly line: string; readonly provenance: string } {
  const sources: string[] = [];
  const entry: Record<string, unknown> = { domain: record.domain };
  if (record.language !== undefined) {
    entry['language'] = record.language.value;
    sources.push(`language=${record.language.source}`);
  }
  const pages = pageTypes('full').flatMap(({ name }) => record.pages.get(name) ?? []);
  if (pages.length > 0) entry['page_types'] = Object.fromEntries(pages.map(({ type, url }) => [type, url]));
  for (const { type, source } of pages) sources.push(`page_types.${type}=${source}`);
  if (record.iab !== undefined) {
    entry['iab_category'] = record.iab.value;
    sources.push(`iab_category=${record.iab.source}`);
  }
  const ordinals = [...record.filtering.keys()].map((id) => filteringOrdinal(id) ?? 0).sort((a, b) => a - b);
  const categories = ordinals.flatMap((ordinal) => filteringTaxonomy[ordinal] ?? []);
  if (categories.length > 0) entry['filtering_categories'] = categories.map(({ name }) => name);
  for (const { id } of categories) sources.push(`filtering.${id}=${[...(record.filtering.get(id) ?? [])].join('+')}`);
  if (record.rank !== undefined) {
    entry['global_rank'] = record.rank.value;
    sources.push(`global_rank=${record.rank.source}`);
  }
  return { line: JSON.stringify(entry), provenance: sources.join('\t') };
}

const zstd = (text: string): Buffer =>
  zstdCompressSync(text, {
    params: { [constants.ZSTD_c_compressionLevel]: 19, [constants.ZSTD_c_checksumFlag]: 1 },
  });

function main(root: string, out: string): void {
  const mapping = readMapping();
  const problems = mappingProblems(mapping);
  if (problems.length > 0) throw new Error(`mapping.json: ${problems.join('; ')}`);
  const records = [...gather(root, mapping).entries()].sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
  const withPages: SampleRecord[] = [];
  const others: SampleRecord[] = [];
  for (const [, record] of records) (record.pages.size > 0 ? withPages : others).push(record);
  const parts = [
    { name: 'with-pages.ndjson.zst', records: withPages, pack: zstd },
    { name: 'without-pages.ndjson.gz', records: others, pack: (text: string): Buffer => gzipSync(text, { level: 9 }) },
  ];
  mkdirSync(join(out, 'sample'), { recursive: true });
  mkdirSync(join(out, 'provenance'), { recursive: true });
  const files: object[] = [];
  const provenance: string[] = [];
  for (const part of parts) {
    const lines = part.records.map(lineOf);
    const bytes = part.pack(lines.map(({ line }) => `${line}\n`).join(''));
    writeFileSync(join(out, 'sample', part.name), bytes);
    for (const [i, line] of lines.entries()) provenance.push(`${part.records[i]?.domain}\t${line.provenance}\n`);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    files.push({ name: part.name, bytes: bytes.length, records: lines.length, sha256 });
  }
  const manifest = {
    format: 'pagegate-drop/1',
    dataset: 'pagegate-sample',
    revision: 1,
    created: CREATED,
    kind: 'full',
    vocabulary: { name: VOCABULARY_NAME, version: VOCABULARY_VERSION },
    page_types: 'partial',
    files,
  };
  writeFileSync(join(out, 'sample', 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(join(out, 'provenance', 'sample.tsv.zst'), zstd(provenance.join('')));
  writeFileSync(join(out, 'NOTICE.md'), noticeText(mapping, [...withPages, ...others]));
  process.stdout.write(`${JSON.stringify(manifest.files, null, 2)}\n`);
}

if (import.meta.main) {
  const [root, out] = process.argv.slice(2);
  if (root === undefined || out === undefined) throw new Error('usage: make-sample.ts STAGED_DATA DATA_DIRECTORY');
  main(root, out);
}
