import { describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { hasRepeatedName } from '../../src/json/repeated-names.ts';
import { parseDocument } from '../../src/json/strict-json.ts';
import { LIMITS } from '../../src/limits.ts';
import { HARMLESS_JSON, HOSTILE_JSON } from '../support/hostile-json.ts';

const TEXT = '{"a":{"b":[1,{"c":"x:y\\"{"}]},"d":true,"__proto__":{"e":1},"lone":"\\ud800","big":9007199254740993}';

const parse = (bytes: Uint8Array | string) => parseDocument(Buffer.from(bytes), 'policy_invalid', 'It');

function refusal(bytes: Uint8Array | string): PagegateError {
  try {
    parse(bytes);
  } catch (error) {
    if (error instanceof PagegateError) return error;
    throw error;
  }
  throw new Error('It was read.');
}

describe('a document', () => {
  it('is read like JSON.parse reads it, with special names as ordinary ones', () => {
    const value = parse(TEXT);
    expect(value).toEqual(JSON.parse(TEXT));
    expect(Object.keys(value as object)).toContain('__proto__');
  });

  it.each(['null', '"text"', '7', '[]', ' {} '])('may be %s', (text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  it.each(HARMLESS_JSON)('is read with $name', ({ spoil }) => {
    expect(parse(spoil(TEXT))).toEqual(JSON.parse(TEXT));
  });

  it('may nest as deep as the limit, and no deeper', () => {
    const nested = (levels: number): string => `${'['.repeat(levels + 1)}${']'.repeat(levels + 1)}`;
    const most = LIMITS.jsonDepth.value;
    expect(parse(nested(most))).toEqual(JSON.parse(nested(most)));
    expect(refusal(nested(most + 1)).message).toContain(`nested deeper than ${most} levels`);
  });

  it.each([
    ['a name', `{"${'n'.repeat(100_000)}":1,"${'n'.repeat(100_000)}":2}`, /not valid JSON: n+….$/],
    ['a number', `[${'1.'.repeat(100_000)}]`, /line 1, column \d+: .{1,60}, got ".{1,40}"\.$/],
    ['a word', `[${'x'.repeat(100_000)}]`, /line 1, column 2: unexpected text, got "x{40}"\.$/],
  ])('is refused, without quoting all of %s that is as long as the document', (_, text, expected) => {
    const { message, details } = refusal(text);
    expect(message).toMatch(expected);
    expect(JSON.stringify([message, details]).length).toBeLessThan(2_000);
  });

  it.each(HOSTILE_JSON)('is refused with $name', ({ spoil, expected }) => {
    const { code, message } = refusal(spoil(TEXT));
    expect(code).toBe('policy_invalid');
    expect(message).toMatch(expected);
  });

  it('is refused with each place of a repeated name, and its line', () => {
    const text = '{"a":[0,{"b":1,\n"b":2}],"c d":1,\n"a":{},"c d":2,"a":3}';
    expect(refusal(text).details['problems']).toEqual([
      'a[1].b is set more than once (line 2)',
      'a is set more than once (line 3)',
      'c d is set more than once (line 3)',
    ]);
  });

  it('is refused with the first of many places', () => {
    const text = `[${Array.from({ length: 9 }, () => '{"a":1,"a":2}').join()}]`;
    expect(refusal(text).message).toMatch(
      / It is not valid JSON: \[0\]\.a is set .*\[4\]\.a is set more than once \(line 1\) \(and 4 more\)\.$/,
    );
  });

  it.each([
    ['one string', JSON.stringify({ a: 'x'.repeat(16_000_000) })],
    ['escapes', JSON.stringify({ a: '"'.repeat(8_000_000) })],
    ['numbers', `[${'1,'.repeat(2_000_000)}1]`],
  ])('of 16 MB in %s is read', (_name, text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });
});

describe('a repeated name', () => {
  it.each([
    ['{"a":1,"b":{"a":1}}', false],
    ['[{"a":1},{"a":1}]', false],
    ['{"a":":\\":","b\\\\":1}', false],
    ['{"a":1,"a":1}', true],
    ['{"a":{"b":1,"\\u0062":1}}', true],
    ['{"__proto__":1,"__proto__":2}', true],
  ])('in %s: %s', (text, expected) => {
    expect(hasRepeatedName(text, JSON.parse(text))).toBe(expected);
  });
});
