import { readFileSync } from 'node:fs';
import { zstdDecompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FastScanner } from '../../src/builder/scan/fast-scanner.ts';
import {
  DictionaryTrainer,
  fieldsFromEntry,
  INHERITED_ORIGIN,
  NO_TEMPLATE,
  RecordEncoder,
  RecordFields,
} from '../../src/index/write.ts';
import { parseEntry } from '../../src/record/entry.ts';
import { languages } from '../../src/record/language-codes.ts';
import { recordNames } from '../../src/record/names.ts';
import { filteringTaxonomy, iabCategories } from '../../src/record/taxonomy.ts';
import { pageTypes, type VocabularyScope } from '../../src/record/vocabulary.ts';
import { expectSame } from '../support/same.ts';

const sampleLines: readonly Buffer[] = zstdDecompressSync(
  readFileSync(new URL('../../data/sample/with-pages.ndjson.zst', import.meta.url)),
)
  .toString('latin1')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => Buffer.from(line, 'latin1'));

const fields = new RecordFields();
const expected = new RecordFields();
const SCOPES = ['full', 'core'] as const;

/** Two readers for one scope: one with a dictionary, so that path templates are known, and one without, as in dictionary training. */
function setUp(scope: VocabularyScope) {
  const trainer = new DictionaryTrainer(recordNames(scope));
  const learning = new FastScanner(fields, scope);
  for (const line of sampleLines) if (learning.scan(line, 0, line.length)) trainer.add(fields);
  const dictionary = trainer.train();
  const encoder = new RecordEncoder(dictionary, recordNames(scope));
  const numbers = dictionary.pathTemplates.map(
    (pathTemplates) =>
      new Map(
        pathTemplates.map(({ origin, path }, number) => [origin === INHERITED_ORIGIN ? path : `${origin} `, number]),
      ),
  );
  return { encoder, dictionary, numbers, learning, scanner: new FastScanner(fields, scope, dictionary.pathTemplates) };
}

const setups = Object.fromEntries(SCOPES.map((scope) => [scope, setUp(scope)])) as Record<
  VocabularyScope,
  ReturnType<typeof setUp>
>;
const paths = [...new Set(setups.full.dictionary.pathTemplates.flat().map(({ path }) => path))];

const textOf = (of: RecordFields, start: number, end: number): string =>
  Buffer.from(of.source.buffer, of.source.byteOffset, of.source.byteLength).toString('latin1', start, end);

/** Returns the contents of a record as text. */
function describeFields(of: RecordFields): unknown {
  const origins = Array.from({ length: of.originCount }, (_, i) =>
    textOf(of, of.originStarts[i]!, of.originStarts[i]! + of.originSizes[i]!),
  );
  expectSame(new Set(origins).size, origins.length);
  const pages = Array.from({ length: of.pageCount }, (_, i) => [
    of.pageTypes[i],
    textOf(of, of.pageStarts[i]!, of.pageEnds[i]!),
    origins[of.pageOrigins[i]!],
  ]);
  const { language, iabCategory, filteringCount, openPageRankHundredths, globalRank } = of;
  const domain = textOf(of, of.domainStart, of.domainEnd);
  const filtering = [...of.filtering.subarray(0, filteringCount)];
  return { domain, language, iabCategory, filtering, openPageRankHundredths, globalRank, pages };
}

/** Returns the template of each page, found in the simplest way. */
function templatesOf(of: RecordFields, numbers: readonly ReadonlyMap<string, number>[]): number[] {
  const domainSize = of.domainEnd - of.domainStart;
  return Array.from({ length: of.pageCount }, (_, i) => {
    const path = of.pageStarts[i]! + of.originSizes[of.pageOrigins[i]!]! + domainSize;
    return numbers[of.pageTypes[i]!]!.get(textOf(of, path, of.pageEnds[i]!)) ?? NO_TEMPLATE;
  });
}

/**
 * Scans a line in the middle of a chunk, surrounded by other text. If the scanner accepts it, the slow reader must reject nothing, and both must
 * produce the same record. Returns whether the scanner accepted it. A scan of memory that ends with the line must accept it, too, and so must the
 * scanner with path templates if the one without did.
 */
