import { createHash, hash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildIndex } from '../../src/builder/build.ts';
import type { BuildOptions } from '../../src/builder/options.ts';
import type { BuildProgress } from '../../src/builder/progress.ts';
import type { BuildReport } from '../../src/builder/report.ts';
import type { Manifest } from '../../src/drop/manifest.ts';
import { openIndex } from '../../src/index/read.ts';
import { hashKeyA } from '../../src/index/write.ts';
import type { DomainRecord } from '../../src/record/types.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';
import { makeDrop, type PartContent, rewriteManifest } from './small-drops.ts';

let folder = '';
let drop = '';
let out = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-build-test-'));
  drop = join(folder, 'drop');
  mkdirSync(join(folder, 'out'));
  out = join(folder, 'out', 'index.pgx');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const build = (options: Partial<BuildOptions> = {}): Promise<BuildReport> =>
  buildIndex({ drop, out, generation: 3, workers: 0, ...options });

function lookUp(keys: readonly string[]): Record<string, DomainRecord | undefined> {
  const index = openIndex(out);
  try {
    return Object.fromEntries(
      keys.map((key) => {
        const handle = index.find(key);
        return [key, handle === -1 ? undefined : index.decode(handle)];
      }),
    );
  } finally {
    index.close();
  }
}

const entries = (count: number, tag: string): { domain: string; global_rank: number; page_types: object }[] =>
  Array.from({ length: count }, (_, i) => {
    const domain = `${tag}${i}.example`;
    return {
      domain,
      global_rank: i + 1,
      page_types: { login: `https://${domain}/login`, docs: `https://www.${domain}/docs/${i}` },
    };
  });

