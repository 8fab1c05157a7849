/** Whatever a line contains, it is read, or rejected with a reason. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FastScanner } from '../../src/builder/scan/fast-scanner.ts';
import { RecordFields } from '../../src/index/write.ts';
import { parseEntry } from '../../src/record/entry.ts';
import { quoteJson } from '../../src/record/quote.ts';

const FIELDS = [
  'domain',
  'language',
  'page_types',
  'iab_category',
  'filtering_categories',
  'open_page_rank',
  'global_rank',
  '__proto__',
  'mystery',
];

const nested = (open: string, depth: number, close: string): string => `${open.repeat(depth)}1${close.repeat(depth)}`;
/** JSON texts that are difficult to quote or convert. */
const HOSTILE = [
  '{"toString":1}',
  '[{"toString":1}]',
  '{"valueOf":null,"toString":null}',
  '{"toJSON":1}',
  '{"__proto__":null}',
  '[{"length":-1}]',
  '1e999',
  '-1e999',
  '[1e999]',
  '-0',
  '5e-324',
  '""',
  '[]',
  '{}',
  '[null]',
  'true',
  '"\\ud800"',
  '["\\ud800",{"\\udfff":"\\ud83d"}]',
  '{"":""}',
  '{"login":{"toString":1}}',
  '{"login":[[]],"/":1,"~1":2}',
  '"\\u0000"',
  `"${'\\ud83d\\ude00'.repeat(100)}"`,
  nested('[', 32_000, ']'),
  nested('{"a":', 10_000, '}'),
  nested('[{"a":', 8_000, '}]'),
  `["a",${nested('[', 32_000, ']')}]`,
  `{"login":${nested('[', 32_000, ']')}}`,
  `{"login":${nested('{"a":', 10_000, '}')}}`,
  `[${'[],'.repeat(20_000)}[]]`,
];

const lineOf = (members: readonly (readonly [string, string])[]): Buffer =>
  Buffer.from(`{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`);

const scanner = new FastScanner(new RecordFields(), 'full');

/** Reads a line as the builder does. */
function read(line: Buffer): ReturnType<typeof parseEntry> {
  scanner.scan(line, 0, line.length);
  return parseEntry(line);
}

describe('a hostile line', () => {
  it.each(FIELDS)('does no harm in %s', (field) => {
    for (const json of HOSTILE) {
      const members: [string, string][] = field === 'domain' ? [] : [['domain', '"example.com"']];
      const { entry, rejects } = read(lineOf([...members, [field, json]]));
      if (field === 'domain') expect([json.slice(0, 40), rejects.length]).toEqual([json.slice(0, 40), 1]);
      else expect(entry?.domain).toBe('example.com');
      for (const { detail } of rejects) expect(detail.length).toBeLessThanOrEqual(160);
    }
  });

  it('is rejected with that reason if its domain is not a string', () => {
    for (const json of HOSTILE.filter((text) => !text.startsWith('"'))) {
      expect(read(lineOf([['domain', json]])).rejects.map(({ reason }) => reason)).toEqual(['domain_wrong_type']);
    }
    expect(read(Buffer.from('{"domain":[{"toString":1}]}')).rejects[0]?.detail).toBe('[{"toString":1}]');
    expect(read(Buffer.from('{"domain":null}')).rejects[0]?.detail).toBe('null');
  });

  it('is read even if little stack is left', () => {
    const deep = `{"domain":"example.com","language":${nested('[', 32_000, ']')}}`;
    const atDepth = (left: number): string =>
      left > 0 ? atDepth(left - 1) : (read(Buffer.from(deep)).rejects[0]?.reason ?? '');
    expect(atDepth(2000)).toBe('language_wrong_type');
  });

  it('with any fields and values gives an entry, or a reason why not', () => {
    const json = fc.oneof(
      fc.constantFrom(...HOSTILE),
      fc.json({ maxDepth: 4 }),
      fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
      fc.double().map((number) => JSON.stringify(number)),
      fc.webUrl().map((url) => JSON.stringify({ login: url, 'sign-in': url })),
    );
    const member = fc.tuple(fc.constantFrom(...FIELDS), json);
    const line = fc.oneof(
      fc.uniqueArray(member, { selector: ([name]) => name, maxLength: 9 }).map(lineOf),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    );
    fc.assert(
      fc.property(line, (bytes) => {
        const { entry, rejects } = read(bytes);
        expect(entry === undefined).toBe(rejects.some(({ level }) => level === 'line'));
      }),
      { numRuns: 600 },
    );
  });

  it('reports that a number is too large, not that it is not a number', () => {
    const line = '{"domain":"example.com","open_page_rank":1e999,"global_rank":-1e999}';
    expect(read(Buffer.from(line)).rejects).toEqual([
      { level: 'fact', reason: 'open_page_rank_out_of_range', detail: 'Infinity' },
      { level: 'fact', reason: 'global_rank_out_of_range', detail: '-Infinity' },
    ]);
  });
});

describe('a quote', () => {
  it('is a prefix of the JSON text', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 1, max: 200 }), (value, max) => {
        // The exception is a number that JSON cannot represent.
        const whole = JSON.stringify(value);
        expect(quoteJson(JSON.parse(whole), max).slice(0, max)).toBe(whole.slice(0, max));
      }),
      { numRuns: 2000 },
    );
  });
});
