/** Every word that denies a page, and a verified page, hidden in ways that some servers see through: the verdict is still a deny. */
import { describe, expect, it } from 'vitest';
import { judge, shipped } from '../policy/support.ts';

const hex = (code: number): string => code.toString(16).padStart(2, '0');
const FIRST_LETTER = /(?<!%|%[0-9a-f])[a-z]/i;

/** Ways to change an encoded path that does not end with a slash. */
const VEILS: Readonly<Record<string, (path: string) => string>> = {
  'a UTF-16 escape': (path) => path.replace(FIRST_LETTER, (c) => `%u00${hex(c.charCodeAt(0))}`),
  'a letter of two bytes': (path) => path.replace(FIRST_LETTER, (c) => `%c1%${hex(c.charCodeAt(0) + 0x40)}`),
  'a letter of three bytes': (path) => path.replace(FIRST_LETTER, (c) => `%e0%81%${hex(c.charCodeAt(0) + 0x40)}`),
  'a soft hyphen': (path) => path.replace(FIRST_LETTER, '$&%C2%AD'),
  'a blank of no width': (path) => `${path}%E2%80%8B`,
  'an encoded query': (path) => `${path}%3Fx=1`,
  'an encoded fragment': (path) => `${path}%23x`,
  'an encoded parameter': (path) => `${path}%26x=1`,
  'a parameter in the path': (path) => `${path}&x=1`,
  'empty parameters in front of it': (path) => `${path}&&&x=1`,
  'a parameter of the segment': (path) => `${path};x=1`,
  'a parameter of a segment without a name': (path) => `${path}/;x=1`,
  'such a parameter in front': (path) => path.replace(/^\//, '/;x=1/'),
  'a page after an encoded query': (path) => `${path}%3Fx/y`,
  'decomposed accents': (path) => encodeURI(decodeURI(path).normalize('NFD')),
  'composed accents': (path) => encodeURI(decodeURI(path).normalize('NFC')),
  'slashes after an encoded fragment': (path) => `${path}%23/x/y`,
  'an empty query': (path) => `${path}?`,
};

/** Paths of one word each that are denied unchanged. */
const words = [...shipped.tokens.entries()]
  .map(({ token }) => `/${encodeURIComponent(token)}`)
  .filter((path) => judge(`https://example.org${path}`).startsWith('deny rules/'));

describe('a way to hide a page', () => {
  it('is tested with enough words', () => {
    expect(words.length).toBeGreaterThan(3000);
    expect(words.some((path) => path.includes('%'))).toBe(true);
  });

  it.each(Object.entries(VEILS))('does not hide a word: %s', (_name, veil) => {
    const soft = words.filter((path) => !judge(`https://example.org${veil(path)}`).startsWith('deny'));
    expect(soft).toEqual([]);
  });

  it.each(Object.entries(VEILS))('does not hide a verified page: %s', (_name, veil) => {
    for (const path of ['/members/entr%C3%A9e', '/a/b.do', '/t%C3%BCr', '/x.y/z-1/go']) {
      const pages = { login: `https://example.org${path}` };
      expect([path, judge(`https://example.org${veil(path)}`, { pages })]).toEqual([path, 'deny page_type_db/login']);
    }
  });

  it.each(Object.entries(VEILS))('does not hide a word before a documentation word: %s', (_name, veil) => {
    for (const path of ['/members/login/docs', '/shop/checkout/manual', '/members/change-password/docs']) {
      expect([path, judge(`https://example.org${path}`).slice(0, 10)]).toEqual([path, 'deny rules']);
      expect([path, judge(`https://example.org${veil(path)}`).slice(0, 10)]).toEqual([path, 'deny rules']);
    }
  });

  it.each(Object.entries(VEILS))('does not hide the name of a program, nor the site’s own name: %s', (_name, veil) => {
    for (const path of ['/members/shibbolethLogin', '/members/shibbolethLogin!', '/my-example', '/my-example!'])
      expect([path, judge(`https://example.org${veil(path)}`).slice(0, 10)]).toEqual([path, 'deny rules']);
  });

  it('does not turn a file into a page', () => {
    for (const path of [
      '/a/refe&rencedocumentation.h',
      '/a/refe&rencedocumentation.h=',
      '/a/refe&rencedocumentation.h&x=',
    ])
      expect([path, judge(`https://tagmanager.google.com${path}`).slice(0, 4)]).toEqual([path, 'deny']);
  });

  it('does not hide the target of a URL in the path', () => {
    for (const path of [
      '/go/https://evil.o%25',
      '/go/https://evil.o%25&x=',
      '/go/https://evil.o%25&x=1',
      '/go/https://evil.o&x=',
    ])
      expect([path, judge(`https://example.org${path}`)]).toEqual([path, 'deny rules/nested_internal']);
    const away = ['/x/https://evil.com%25', '/x/https://evil.com%25&x=', '/x/https://evil.com&x='];
    expect(away.filter((path) => judge(`https://example.org${path}`).startsWith('allow'))).toEqual([]);
  });

  it('does not hide a file', () => {
    for (const path of ['/.env', '/.env&&&', '/.env&&&x=1', '/.env&x=1'])
      expect([path, judge(`https://example.org${path}`)]).toEqual([path, 'deny rules/secret_file']);
  });

  it('does not hide a front page', () => {
    const fronts = ['', ';x=1', ';x', ';x/;y', ';x/index.php', 'index.php;x', 'index.php/;x', '%3Bx'];
    const urls = fronts.flatMap((front) => [
      `https://mail.example.org/${front}`,
      `https://my.example.org/${front}`,
      `https://example.org/${front}#login`,
      `https://example.org/${front}?q=user/login`,
    ]);
    expect(urls.filter((url) => !judge(url).startsWith('deny'))).toEqual([]);
    expect(judge('https://mail.example.org/;x/about')).toBe('allow default/classified_read');
  });

  it('does not hide a word in a query', () => {
    const values = ['login', 'user/login', 'basket', 'register'];
    const hidden = values.flatMap((value) => Object.values(VEILS).map((veil) => veil(value).replaceAll('&', '%26')));
    const soft = hidden.filter((value) => !judge(`https://example.org/?page=${value}`).startsWith('deny'));
    expect(soft).toEqual([]);
  });
});
