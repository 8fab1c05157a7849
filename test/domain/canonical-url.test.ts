import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CanonicalUrl, isPlainPath, parsePlainUrl, parseUrl, SPELLING } from '../../src/domain/canonical-url.ts';
import { percentDecodeOnce } from '../../src/domain/percent-decode.ts';

interface UrlCase {
  readonly input: string;
  readonly base: string | null;
  readonly failure?: true;
  readonly href?: string;
  readonly hostname?: string;
  readonly protocol?: string;
}

const file = new URL('../data/url/urltestdata.json.gz', import.meta.url);
const all = (JSON.parse(gunzipSync(readFileSync(file)).toString()) as (string | UrlCase)[]).filter(
  (item): item is UrlCase => typeof item !== 'string',
);

/** Cases without a base are used unchanged; a case with one is used as the absolute URL that it resolves to. */
const isWeb = (item: UrlCase): boolean => item.protocol === 'http:' || item.protocol === 'https:';
const absolute = all.filter((item) => item.base === null && isWeb(item));
const resolved = all.filter((item) => item.base !== null && isWeb(item));
const failing = all.filter((item) => item.failure === true && item.base === null && /^\s*https?:/i.test(item.input));

const spelled = (url: CanonicalUrl | undefined): string[] =>
  Object.entries(SPELLING).flatMap(([name, bit]) => (((url?.spelling ?? 0) & bit) === 0 ? [] : [name]));

describe('agreement with the URL standard', () => {
  it('has the cases', () => {
    expect([absolute.length > 100, resolved.length > 100, failing.length > 50]).toEqual([true, true, true]);
  });

  it.each(absolute.map((item) => [JSON.stringify(item.input), item] as const))('%s', (_name, item) => {
    const url = parseUrl(item.input);
    expect(url?.href).toBe(item.href);
    expect(url?.host).toBe(item.hostname?.replace(/([^.])\.$/, '$1'));
  });

  it.each(resolved.map((item) => [JSON.stringify([item.input, item.base]), item.href] as const))(
    '%s',
    (_name, href) => {
      expect(parseUrl(href ?? '')?.href).toBe(href);
    },
  );

  it.each(failing.map((item) => [JSON.stringify(item.input), item.input] as const))(
    '%s is not a URL',
    (_name, input) => {
      expect(parseUrl(input)).toBeUndefined();
    },
  );
});

describe('the fast path', () => {
  it('gives the same as the full parser', () => {
    let plain = 0;
    let plainPaths = 0;
    const piece = fc.oneof(
      fc.constantFrom(
        '/',
        '//',
        '.',
        '..',
        '/.',
        '?',
        '#',
        '&',
        '=',
        '%41',
        '%',
        ' ',
        '\\',
        '\t',
        "'",
        '"',
        '|',
        ';',
        '~',
        'é',
        ':',
        '@',
      ),
      fc.stringMatching(/^[A-Za-z0-9_-]{1,6}$/),
    );
    const host = fc.constantFrom(
      'example.com',
      'a.b-c.co.uk',
      'EXAMPLE.com',
      'x_y.z.org',
      'a.1',
      'localhost',
      'xn--a.com',
      'a..b',
      'www.example.com',
    );
    const value = fc.tuple(fc.constantFrom('http://', 'https://'), host, fc.array(piece, { maxLength: 10 }));
    fc.assert(
      fc.property(value, ([scheme, name, pieces]) => {
        const text = scheme + name + pieces.join('');
        const url = parseUrl(text);
        const standard = URL.parse(text);
        expect(url?.href).toBe(standard?.href);
        const bare = name + pieces.join('');
        expect(parsePlainUrl(bare, 0)).toEqual(parsePlainUrl(`https://${bare}`, 'https://'.length));
        if (url === undefined || standard === null) return;
        if (url.isPlain) plain++;
        expect([url.scheme, url.path, url.query, url.fragment]).toEqual([
          standard.protocol.slice(0, -1),
          standard.pathname,
          standard.search.slice(1),
          standard.hash.slice(1),
        ]);
        expect(url.host).toBe(standard.hostname.replace(/([^.])\.$/, '$1'));
        expect(url.decodedPath).toBe(percentDecodeOnce(standard.pathname));
        const rest = /^https?:\/\/[^/?#\\]*(\/[^?#]*)/.exec(text)?.[1];
        if (rest === undefined || !isPlainPath(Buffer.from(text), text.indexOf('/', 8), Buffer.byteLength(text)))
          return;
        plainPaths++;
        expect(standard.pathname).toBe(rest);
      }),
      { numRuns: 5000, seed: 11 },
    );
    expect(plain).toBeGreaterThan(300);
    expect(plainPaths).toBeGreaterThan(200);
  });
});

describe('the spelling of a URL', () => {
  it.each([
    ['https://example.com/a/b?c=d#e', []],
    ['https://EXAMPLE.com:443/%41', []],
    [' https://example.com/', ['control_character']],
    ['https://exa\tmple.com/', ['control_character']],
    ['https://example.com/a\nb', ['control_character']],
    ['https://ex%61mple.com/', ['host_escape']],
    ['https://127.0.0.1/', []],
    ['https://127.0.0.1./', ['obfuscated_address']],
    ['https://127.1/', ['obfuscated_address']],
    ['https://0x7f000001/', ['obfuscated_address']],
    ['https://2130706433:443/', ['obfuscated_address']],
    ['https://0177.0.0.1/', ['obfuscated_address']],
    ['https://１２７.0.0.1/', ['obfuscated_address']],
    ['https://%31%32%37.0.0.1/', ['host_escape', 'obfuscated_address']],
    ['https:\\\\example.com/', ['backslash']],
    ['https://example.com\\@evil.com/', ['backslash']],
    ['https://example.com/a\\b', []],
    ['https://example.com/%252e', ['double_encoding']],
    ['https://example.com/?q=%2541', ['double_encoding']],
    ['https://example.com/100%25', []],
    ['https://example.com/a/%2e%2e%2fb', ['encoded_traversal']],
    ['https://example.com/a/..;/b', ['encoded_traversal']],
    ['https://example.com/a%5cb', ['encoded_traversal']],
    ['https://example.com/a%00b', ['encoded_traversal']],
    ['https://example.com/a/%2e%2e/b', []],
  ])('%j: %j', (value, expected) => {
    expect(spelled(parseUrl(value))).toEqual(expected);
  });

  it.each([
    ['https://user@example.com/', true],
    ['https://user:word@example.com/', true],
    ['https://@example.com/', true],
    ['https://:@example.com/', true],
    ['https://example.com/@user', false],
    ['https://example.com?@user', false],
  ])('%s has userinfo: %s', (value, expected) => {
    expect(parseUrl(value)?.hasUserinfo).toBe(expected);
  });

  it.each([
    ['https://example.com/', 443],
    ['http://example.com/', 80],
    ['https://example.com:/', 443],
    ['https://example.com:80/', 80],
    ['http://example.com:00080/', 80],
    ['ftp://example.com/', 21],
    ['gopher://example.com/', 0],
  ])('the port of %s is %d', (value, port) => {
    expect(parseUrl(value)?.port).toBe(port);
  });
});

describe('decoding once', () => {
  it.each([
    ['/a', '/a'],
    ['/%61%2fb', '/a/b'],
    ['/%25%36%31', '/%61'],
    ['/%d0%b2', '/в'],
    ['/%ff', '/\ufffd'],
    ['/%', '/%'],
    ['/%4', '/%4'],
    ['/%zz%61', '/%zza'],
  ])('%s is %s', (text, expected) => {
    expect(percentDecodeOnce(text)).toBe(expected);
  });
});
