/** The committed sample drop: its properties, and the sources of all its facts. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { readManifest } from '../../src/drop/manifest.ts';
import { parseEntry } from '../../src/record/entry.ts';
import { filteringTaxonomy } from '../../src/record/taxonomy.ts';

const data = fileURLToPath(new URL('../../data/', import.meta.url));
const drop = join(data, 'sample');

/** Listed here from the rule for redistribution, not taken from the tool's table. */
const LICENSES = ['CC0-1.0', 'MIT', 'BSD-3-Clause', 'ISC', 'Apache-2.0', 'Unlicense', 'WTFPL', 'CC-BY-4.0'];
/** Available sources that must not be redistributed: share-alike, non-commercial, copyleft, or without a license. */
const OFF_LIMITS =
  'ut1 citizenlab trackerdb tosdr open-terms-archive engineering-blogs awesome-selfhosted sharex prowlarr dark-patterns gallery-dl calibre ' +
  'tranco alexa chrome-topics catalan whatsmyname hiring-ww awesome-remote-job established-remote free-for-dev n0shake-public-apis awesome-uses';

interface Mapping {
  readonly sources: Readonly<Record<string, { readonly license: string; readonly url: string }>>;
}

interface SampleEntry {
  readonly domain: string;
  readonly language?: string;
  readonly page_types?: Readonly<Record<string, string>>;
  readonly iab_category?: string;
  readonly filtering_categories?: readonly string[];
  readonly global_rank?: number;
}

const unpack = (path: string): string => {
  const bytes = readFileSync(path);
  if (path.endsWith('.gz')) return gunzipSync(bytes).toString('utf8');
  return (path.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes).toString('utf8');
};
const linesOf = (path: string): string[] => unpack(path).split('\n').slice(0, -1);
const mapping = JSON.parse(
  readFileSync(new URL('../../tools/sample/mapping.json', import.meta.url), 'utf8'),
) as Mapping;

let lines: string[] = [];
let entries: SampleEntry[] = [];
let provenance: string[][] = [];

beforeAll(() => {
  lines = readManifest(drop).manifest.files.flatMap(({ name }) => linesOf(join(drop, name)));
  entries = lines.map((line) => JSON.parse(line) as SampleEntry);
  provenance = linesOf(join(data, 'provenance/sample.tsv.zst')).map((line) => line.split('\t'));
});

describe('the drop', () => {
  it('has a manifest that matches its parts, and states that its page types are partial', () => {
    const { manifest } = readManifest(drop);
    expect(manifest).toMatchObject({ dataset: 'pagegate-sample', kind: 'full', page_types: 'partial' });
    for (const { name, bytes, records, sha256 } of manifest.files) {
      const part = readFileSync(join(drop, name));
      expect(part.length).toBe(bytes);
      expect(createHash('sha256').update(part).digest('hex')).toBe(sha256);
      expect(linesOf(join(drop, name))).toHaveLength(records);
    }
    expect(readdirSync(drop).sort()).toEqual(['manifest.json', ...manifest.files.map(({ name }) => name)].sort());
  });

  it('has at least 50,000 domains, 7,000 of them with page types, in less than 10 MB', () => {
    const domains = new Set(lines.flatMap((line) => parseEntry(Buffer.from(line)).entry?.domain ?? []));
    expect(domains.size).toBeGreaterThanOrEqual(50_000);
    expect(entries.filter((entry) => Object.keys(entry.page_types ?? {}).length > 0).length).toBeGreaterThanOrEqual(
      7000,
    );
    const sizes = [...readdirSync(drop).map((name) => join(drop, name)), join(data, 'provenance/sample.tsv.zst')];
    expect(sizes.reduce((sum, path) => sum + statSync(path).size, 0)).toBeLessThan(10_000_000);
  });

  it('is valid against the schema of entries on every line', () => {
    const schema = JSON.parse(readFileSync(join(data, 'schema/entry.schema.json'), 'utf8')) as object;
    const validate = new Ajv2020({ strict: false }).compile(schema);
    expect(entries.filter((entry) => !validate(entry))).toEqual([]);
  });

  it('loses nothing on import except invalid host names', () => {
    const reasons = new Map<string, number>();
    for (const line of lines) {
      for (const { reason } of parseEntry(Buffer.from(line)).rejects)
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
    expect(reasons.size).toBeGreaterThan(0);
    expect([...reasons.keys()].filter((reason) => !reason.startsWith('domain_'))).toEqual([]);
    expect([...reasons.values()].reduce((sum, count) => sum + count, 0)).toBeLessThan(30);
  });

  it('contains no invented Open PageRank, and no record without a fact', () => {
    expect(entries.filter((entry) => 'open_page_rank' in entry)).toEqual([]);
    expect(entries.filter((entry) => Object.keys(entry).length < 2)).toEqual([]);
  });

  it.each([
    ['twitch.tv', 'login', 'https://www.twitch.tv/login'],
    ['netlify.com', 'pricing', 'https://www.netlify.com/pricing/'],
    ['slack.com', 'status', 'https://status.slack.com/'],
    ['digitalocean.com', 'account', 'https://cloud.digitalocean.com/deactivate'],
  ])('contains for %s a %s page', (domain, type, url) => {
    expect(entries.find((entry) => entry.domain === domain)?.page_types?.[type]).toBe(url);
  });
});

describe('provenance', () => {
  const fieldsOf = (entry: SampleEntry): string[] => [
    ...(entry.language === undefined ? [] : ['language']),
    ...Object.keys(entry.page_types ?? {}).map((type) => `page_types.${type}`),
    ...(entry.iab_category === undefined ? [] : ['iab_category']),
    ...(entry.filtering_categories ?? []).map(
      (name) => `filtering.${filteringTaxonomy.find((category) => category.name === name)?.id}`,
    ),
    ...(entry.global_rank === undefined ? [] : ['global_rank']),
  ];

  it('names a source for every fact, line by line', () => {
    expect(provenance).toHaveLength(entries.length);
    const wrong = entries.filter((entry, i) => {
      const [domain, ...facts] = provenance[i] ?? [];
      return domain !== entry.domain || facts.map((fact) => fact.split('=')[0]).join() !== fieldsOf(entry).join();
    });
    expect(wrong).toEqual([]);
  });

  it('names only sources whose license allows redistribution', () => {
    const used = new Set(
      provenance.flatMap((row) => row.slice(1).flatMap((fact) => fact.split('=')[1]?.split('+') ?? [''])),
    );
    expect(used.size).toBeGreaterThan(20);
    for (const source of used) expect(LICENSES, source).toContain(mapping.sources[source]?.license);
    for (const source of OFF_LIMITS.split(' '))
      expect([...used, ...Object.keys(mapping.sources)]).not.toContain(source);
  });

  it('matches the counts of NOTICE.md', () => {
    const notice = readFileSync(join(data, 'NOTICE.md'), 'utf8');
    expect(notice).toContain(`${entries.length.toLocaleString('en-US')} real domains`);
    const pages = new Map<string, number>();
    for (const row of provenance) {
      for (const fact of row.slice(1)) {
        const [field = '', source = ''] = fact.split('=');
        if (field.startsWith('page_types.')) pages.set(source, (pages.get(source) ?? 0) + 1);
      }
    }
    for (const [source, { license, url }] of Object.entries(mapping.sources)) {
      const row = notice.split('\n').find((line) => line.startsWith(`| ${source} |`));
      expect(row, source).toContain(url);
      expect(row?.split(' | ')[3], source).toBe(license);
      expect(row?.split(' | ')[5], source).toBe(String(pages.get(source) ?? 0));
    }
  });
});
