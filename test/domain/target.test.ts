import { describe, expect, it } from 'vitest';
import { SPELLING } from '../../src/domain/canonical-url.ts';
import { parseTarget, VALUE_MAX_BYTES, withoutOuterBlanks } from '../../src/domain/target.ts';

const read = (value: string): string => {
  const target = parseTarget(value);
  if ('problem' in target) return `! ${target.problem}`;
  const { key, classifiable, bare, url } = target;
  return [key, classifiable ? 'classifiable' : 'never found', bare ? 'bare' : 'url', url.href].join(' ');
};

describe('parseTarget', () => {
  it.each([
    ['stripe.com', 'stripe.com classifiable bare https://stripe.com/'],
    ['stripe.com/login', 'stripe.com classifiable bare https://stripe.com/login'],
    ['https://www.stripe.com/login', 'stripe.com classifiable url https://www.stripe.com/login'],
    ['HTTPS://WWW.Stripe.COM', 'stripe.com classifiable url https://www.stripe.com/'],
    ['example.com:8080/x?y#z', 'example.com classifiable bare https://example.com:8080/x?y#z'],
    ['docs.example.com', 'docs.example.com classifiable bare https://docs.example.com/'],
    ['example.com/@user', 'example.com classifiable bare https://example.com/@user'],
    [' https://example.com/', 'example.com classifiable url https://example.com/'],
    ['ht\ttps://example.com/', 'example.com classifiable url https://example.com/'],
    ['ftp://Example.com/file', 'example.com classifiable url ftp://example.com/file'],
    ['gopher://Example.com/', 'example.com classifiable url gopher://Example.com/'],
    ['az09+-.://Example.com/', 'example.com classifiable url az09+-.://Example.com/'],
    ['Z://Example.com/', 'example.com classifiable url z://Example.com/'],
    ['file://server.example.com/share', 'server.example.com classifiable url file://server.example.com/share'],
    ['https://localhost/', 'localhost never found url https://localhost/'],
    ['localhost/', 'localhost never found bare https://localhost/'],
    ['http://127.0.0.1', '127.0.0.1 never found url http://127.0.0.1/'],
    ['127.1/admin', '127.0.0.1 never found bare https://127.0.0.1/admin'],
    ['http://[::1]:80/', '[::1] never found url http://[::1]/'],
  ])('%j is %s', (value, expected) => {
    expect(read(value)).toBe(expected);
  });

  it.each([
    ['', 'empty'],
    ['   ', 'empty'],
    ['localhost', 'single_label'],
    ['localhost:8080', 'single_label'],
    ['127.0.0.1', 'ip_address'],
    ['[::1]', 'ip_address'],
    [' \t\r\n\f', 'empty'],
    [' localhost ', 'single_label'],
    [' user@example.com', 'userinfo'],
    ['exam ple.com', 'unparsable'],
    ['https://', 'unparsable'],
    ['file:///etc/passwd', 'unparsable'],
    ['javascript:alert(1)', 'unparsable'],
    ['mailto:a@b.com', 'userinfo'],
    ['user@example.com', 'userinfo'],
    ['user:word@example.com/', 'userinfo'],
    ['https://a..b/', 'empty_label'],
    ['https://exa mple.com/', 'unparsable'],
    ['https://example.com:99999/', 'unparsable'],
    ['https://[fe80::1%25eth0]/', 'unparsable'],
    ['https://xn--\u{1F4A9}.com/', 'idn_invalid'],
    ['https://xn--\u{1F4A9}.com:443/', 'idn_invalid'],
    // Only the host can be an invalid international name.
    ['https://exa mple.com/\u00e9', 'unparsable'],
    ['exa mple.com?q=xn--a', 'unparsable'],
    ['b\u00fccher.example:99999', 'unparsable'],
    ['https://xn--bcher-kva.example:99999/', 'unparsable'],
    ['x'.repeat(VALUE_MAX_BYTES + 1), 'value_too_long'],
    [`https://example.com/${'€'.repeat(VALUE_MAX_BYTES / 3)}`, 'value_too_long'],
    [`https://${'\u00e9.'.repeat(254)}fr/`, 'too_long'],
    [`${'\u00e9\uff61'.repeat(254)}fr`, 'too_long'],
  ])('%j has no key: %s', (value, problem) => {
    expect(read(value)).toBe(`! ${problem}`);
  });

  it('counts the dots of the host alone', () => {
    const dots = '.'.repeat(300);
    for (const value of [`https://a${dots}@\u00e9.fr/`, `https://\u00e9.fr/${dots}`, `https://\u00e9.fr?${dots}`]) {
      expect(read(value)).toContain('xn--9ca.fr');
    }
  });

  it.each([' ', '\t', '\r', '\n', '\f', ' \r\n\t\f '])('ignores outer blanks: %j', (blank) => {
    for (const value of ['example.com', 'example.com/login?a=b', 'https://www.example.com/a b', 'ftp://example.com/']) {
      for (const sent of [`${blank}${value}`, `${value}${blank}`, `${blank}${value}${blank}`]) {
        expect(parseTarget(sent)).toEqual(parseTarget(value));
      }
    }
    const longest = `https://example.com/${'x'.repeat(VALUE_MAX_BYTES - 20)}`;
    expect(read(`${blank}${longest}${blank}`)).toBe(read(longest));
    expect(read(`${blank}${longest}x${blank}`)).toBe('! value_too_long');
  });

  it.each(['\v', '\0', '\x1f', '\x7f', '\u00a0', '\ufeff', '\u2028'])(
    'does not ignore other characters: %j',
    (char) => {
      expect(withoutOuterBlanks(`${char} x ${char}`)).toBe(`${char} x ${char}`);
    },
  );

  it.each([
    '\x1f https://example.com/',
    'https://example.com/ \x1f',
    'https://exam\tple.com/',
    'https://example.com/a\nb',
  ])('still reports control characters to the guard rule: %j', (value) => {
    const target = parseTarget(value);
    expect('url' in target && target.url.spelling & SPELLING.control_character).toBe(SPELLING.control_character);
  });

  it('finds the same key for a bare domain and any URL on it', () => {
    for (const value of ['example.com', 'www.example.com.', 'http://example.com/a?b', 'https://EXAMPLE.com:444/#x']) {
      expect(read(value).split(' ')[0]).toBe('example.com');
    }
  });
});