describe('a build', () => {
  it('accepts plain, gzip and zstd parts; every fact is in the index', async () => {
    const rich = {
      domain: 'rich.example',
      language: 'de',
      page_types: { pricing: 'https://rich.example/preise', login: 'http://id.rich.example/?a=b' },
      iab_category: 'Attractions > Amusement and Theme Parks',
      filtering_categories: ['Phishing', 'malware'],
      open_page_rank: 4.35,
      global_rank: 4294967295,
    };
    await makeDrop(drop, { 'a.ndjson': [rich], 'b.ndjson.gz': entries(50, 'g'), 'c.ndjson.zst': entries(60, 'z') });
    const report = await build();
    expect(report).toMatchObject({
      lines: 111,
      entries: 111,
      duplicates: 0,
      recordCount: 111,
      pages: 222,
      rejects: {},
      repairs: {},
    });
    expect(report).toMatchObject({
      dataset: 'test',
      revision: 7,
      generation: 3,
      pageTypes: 'complete',
      rejectsFile: null,
    });
    expect(report.sizeBytes).toBe(statSync(out).size);
    const found = lookUp(['rich.example', 'g49.example', 'z0.example', 'nobody.example']);
    expect(found['rich.example']).toEqual({
      domain: 'rich.example',
      language: 'de',
      pageTypes: [
        { type: 'login', url: 'http://id.rich.example/?a=b' },
        { type: 'pricing', url: 'https://rich.example/preise' },
      ],
      iabCategory: 'Attractions > Amusement and Theme Parks',
      filteringCategories: ['Malware', 'Phishing'],
      openPageRank: 4.35,
      globalRank: 4294967295,
    });
    expect(found['g49.example']?.globalRank).toBe(50);
    expect(found['z0.example']?.pageTypes[1]?.url).toBe('https://www.z0.example/docs/0');
    expect(found['nobody.example']).toBeUndefined();
    const index = openIndex(out);
    expect(index.info).toMatchObject({
      dataset: 'test',
      revision: 7,
      created: '2026-01-02T03:04:05Z',
      generation: 3,
      pageTypesComplete: true,
    });
    index.close();
  });

  it('lets the later entry of the drop win, even if its part is read first', async () => {
    const filler = entries(3000, 'filler');
    await makeDrop(drop, {
      'a.ndjson': [
        { domain: 'www.twice.example', language: 'en' },
        { domain: 'twice.example', language: 'fr', global_rank: 1 },
      ],
      'b.ndjson': [{ domain: 'TWICE.example.', language: 'de' }, ...filler],
      'c.ndjson': [{ domain: 'www.twice.example', language: 'it' }],
    });
    const report = await build();
    expect(report.duplicates).toBe(3);
    expect(report.recordCount).toBe(3001);
    // The whole entry is replaced, not single fields: the rank of the earlier one is gone.
    expect(lookUp(['twice.example'])['twice.example']).toEqual({
      domain: 'twice.example',
      language: 'it',
      pageTypes: [],
    });
  });

  it('counts what is wrong, reports file and line, and keeps the rest', async () => {
    const long = `{"domain":"long.example","x":"${'y'.repeat(65_536)}"}`;
    const lines = [
      '\ufeff{"domain":"bom.example"}',
      '{"domain":"crlf.example"}\r',
      '',
      '\r',
      long,
      '{"domain":"a.example","domain":"b.example"}',
      '{"domain":"192.0.2.1"}',
      '{"domain":"off.example","page_types":{"login":"https://elsewhere.example/","docs":"https://off.example/d"}}',
      '{"domain":"rank.example","open_page_rank":11}',
      '{"domain":"last.example","global_rank":7}',
      '{"domain":"other.example","global_rank":7}',
    ];
    await makeDrop(drop, { 'dirty.ndjson': lines.join('\n') });
    const rejectsFile = join(folder, 'rejects.ndjson');
    const report = await build({ rejectsFile });
    expect(report.lines).toBe(9);
    expect(report.recordCount).toBe(6);
    expect(report.ranksRepeated).toBe(1);
    expect(report.repairs).toEqual({ blank_line: 2, crlf: 2, bom_stripped: 1 });
    const rejects = readFileSync(rejectsFile, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    const file = 'dirty.ndjson';
    expect(rejects).toEqual([
      { file, line: 5, level: 'line', reason: 'line_too_long', detail: '' },
      { file, line: 6, level: 'line', reason: 'duplicate_key', detail: lines[5] },
      { file, line: 7, level: 'line', reason: 'domain_ip_address', detail: '192.0.2.1' },
      { file, line: 8, level: 'page', reason: 'page_off_domain', detail: 'login: https://elsewhere.example/' },
      { file, line: 9, level: 'fact', reason: 'open_page_rank_out_of_range', detail: '11' },
    ]);
    expect(report.rejects).toEqual({
      domain_ip_address: 1,
      duplicate_key: 1,
      line_too_long: 1,
      open_page_rank_out_of_range: 1,
      page_off_domain: 1,
    });
    expect(report.rejectsWritten).toBe(5);
    const found = lookUp([
      'bom.example',
      'crlf.example',
      'off.example',
      'rank.example',
      'last.example',
      'long.example',
      'a.example',
    ]);
    expect(
      Object.entries(found)
        .filter(([, record]) => record === undefined)
        .map(([key]) => key),
    ).toEqual(['long.example', 'a.example']);
    expect(found['off.example']?.pageTypes).toEqual([{ type: 'docs', url: 'https://off.example/d' }]);
  });

  it('lets the later entry win and keeps the order of rejects, although unusual lines are read after plain ones', async () => {
    const lines: string[] = [];
    for (let i = 0; i < 1200; i++) {
      const domain = `name${i % 300}.example`;
      if (i % 100 === 50) lines.push('y'.repeat(70_000));
      else if (i % 7 === 0) lines.push(`{"domain":"bad name ${i}"}`);
      // Blanks between tokens make a line unusual.
      else lines.push(`{"domain":"${domain}",${i % 5 === 0 ? ' ' : ''}"global_rank":${i + 1}}`);
    }
    await makeDrop(drop, { 'a.ndjson': lines.slice(0, 700).join('\n'), 'b.ndjson': lines.slice(700).join('\n') });
    const rejectsFile = join(folder, 'rejects.ndjson');
    const last = new Map<string, number>();
    const bad: object[] = [];
    lines.forEach((line, i) => {
      const entry = line.startsWith('y') || i % 7 === 0 ? undefined : (JSON.parse(line) as Record<string, string>);
      if (entry !== undefined) last.set(entry['domain']!, i + 1);
      else bad.push(i < 700 ? { file: 'a.ndjson', line: i + 1 } : { file: 'b.ndjson', line: i - 699 });
    });
    for (const workers of [0, 2]) {
      const report = await build({ rejectsFile, workers });
      expect(report.recordCount).toBe(last.size);
      const found = lookUp([...last.keys()]);
      expect(new Map(Object.entries(found).map(([key, record]) => [key, record?.globalRank]))).toEqual(last);
      const rejects = readFileSync(rejectsFile, 'utf8').trimEnd().split('\n');
      expect(rejects.map((text) => JSON.parse(text)).map(({ file, line }) => ({ file, line }))).toEqual(bad);
    }
  });

  it('gives the same bytes for any number of workers', async () => {
    const shared = entries(2000, 'same').map((entry, i) => ({ ...entry, global_rank: i + 500 }));
    await makeDrop(drop, {
      'a.ndjson': entries(6000, 'a'),
      'b.ndjson.gz': [...shared, ...entries(3000, 'b')],
      'c.ndjson.zst': [...entries(2000, 'same'), { domain: 'bad domain' }],
      'd.ndjson': entries(500, 'd'),
    });
    const results = new Set<string>();
    for (const workers of [0, 1, 3]) {
      const rejectsFile = `${out}.rejects`;
      const report = await build({ workers, rejectsFile });
      expect(report.duplicates).toBe(2000);
      results.add([out, rejectsFile].map((path) => hash('sha256', readFileSync(path))).join());
    }
    expect(results.size).toBe(1);
    expect(lookUp(['same1.example'])['same1.example']?.globalRank).toBe(2);
  });

  it('accepts a domain with thousands of subdomains', async () => {
    const family = Array.from({ length: 20_000 }, (_, i) => ({
      domain: `host-${i}.family.example`,
      global_rank: i + 1,
    }));
    await makeDrop(drop, { 'a.ndjson': [{ domain: 'family.example', language: 'en' }, ...family] });
    const report = await build();
    expect(report.recordCount).toBe(20_001);
    const found = lookUp([
      'family.example',
      'host-0.family.example',
      'host-19999.family.example',
      'host-20000.family.example',
    ]);
    expect(found['family.example']?.language).toBe('en');
    expect(found['host-19999.family.example']?.globalRank).toBe(20_000);
    expect(found['host-20000.family.example']).toBeUndefined();
  });

  it('names a line of those whose domains were chosen to fall into one bucket', async () => {
    const lowest = 2 ** 32 / 64;
    const domains: string[] = [];
    for (let i = 0; domains.length < 300; i++) {
      const domain = Buffer.from(`chosen-${i}.example`);
      if (hashKeyA(domain, 0, domain.length) < lowest) domains.push(domain.toString());
    }
    await makeDrop(drop, {
      'a.ndjson': entries(900, 'a'),
      'b.ndjson': domains.map((domain) => ({ domain })),
    });
    for (const workers of [0, 2]) {
      await expect(build({ workers })).rejects.toMatchObject({
        code: 'index_limit',
        message: expect.stringMatching(/hashes of one bucket, among them line [\d,]+ of part [12]\. Chance/),
      });
    }
    expect(readdirSync(join(folder, 'out'))).toEqual([]);
  });

  it('accepts a few records that exceed a sorter’s memory', async () => {
    const types = pageTypes('full').map(({ name }) => name);
    const pages = (i: number): object => {
      const text = createHash('shake256', { outputLength: types.length * 1125 })
        .update(`${i}`)
        .digest('base64url');
      const paths = types.map((type, page) => [type, text.slice(page * 1500, (page + 1) * 1500)] as const);
      return Object.fromEntries(paths.map(([type, path]) => [type, `https://d${i}.example/${path}`]));
    };
    const rich = Array.from({ length: 1700 }, (_, i) => ({ domain: `d${i}.example`, page_types: pages(i) }));
    await makeDrop(drop, { 'a.ndjson': rich });
    const report = await build();
    expect(report).toMatchObject({ recordCount: 1700, pages: 1700 * types.length });
    expect(lookUp(['d1699.example'])['d1699.example']?.pageTypes.length).toBe(types.length);
  });

  it('keeps only the core vocabulary on request', async () => {
    const pages = { login: 'https://a.example/l', privacy: 'https://a.example/p' };
    await makeDrop(drop, { 'a.ndjson': [{ domain: 'a.example', page_types: pages }] });
    const report = await build({ vocabulary: 'core' });
    expect(report.repairs).toEqual({ page_type_outside_scope: 1 });
    expect(lookUp(['a.example'])['a.example']?.pageTypes.map(({ type }) => type)).toEqual(['login']);
  });

  it('creates an empty index if no record is left', async () => {
    await makeDrop(drop, { 'a.ndjson': '{"domain":"localhost"}\n', 'b.ndjson': '' });
    const report = await build();
    expect(report).toMatchObject({ lines: 1, entries: 0, recordCount: 0 });
    expect(lookUp(['localhost'])).toEqual({ localhost: undefined });
  });

  it('removes the rejects of an earlier build if it has none', async () => {
    const rejectsFile = join(folder, 'rejects.ndjson');
    writeFileSync(rejectsFile, `${JSON.stringify({ file: 'a', line: 1, level: 'line', reason: 'old', detail: '' })}\n`);
    await makeDrop(drop, { 'a.ndjson': entries(1, 'a') });
    await build({ rejectsFile });
    expect(readdirSync(folder).sort()).toEqual(['drop', 'out']);
  });

  it('reports its progress', async () => {
    await makeDrop(drop, { 'a.ndjson.gz': entries(2000, 'a') });
    const states: BuildProgress[] = [];
    await build({ onProgress: (state) => states.push(state) });
    expect(new Set(states.map(({ step }) => step))).toEqual(new Set(['scan', 'write', 'verify']));
    for (const { done, total } of states) expect(done).toBeLessThanOrEqual(total);
  });
});

/** Damages a valid drop of one part. */
type Break = (manifest: Manifest) => void | Promise<void>;
const part = (manifest: Manifest, change: object): void =>
  rewriteManifest(drop, { ...manifest, files: [{ ...manifest.files[0], ...change }] });
const change = (manifest: Manifest, changes: object): void => rewriteManifest(drop, { ...manifest, ...changes });
const repack = async (content: PartContent, name = 'a.ndjson.gz', changes: object = {}): Promise<void> => {
  rmSync(join(drop, 'a.ndjson'));
  writeFileSync(join(drop, name), content as Uint8Array);
  const bytes = readFileSync(join(drop, name));
  const manifest = JSON.parse(readFileSync(join(drop, 'manifest.json'), 'utf8')) as Manifest;
  const listed = { name, bytes: bytes.length, records: manifest.files[0]!.records, sha256: hash('sha256', bytes) };
  rewriteManifest(drop, { ...manifest, files: [{ ...listed, ...changes }] });
};

const BROKEN: readonly (readonly [string, string, Break])[] = [
  ['no manifest', 'manifest_missing', () => rmSync(join(drop, 'manifest.json'))],
  [
    'a manifest that is a link',
    'drop_file_kind',
    () => {
      rmSync(join(drop, 'manifest.json'));
      symlinkSync('/dev/null', join(drop, 'manifest.json'));
    },
  ],
  [
    'a manifest that is a folder',
    'drop_file_kind',
    () => {
      rmSync(join(drop, 'manifest.json'));
      mkdirSync(join(drop, 'manifest.json'));
    },
  ],
  ['a manifest that is not JSON', 'manifest_invalid', () => rewriteManifest(drop, '{"format":')],
  [
    'a manifest that is not UTF-8',
    'manifest_invalid',
    () => writeFileSync(join(drop, 'manifest.json'), Buffer.of(0x22, 0xff, 0x22)),
  ],
  ['another format', 'manifest_invalid', (manifest) => change(manifest, { format: 'pagegate-drop/2' })],
  ['an unknown field', 'manifest_invalid', (manifest) => change(manifest, { extra: 1 })],
  ['a missing field', 'manifest_invalid', (manifest) => change(manifest, { dataset: undefined })],
  ['a time that is not one', 'manifest_invalid', (manifest) => change(manifest, { created: 'yesterday' })],
  ['a blank in a time', 'manifest_invalid', (manifest) => change(manifest, { created: '2026-01-02 03:04:05Z' })],
  ['no parts', 'manifest_invalid', (manifest) => change(manifest, { files: [] })],
  ['more lines than its bytes can hold', 'manifest_invalid', (manifest) => part(manifest, { records: 1e12 })],
  [
    'more lines than its bytes can unpack to',
    'manifest_invalid',
    () => repack(gzipSync('{"domain":"a.example"}\n'), 'a.ndjson.gz', { records: 1e9 }),
  ],
  [
    'more lines than an index has records',
    'build_too_large',
    (manifest) => {
      // A sparse file: nothing is written.
      truncateSync(join(drop, 'a.ndjson'), 2e9);
      part(manifest, { bytes: 2e9, records: 6e8 });
    },
  ],
  ['revision 0', 'manifest_invalid', (manifest) => change(manifest, { revision: 0 })],
  ['a delta', 'drop_kind', (manifest) => change(manifest, { kind: 'delta' })],
  [
    'a newer vocabulary',
    'drop_vocabulary',
    (manifest) => change(manifest, { vocabulary: { name: 'page-types', version: 9999 } }),
  ],
  [
    'another vocabulary',
    'drop_vocabulary',
    (manifest) => change(manifest, { vocabulary: { name: 'others', version: 1 } }),
  ],
  ['a name with a path', 'manifest_invalid', (manifest) => part(manifest, { name: '../a.ndjson' })],
  ['a hidden name', 'manifest_invalid', (manifest) => part(manifest, { name: '.a.ndjson' })],
  [
    'a part listed twice',
    'drop_file_name',
    (manifest) => change(manifest, { files: [manifest.files[0], manifest.files[0]] }),
  ],
  ['a missing part', 'drop_part_missing', () => rmSync(join(drop, 'a.ndjson'))],
  [
    'a part that is a link',
    'drop_file_kind',
    () => {
      writeFileSync(join(folder, 'elsewhere'), readFileSync(join(drop, 'a.ndjson')));
      rmSync(join(drop, 'a.ndjson'));
      symlinkSync(join(folder, 'elsewhere'), join(drop, 'a.ndjson'));
    },
  ],
  ['a part of another size', 'drop_part_size', () => truncateSync(join(drop, 'a.ndjson'), 100)],
  [
    'a part that was changed',
    'drop_part_checksum',
    () => {
      const path = join(drop, 'a.ndjson');
      writeFileSync(path, readFileSync(path, 'latin1').replace('a5.example', 'b5.example'), 'latin1');
    },
  ],
  ['more lines than promised', 'drop_part_records', (manifest) => part(manifest, { records: 10 })],
  ['fewer lines than promised', 'drop_part_records', (manifest) => part(manifest, { records: 9999 })],
  [
    'more than there is space for',
    'build_no_space',
    (manifest) => {
      // Sparse files: two hundred terabytes that take no space here.
      const bytes = 2 ** 38;
      const files = Array.from({ length: 800 }, (_, i) => ({
        name: `hole-${i}`,
        bytes,
        records: 1,
        sha256: '0'.repeat(64),
      }));
      for (const { name } of files) {
        writeFileSync(join(drop, name), '');
        truncateSync(join(drop, name), bytes);
      }
      change(manifest, { files });
    },
  ],
  [
    'a truncated gzip',
    'drop_part_truncated',
    async () => {
      const packed = gzipSync(readFileSync(join(drop, 'a.ndjson')));
      await repack(packed.subarray(0, packed.length - 20));
    },
  ],
  ['something else than gzip', 'drop_part_truncated', () => repack(Buffer.from('this is not gzip'))],
  ['something else than zstd', 'drop_part_truncated', () => repack(Buffer.from('this is not zstd'), 'a.ndjson.zst')],
  ['a gzip that unpacks without end', 'drop_too_large', () => repack(gzipSync(Buffer.alloc(64 << 20)))],
];

describe('a drop that does not match its manifest', () => {
  it.each(BROKEN)('%s: %s, and nothing is left behind or changed', async (_, code, breakIt) => {
    const manifest = await makeDrop(drop, { 'a.ndjson': entries(1000, 'a') });
    await breakIt(manifest);
    // It starts like an index; otherwise it would not be replaced anyway.
    const before = '\x89PGX\r\n\x1a\n, what was there before';
    writeFileSync(out, before, 'latin1');
    await expect(build()).rejects.toMatchObject({ name: 'PagegateError', code });
    expect(readdirSync(join(folder, 'out'))).toEqual(['index.pgx']);
    expect(readFileSync(out, 'latin1')).toBe(before);
  });

  it('is refused with the same code in a thread', async () => {
    await makeDrop(drop, { 'a.ndjson': entries(100, 'a') });
    const path = join(drop, 'a.ndjson');
    writeFileSync(path, readFileSync(path, 'latin1').replace('a5.example', 'b5.example'), 'latin1');
    await expect(build({ workers: 2 })).rejects.toMatchObject({ name: 'PagegateError', code: 'drop_part_checksum' });
    expect(readdirSync(join(folder, 'out'))).toEqual([]);
  });

  it('does not replace anything but a file', async () => {
    await makeDrop(drop, { 'a.ndjson': entries(1, 'a') });
    mkdirSync(out);
    await expect(build()).rejects.toMatchObject({ code: 'build_output_exists' });
  });
});

describe('a build that is stopped', () => {
  it.each([0, 2])('leaves nothing behind (%i threads)', async (workers) => {
    await makeDrop(drop, { 'a.ndjson': entries(30_000, 'a'), 'b.ndjson': entries(30_000, 'b') });
    const controller = new AbortController();
    const stop = new Error('stopped');
    const onProgress = (): void => controller.abort(stop);
    await expect(build({ workers, onProgress, signal: controller.signal })).rejects.toBe(stop);
    expect(readdirSync(join(folder, 'out'))).toEqual([]);
  });
});