function agree(line: Buffer, scope: VocabularyScope = 'full'): boolean {
  const before = Buffer.from('{"domain":"before.example"}\n');
  const after = Buffer.from('\n"/.}],:{"domain":"after.example","global_rank":7}\n');
  const chunk = Buffer.concat([before, line, after]);
  const alone = Buffer.allocUnsafeSlow(line.length);
  line.copy(alone);
  const { scanner, learning, encoder, numbers } = setups[scope];
  const understood = scanner.scan(alone, 0, line.length);
  if (learning.scan(chunk, before.length, before.length + line.length)) expectSame(understood, true);
  expectSame(scanner.scan(chunk, before.length, before.length + line.length), understood);
  if (!understood) return false;
  const repairs = [...scanner.repairs].sort();
  const parsed = parseEntry(line, scope);
  const context = line.toString('latin1').slice(0, 2000);
  expectSame(
    { context, rejects: parsed.rejects, repairs: [...parsed.repairs].sort() },
    { context, rejects: [], repairs },
  );
  fieldsFromEntry(parsed.entry!, expected);
  expectSame(describeFields(fields), describeFields(expected));
  expectSame([...fields.pageTemplates.subarray(0, fields.pageCount)], templatesOf(fields, numbers));
  const size = encoder.encode(expected);
  const record = encoder.out.slice(0, size);
  expectSame(encoder.encode(fields), size);
  expectSame(Buffer.compare(encoder.out.subarray(0, size), record), 0);
  return true;
}

const RICH = Buffer.from(
  JSON.stringify({
    domain: 'docs.example.co.uk',
    language: 'en',
    page_types: {
      login: 'https://docs.example.co.uk/login?next=%2Fa&x=1#top',
      pricing: 'http://www.docs.example.co.uk/',
      docs: 'https://a-b.docs.example.co.uk/v1.2/~index.html',
    },
    iab_category: 'Attractions > Bars & Restaurants',
    filtering_categories: ['Malware', 'phishing'],
    open_page_rank: 4.35,
    global_rank: 123456,
  }),
);

