/** What anyone can add to a path does not change its outline, and removes none of its readings. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readingsOf } from '../../src/policy/url/path-readings.ts';
import '../support/seed.ts';
import { judge, shipped } from './support.ts';

/** The names in a path as they are read, one text for each reading. */
function outlines(path: string): string[] {
  const { tokens } = shipped;
  return (readingsOf(path, tokens.segments(path)) ?? [path]).map((reading) => {
    const { path: text, count, starts, ends } = tokens.segments(reading);
    return Array.from({ length: count }, (_, at) => text.slice(starts[at], ends[at])).join('/');
  });
}

const NAMES = 'login docs a&b c?d e&f=1 g#h x!login.action .env - _ @ada 12 & _?new index home v1.0 ログイン'.split(
  ' ',
);
const paths = fc.array(fc.constantFrom(...NAMES), { maxLength: 4 }).map((names) => `/${names.join('/')}`);
const SIGNS = [
  '',
  '/',
  '.',
  ' ',
  '?',
  '&',
  '=',
  '/.',
  '//',
  '/ ',
  '/\u200b',
  '/;x=1',
  '&x=1',
  '&x=',
  '?x=1',
  '?x',
  '#x',
];
const EMPTY = ['//', '/;/', '/;x=1;y/', '/ /', '/\u200b/', '/.../'];

describe('the readings of a path', () => {
  it.each([
    ['/a/b', ['a/b']],
    ['//a;x=1/;y/ /b;z,', ['a/b']],
    ['/a/index.html', ['a']],
    ['/a/default/amp/', ['a']],
    ['/index.php', ['']],
    ['/a/-/b', ['a/-/b']],
    ['/a?x=1/b', ['a', 'a?x=1/b']],
    ['/a&x/b', ['a&x/b']],
    ['/a&x=/b', ['a', 'a&x=/b']],
    ['/a/&x=1', ['a', 'a/&x=1']],
    ['/a&&&&x', ['a', 'a&&&&x']],
    ['/a!input.action', ['a', 'a!input.action', 'input.action']],
  ])('are known: %s', (path, expected) => expect(outlines(path)).toEqual(expected));

  it('stay what they are, whatever signs or query are put behind', () => {
    fc.assert(
      fc.property(paths, fc.constantFrom(...SIGNS), (path, sign) => {
        expect(outlines(path + sign)).toEqual(expect.arrayContaining(outlines(path)));
      }),
      { numRuns: 2000 },
    );
  });

  it('stay what they are, whatever is left out of a path stands in it', () => {
    const between = fc.tuple(paths, fc.constantFrom('login', 'a&b', 'c?d'), fc.constantFrom(...EMPTY), paths);
    fc.assert(
      fc.property(between, ([before, name, empty, after]) => {
        const path = `${before}/${name}`;
        expect(outlines(path + empty + after.slice(1))).toEqual(outlines(path + after));
        expect(outlines(`${path};v=1${after}`)).toEqual(outlines(path + after));
      }),
      { numRuns: 2000 },
    );
  });

  it('stay what they are before an index file', () => {
    const folders = paths.filter((path) => !path.includes('.action'));
    fc.assert(
      fc.property(folders, fc.constantFrom('/index.html', '/Default.aspx', '/amp', '/amp/;x=1'), (path, file) => {
        expect(outlines(path + file)).toEqual(expect.arrayContaining(outlines(path)));
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ['/_%3Fnew?a=b', '/en/_%3Fnew?a=b'],
    ['/hozzaadas/d&efault?url=user/login', '/hozzaadas/d&efault/index.htm?url=user/login'],
    ['/s&inonimos?przypomnijhaslo=en', '/s&inonimos=?przypomnijhaslo=en'],
    ['/sozluk/article#/przypom-nij', '/sozluk/article/amp#/przypom-nij'],
    ['/sozluk/article#/przypom-nij', '/sozluk;a=b/article#/przypom-nij'],
    ['/medlemmer/start', '/medlemmer/start/index.html'],
    ['/T5/forum/login/td-p/123', '/t5/forum/login/td-p/123'],
    ['/x&url=//evil.org@', '/x&url=//evil.org@%3Fx=1'],
    ['/x&url=localhost:8080|', '/x&url=localhost:8080|%23x'],
    ['/x&url=localhost:8080%E2%80%8B', '/x&url=localhost:8080%E2%80%8B/%3Fx=1'],
    ['/x&sho;w=com.example.settings', '/x&sho;w=com.example.settings;v=1.0'],
    ['/new/a%26pa/ge=login', '/new/a%26pa;a=b/ge=login'],
    ['/samlrequest/redir/@name.git', '/samlrequest/redir/;/@name.git'],
  ])('leave no other verdict: %s, %s', (path, other) => {
    const verdict = judge(`https://example.org${path}`);
    expect(judge(`https://example.org${other}`)).toBe(verdict);
  });

  it('tell a page that stands below several index files', () => {
    const known = { pages: { login: 'https://example.org/start-here?a=b' } };
    for (const behind of ['', '/amp', '/amp/amp', '/index.php/amp/', '/amp//;x=1/default.aspx'])
      expect(judge(`https://example.org/start-here${behind}?a=b`, known)).toBe('deny page_type_db/login');
  });
});
