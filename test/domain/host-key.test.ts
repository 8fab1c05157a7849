import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyFromHost, NAME_MAX_LENGTH, plainHostEnd, UNICODE_VERSION } from '../../src/domain/host-key.ts';

const key = (host: string): string => {
  const result = keyFromHost(host);
  return 'key' in result ? result.key : `! ${result.problem}`;
};

const label63 = 'a'.repeat(63);

describe('keyFromHost', () => {
  it.each([
    ['example.com', 'example.com'],
    ['EXAMPLE.com', 'example.com'],
    ['example.com.', 'example.com'],
    ['www.example.com', 'example.com'],
    ['WWW.www.Example.com.', 'example.com'],
    ['www.com', 'www.com'],
    ['www.www.com', 'www.com'],
    ['www.co.uk', 'www.co.uk'],
    ['www.www.co.uk', 'www.co.uk'],
    ['www.ck', 'www.ck'],
    ['www.github.io', 'github.io'],
    ['www2.example.com', 'www2.example.com'],
    ['foo_bar.example.com', 'foo_bar.example.com'],
    ['_dmarc.example.com', '_dmarc.example.com'],
    ['München.DE', 'xn--mnchen-3ya.de'],
    ['xn--MNCHEN-3ya.de', 'xn--mnchen-3ya.de'],
    ['faß.de', 'xn--fa-hia.de'],
    ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
    ['ｅｘａｍｐｌｅ．ｃｏｍ', 'example.com'],
    ['exam\u00adple.com', 'example.com'],
    ['ex%61mple.com', 'example.com'],
    ['-a.tumblr.com', '-a.tumblr.com'],
    ['r3---sn-abc.example.com', 'r3---sn-abc.example.com'],
    [`${label63}.com`, `${label63}.com`],
  ])('%j has the key %s', (host, expected) => {
    expect(key(host)).toBe(expected);
  });

  it.each([
    ['', 'empty'],
    ['.', 'empty_label'],
    ['..', 'empty_label'],
    ['a..com', 'empty_label'],
    ['.example.com', 'empty_label'],
    ['example.com..', 'empty_label'],
    ['localhost', 'single_label'],
    ['com', 'single_label'],
    ['127.0.0.1', 'ip_address'],
    ['127.1', 'ip_address'],
    ['0x7f.1', 'ip_address'],
    ['2130706433', 'ip_address'],
    ['１２７.0.0.1', 'ip_address'],
    ['[::1]', 'ip_address'],
    ['999.1.1.1', 'unparsable'],
    ['1.2.3.4.5', 'unparsable'],
    ['exa\tmple.com', 'control_character'],
    ['example.com\n', 'control_character'],
    ['exa\0mple.com', 'control_character'],
    ['exa mple.com', 'forbidden_character'],
    ['example.com/x', 'forbidden_character'],
    ['user@example.com', 'forbidden_character'],
    ['example.com:80', 'forbidden_character'],
    ['a,b.com', 'forbidden_character'],
    ["o'neil.com", 'forbidden_character'],
    ['*.example.com', 'forbidden_character'],
    ['example%2ecom%2fx', 'unparsable'],
    ['-a.com', 'edge_hyphen'],
    ['a-.com', 'edge_hyphen'],
    [`a${label63}.com`, 'label_too_long'],
    [`${`${'a'.repeat(50)}.`.repeat(5)}com`, 'too_long'],
    ['a'.repeat(5000), 'label_too_long'],
    ['\u00ad', 'idn_invalid'],
    ['xn--\u{1F4A9}.com', 'idn_invalid'],
  ])('%j has no key: %s', (host, problem) => {
    expect(key(host)).toBe(`! ${problem}`);
  });

  it('gives a key itself as its key, for any host', () => {
    let keys = 0;
    const label = fc.oneof(
      fc.stringMatching(/^[a-z0-9_-]{1,12}$/),
      fc.constantFrom('www', 'com', 'co', 'uk', 'github', 'io', 'xn--mnchen-3ya', 'ück', 'ＡＢ', '食狮', '-x', '1'),
      fc.string({ unit: 'binary', maxLength: 4 }),
    );
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 5 }), (labels) => {
        const result = keyFromHost(labels.join('.'));
        if (!('key' in result)) return;
        keys++;
        expect(keyFromHost(result.key)).toEqual(result);
        expect(result.key).toMatch(/^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/);
        expect(result.key.length).toBeLessThanOrEqual(NAME_MAX_LENGTH);
      }),
      { numRuns: 3000, seed: 7 },
    );
    expect(keys).toBeGreaterThan(300);
  });

  it('uses the fast path only if the slow one gives the same', () => {
    let plain = 0;
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9_.-]{1,30}$/), (host) => {
        if (plainHostEnd(host, 0) !== host.length) return;
        plain++;
        expect(new URL(`https://${host}/`).hostname).toBe(host);
      }),
      { numRuns: 5000, seed: 3 },
    );
    expect(plain).toBeGreaterThan(100);
  });

  it('knows its Unicode version', () => {
    expect(UNICODE_VERSION).toBe(process.versions['unicode']);
  });
});

interface AsciiCase {
  readonly input: string;
  readonly output: string | null;
}

describe('agreement with the URL standard on names', () => {
  const file = new URL('../data/url/toascii.json.gz', import.meta.url);
  const cases = (JSON.parse(gunzipSync(readFileSync(file)).toString()) as (string | AsciiCase)[]).filter(
    (item): item is AsciiCase => typeof item !== 'string',
  );

  it('has the cases', () => {
    expect(cases.length).toBeGreaterThan(80);
  });

  it.each(cases.map(({ input, output }) => [JSON.stringify(input), input, output] as const))(
    '%s',
    (_name, input, output) => {
      const result = keyFromHost(`${input}.example`);
      const whole = URL.parse(`https://${input}.example/`)?.hostname;
      if (output === null || whole === undefined) expect('problem' in result).toBe(true);
      else if ('key' in result) expect(result.key).toBe(whole.replace(/^(www\.)+/, ''));
      else
        expect(['empty_label', 'edge_hyphen', 'label_too_long', 'too_long', 'forbidden_character']).toContain(
          result.problem,
        );
    },
  );
});