/** A small random generator, so that a failure can be repeated from its seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const TOKENS = [
  '"',
  '\\',
  '/',
  '//',
  '/.',
  '/../',
  '/./',
  '%2e',
  '%2E%2e/',
  '%',
  'www.',
  '.',
  '..',
  '-',
  '_',
  'xn--',
  ':',
  ':80',
  '@',
  '?',
  '#',
  ' ',
  '\t',
  '\r',
  '\0',
  '\u007f',
  '\u00e9',
  '\u00ff',
  '{',
  '}',
  '[',
  ']',
  ',',
  '0',
  '00',
  '1',
  '9',
  '10',
  '.0',
  '.5',
  '1e3',
  '-1',
  'null',
  'true',
  'A',
  'a',
  '"domain":"a.example"',
  ',"language":"de"',
  ',"global_rank":5',
  '\\u0041',
  '\\"',
  'github.io',
  's3.amazonaws.com',
  'co.uk',
  '"login":"https://docs.example.co.uk/"',
  'https',
  'http:',
  'HTTPS',
  "'",
  '|',
  '^',
  '`',
  '<',
  '>',
  '4294967296',
  '10.01',
  '/.well-known/x',
  '/.a',
  '/.7',
  '/.-',
  '"login":"https://x.docs.example.co.uk/login"',
  '"}}',
  '"',
  '",',
] as const;

function mutate(line: Buffer, random: (below: number) => number): Buffer {
  const at = random(line.length + 1);
  const end = Math.min(line.length, at + random(12));
  const [head, cut, tail] = [line.subarray(0, at), line.subarray(at, end), line.subarray(end)];
  switch (random(6)) {
    case 0:
      return Buffer.concat([head, Buffer.of(random(256)), line.subarray(Math.min(line.length, at + 1))]);
    case 1:
      return Buffer.concat([head, tail]);
    case 2:
      return Buffer.concat([head, cut, cut, tail]);
    case 3:
      return Buffer.concat([head, Buffer.from(TOKENS[random(TOKENS.length)]!, 'latin1'), tail]);
    case 4:
      return Buffer.concat([head, Buffer.from(TOKENS[random(TOKENS.length)]!, 'latin1'), line.subarray(at)]);
    default:
      return Buffer.concat([head, sampleLines[random(sampleLines.length)]!.subarray(at)]);
  }
}

const label = fc.stringMatching(/^[a-z0-9_]([a-z0-9_-]{0,12}[a-z0-9_])?$/);
const suffix = fc.constantFrom(
  'com',
  'co.uk',
  'github.io',
  's3.amazonaws.com',
  'ck',
  'www.ck',
  'kawasaki.jp',
  'de',
  'compute.amazonaws.com',
);
const domain = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .tuple(fc.array(label, { minLength: 1, maxLength: 3 }), suffix)
      .map(([labels, end]) => [...labels, end].join('.')),
  },
  suffix,
  fc.constantFrom(
    'www.example.com',
    'Example.com',
    'münchen.de',
    'xn--mnchen-3ya.de',
    '192.0.2.1',
    'localhost',
    'a..b',
    'amazonaws.com',
    'example.com.',
  ),
);
const path = fc.oneof(
  { weight: 12, arbitrary: fc.stringMatching(/^\/[a-z0-9/_~-]{0,20}$/) },
  fc.stringMatching(/^\/[a-z0-9/._~%-]{0,20}$/),
  fc.webPath(),
  { weight: 4, arbitrary: fc.constantFrom(...paths) },
  fc
    .tuple(fc.constantFrom(...paths), fc.constantFrom('/', '.', 'x', '%', '%2e', '?', '#', '"', '\\', 'é', ' ', '\0'))
    .map(([known, tail]) => known + tail),
  fc.constantFrom(
    '',
    '/',
    '/a/../b',
    '/.well-known/x',
    '/%2e%2E/',
    '/?q=é',
    "/?q='",
    '/#a b',
    '/a\\b',
    '/[x]',
    ':8443/',
    '/a?b=/./c',
    '/.well-known/security.txt',
    '/.a/..',
    '/.a./b',
  ),
);
const url = fc
  .tuple(
    fc.oneof({ weight: 12, arbitrary: fc.constantFrom('https', 'http') }, fc.constantFrom('HTTPS', 'ftp')),
    fc.constantFrom('', '', 'www.', 'id.', 'help.', 'docs.', 'a.b.', 'x-', 'www.www.', '-a.'),
    fc.option(domain, { freq: 12 }),
    path,
  )
  .map(
    (parts) =>
      (of: string): string =>
        `${parts[0]}://${parts[1]}${parts[2] ?? of}${parts[3]}`,
  );
const typeName = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...pageTypes('full').map(({ name }) => name)) },
  { weight: 1, arbitrary: fc.constantFrom('signin', 'Login', 'mystery', '__proto__') },
);
const rank = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 1000 }).map((n) => n / 100) },
  { weight: 1, arbitrary: fc.constantFrom(-1, 10.01, 11, 4.357, 1e-7, '5', null, 0.29, 0.57, 1.005) },
);
const entry = fc
  .record(
    {
      domain,
      language: fc.oneof(
        { weight: 5, arbitrary: fc.constantFrom(...languages) },
        fc.constantFrom('EN', 'pt-BR', 'xx', '', null, 7),
      ),
      pages: fc.array(fc.tuple(typeName, url), { maxLength: 9 }),
      iab_category: fc.oneof(
        { weight: 5, arbitrary: fc.constantFrom(...iabCategories.flatMap(({ id, path: name }) => [id, name])) },
        fc.constantFrom('nothing', '', 3),
      ),
      filtering_categories: fc.array(
        fc.oneof(
          { weight: 9, arbitrary: fc.constantFrom(...filteringTaxonomy.flatMap(({ id, name }) => [id, name])) },
          fc.constantFrom('nonsense', 5),
        ),
        { maxLength: 4 },
      ),
      open_page_rank: rank,
      global_rank: fc.oneof(
        { weight: 4, arbitrary: fc.integer({ min: 1, max: 1_200_000_000 }) },
        fc.constantFrom(0, -1, 2 ** 32, 1.5, '9', 999999999, 1000000000),
      ),
      extra: fc.constantFrom('x', 'x', 'x', 'x', 1, null),
    },
    { requiredKeys: ['domain'] },
  )
  .map(({ domain: name, pages, extra, ...rest }) => {
    const page_types =
      pages === undefined ? {} : { page_types: Object.fromEntries(pages.map(([type, make]) => [type, make(name)])) };
    return { domain: name, ...rest, ...page_types, ...(extra === undefined || extra === 'x' ? {} : { extra }) };
  });

describe('the fast scanner', () => {
  it('accepts nearly every line of the sample, and agrees with the slow reader', () => {
    const understood = sampleLines.filter((line) => agree(line)).length;
    expect(understood).toBeGreaterThan(sampleLines.length * 0.75);
  });

  it('accepts every field in its plain form', () => {
    expect(agree(RICH)).toBe(true);
    expect(fields.pageCount).toBe(3);
    for (const text of ['0', '10', '10.0', '10.00', '9.99', '0.1', '0.29', '7.5']) {
      expect(agree(Buffer.from(`{"domain":"example.com","open_page_rank":${text}}`))).toBe(true);
    }
  });

  it('makes the most frequent repairs itself', () => {
    expect(agree(Buffer.from('{"domain":"www.www.example.com","language":"en"}'))).toBe(true);
    expect(setups.full.scanner.repairs).toEqual(['domain_www_stripped']);
    const pages = '"docs":"https://example.com","login":"https://example.com?a","blog":"https://a.example.com#/b"';
    expect(agree(Buffer.from(`{"domain":"example.com","page_types":{${pages}},"global_rank":3}`))).toBe(true);
    expect(setups.full.scanner.repairs).toEqual(Array.from({ length: 3 }, () => 'page_url_canonicalized'));
    expect(fields.globalRank).toBe(3);
    expect(agree(RICH)).toBe(true);
    expect(setups.full.scanner.repairs).toEqual([]);
  });

  it('accepts pages in any order, with many origins', () => {
    const prefixes = ['https://', 'https://www.', 'http://', 'http://www.', 'https://a.', 'https://b.', 'https://a.b.'];
    const random = randomOf(7);
    const types = pageTypes('full').map(({ name }) => name);
    for (let round = 0; round < 500; round++) {
      const domain = `${'x'.repeat(1 + random(12))}.example`;
      const pages = Array.from({ length: random(types.length + 1) }, () => {
        const prefix = prefixes[random(prefixes.length)]!;
        const path = random(3) === 0 ? `/${'y'.repeat(random(24))}` : paths[random(paths.length)]!;
        return [types[random(types.length)]!, `${prefix}${domain}${path}`] as const;
      });
      expect(agree(Buffer.from(JSON.stringify({ domain, page_types: Object.fromEntries(pages) })))).toBe(true);
    }
    const all = types.map((type, i) => [
      type,
      `https://${'abcdefghijklmnopqrstuvwxyzAB'[i]!.toLowerCase()}${i}.e.example/`,
    ]);
    expect(agree(Buffer.from(JSON.stringify({ domain: 'e.example', page_types: Object.fromEntries(all) })))).toBe(true);
    expect(fields.originCount).toBe(types.length);
  });

  it('agrees on a known path with any byte inserted before, into or after it', () => {
    const random = randomOf(99);
    let understood = 0;
    for (let byte = 0; byte < 256; byte++) {
      if (byte === 0x0a) continue;
      for (let round = 0; round < 40; round++) {
        const path = paths[random(paths.length)]!;
        const at = random(path.length + 1);
        const put = `${path.slice(0, at)}${String.fromCharCode(byte)}${path.slice(at + random(2))}`;
        const end = round % 2 === 0 ? '' : ',"global_rank":9';
        const line = `{"domain":"a.example","page_types":{"login":"https://a.example${put}"}${end}}`;
        if (agree(Buffer.from(line, 'latin1'))) understood += 1;
      }
    }
    expect(understood).toBeGreaterThan(1000);
  });

  it('agrees on every prefix of a line', () => {
    for (const line of [RICH, ...sampleLines.slice(0, 40)]) {
      for (let size = 0; size < line.length; size++) {
        agree(line.subarray(0, size));
        agree(Buffer.concat([line.subarray(0, size), Buffer.from('}')]));
      }
    }
  });

  it('leaves to the slow reader what is valid but unusual', () => {
    for (const text of [
      '{ "domain":"example.com"}',
      '{"language":"en","domain":"example.com"}',
      '{"domain":"example.com" }',
      '{"domain":"ex\\u0061mple.com"}',
      '{"domain":"example.com","open_page_rank":1e0}',
      '{"domain":"example.com","open_page_rank":1.000}',
      '{"domain":"example.com","global_rank":1000000000}',
      '{"domain":"xn--mnchen-3ya.de"}',
      '{"domain":"www.co.uk"}',
      '{"domain":"www.com"}',
      '{"domain":"amazonaws.com","page_types":{"docs":"https://one.s3.amazonaws.com/"}}',
    ]) {
      expect(agree(Buffer.from(text))).toBe(false);
      expect(parseEntry(Buffer.from(text)).entry).toBeDefined();
    }
  });

  it('agrees on lines generated by a grammar of valid and invalid values', () => {
    let understood = 0;
    let runs = 0;
    fc.assert(
      fc.property(entry, fc.constantFrom<VocabularyScope>('full', 'core'), (value, scope) => {
        runs += 1;
        if (agree(Buffer.from(JSON.stringify(value)), scope)) understood += 1;
      }),
      { numRuns: 20_000, seed: 20261121 },
    );
    expect(understood).toBeGreaterThan(runs * 0.04);
    expect(understood).toBeLessThan(runs * 0.95);
  });

  it('agrees on real lines with one, two or three mutations', () => {
    const random = randomOf(4242);
    let understood = 0;
    const rounds = 300_000;
    for (let i = 0; i < rounds; i++) {
      let line = random(3) === 0 ? RICH : sampleLines[random(sampleLines.length)]!;
      for (let times = 1 + random(3); times > 0; times--) line = mutate(line, random);
      if (line.includes(0x0a)) continue;
      if (agree(line)) understood += 1;
    }
    expect(understood).toBeGreaterThan(rounds * 0.02);
    expect(understood).toBeLessThan(rounds * 0.9);
  });
});
