import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VALUE_MAX_BYTES } from '../../src/domain/target.ts';
import { parseQuery } from '../../src/server/request/query.ts';

describe('parseQuery', () => {
  it.each([
    ['', {}],
    ['url=example.com', { url: 'example.com' }],
    ['domain=example.com&method=post', { domain: 'example.com', method: 'post' }],
    ['url=https%3A%2F%2Fx.com%2F%3Fa%3D1%26b%3D2', { url: 'https://x.com/?a=1&b=2' }],
    ['url=https://x.com/?a=1', { url: 'https://x.com/?a=1' }],
    ['url=a+b', { url: 'a b' }],
    ['url=+%09x.com%0D%0A&domain=%0Cx.com+', { url: 'x.com', domain: 'x.com' }],
    ['url=%0Bx.com%C2%A0', { url: '\vx.com\u00a0' }],
    ['url=a%2Bb', { url: 'a+b' }],
    ['%75rl=x.com', { url: 'x.com' }],
    ['url=m%C3%BCnchen.de', { url: 'münchen.de' }],
    ['url=münchen.de', { url: 'münchen.de' }],
    ['url', { url: '' }],
    ['&&url=x.com&', { url: 'x.com' }],
    ['url=x.com%00', { url: 'x.com\0' }],
    ['api_key=k&url=x', { url: 'x', apiKeyCount: 1, apiKey: 'k' }],
    ['api_key=a&api_key=b', { apiKeyCount: 2 }],
    ['api_key=%zz', { apiKeyCount: 1, apiKey: undefined }],
  ])('reads %j', (raw, expected) => {
    expect(parseQuery(raw)).toMatchObject({ problem: undefined, ...expected });
  });

  it.each([
    ['url=a&url=a', 'repeated_parameter', 'url'],
    ['domain=&domain=', 'repeated_parameter', 'domain'],
    ['method=GET&method=GET', 'repeated_parameter', 'method'],
    ['url=a&%75rl=b', 'repeated_parameter', 'url'],
    ['url=https://x/?a=1&b=2', 'unknown_parameter', 'b'],
    ['URL=x.com', 'unknown_parameter', 'URL'],
    ['=x', 'unknown_parameter', ''],
    ['__proto__=x', 'unknown_parameter', '__proto__'],
    ['url=%', 'bad_encoding', 'url'],
    ['url=%4', 'bad_encoding', 'url'],
    ['url=%zz', 'bad_encoding', 'url'],
    ['url=%ff', 'bad_encoding', 'url'],
    ['url=%c0%af', 'bad_encoding', 'url'],
    ['url=%ed%a0%80', 'bad_encoding', 'url'],
    ['url=\ufffd', 'bad_encoding', 'url'],
    ['%zz=1', 'bad_encoding', ''],
    ['method=', 'bad_method', 'method'],
    ['method=GE%20T', 'bad_method', 'method'],
    ['method=G%0D%0A', 'bad_method', 'method'],
    ['method=GET+', 'bad_method', 'method'],
    ['url=a&url=+', 'repeated_parameter', 'url'],
    [`url=${'a'.repeat(VALUE_MAX_BYTES + 1)}`, 'input_too_long', 'url'],
    [`url=${'%C3%BC'.repeat(VALUE_MAX_BYTES / 2)}a`, 'input_too_long', 'url'],
    [`url=${'%E2%82%AC'.repeat(Math.floor(VALUE_MAX_BYTES / 3))}aaa`, 'input_too_long', 'url'],
    ['foo=1&url=%zz', 'unknown_parameter', 'foo'],
  ])('reports that %j is %s', (raw, problem, parameter) => {
    expect(parseQuery(raw)).toMatchObject({ problem, parameter });
  });

  it('accepts a value of exactly the maximum length, percent-encoded or not', () => {
    expect(parseQuery(`url=${'a'.repeat(VALUE_MAX_BYTES)}`).problem).toBeUndefined();
    expect(parseQuery(`url=${'%61'.repeat(VALUE_MAX_BYTES)}`).problem).toBeUndefined();
    const blanks = '+%09%0D%0A%0C'.repeat(1_000);
    expect(parseQuery(`url=${blanks}${'a'.repeat(VALUE_MAX_BYTES)}${blanks}`).problem).toBeUndefined();
    expect(parseQuery(`url=${blanks}${'a'.repeat(VALUE_MAX_BYTES + 1)}${blanks}`).problem).toBe('input_too_long');
  });

  it('finds the key after any other problem', () => {
    expect(parseQuery('foo=1&url=%zz&api_key=k')).toMatchObject({
      problem: 'unknown_parameter',
      apiKey: 'k',
      apiKeyCount: 1,
    });
  });

  it('decodes every encoded value', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (value) => {
        fc.pre(value.isWellFormed() && !value.includes('\ufffd'));
        const inside = `x${value}x`;
        expect(parseQuery(`url=${encodeURIComponent(inside)}`).url).toBe(inside);
      }),
    );
  });

  it('reads names and values alike, plain and percent-encoded', () => {
    const escaped = (text: string): string =>
      Array.from(text, (char) => `%${char.charCodeAt(0).toString(16)}`).join('');
    const name = fc.constantFrom('url', 'domain', 'method', 'api_key', 'ur', 'urls', 'URL', 'api-key');
    const value = fc.stringMatching(/^[a-zA-Z0-9:/._~-]{0,20}$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 3 }), (parameters) => {
        const plain = parameters.map(([key, text]) => `${key}=${text}`).join('&');
        expect(parseQuery(parameters.map(([key, text]) => `${escaped(key)}=${escaped(text)}`).join('&'))).toEqual(
          parseQuery(plain),
        );
      }),
    );
  });

  it('reports a problem exactly if one part has one, and never throws', () => {
    const isBad = (piece: string): boolean => {
      if (!piece.startsWith('url=')) return !piece.startsWith('api_key=');
      try {
        return decodeURIComponent(piece.slice(4)) === undefined;
      } catch {
        return true;
      }
    };
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('%', '&', '=', '+', 'u', 'url=', '%f', '%00', 'ü', '\ud800', 'api_key='), {
          maxLength: 30,
        }),
        (parts) => {
          const text = parts.join('');
          const pieces = text.split('&').filter((piece) => piece !== '');
          const { problem, parameter, apiKeyCount } = parseQuery(text);
          const isRepeated = pieces.filter((piece) => piece.startsWith('url=')).length > 1;
          expect(problem !== undefined).toBe(isRepeated || pieces.some(isBad));
          expect(problem === undefined && parameter !== '').toBe(false);
          expect(apiKeyCount).toBe(pieces.filter((piece) => piece.startsWith('api_key=')).length);
        },
      ),
    );
  });
});
