import { describe, expect, it } from 'vitest';
import { hidesTraversal } from '../../src/domain/dot-segments.ts';

describe('hidden dot segments', () => {
  it.each([
    '/a/../b',
    '/a/..',
    '../a',
    '/./a',
    '/a/..;/b',
    '/a/..;x=1/b',
    '/a;x/../b',
    '/.\ufffd.\ufffd/../b',
    '/a/..?',
    '/a/..#/x',
    '/a/.. /b',
    '/a/ .. . /b',
    '/a/..\u00a0/b',
    '/a/.\u00ad./b',
    '/a/\u200b..\u200b/b',
    '/a/..\ufeff/b',
    '/a/..\ufffd/b',
    '/a/..\ufffd\ufffd/b',
    '/a/.\ufffd./b',
    '/a/.. \ufffd;x/b',
    '/a/\uff0e\uff0e/b',
    '/a/\u2025/b',
    '/a/\ufe30/b',
    '/a/..\ufe68b',
    '/a/..\u2215b',
    '/a/..\uff0fb',
    '/a/..\u2044b',
    '/a/..\uff3cb',
    '/a\u2215..\u2215b',
    '/a\\b',
    '/a\u0000b',
    '/a\u007f',
  ])('%j has one', (path) => {
    expect(hidesTraversal(path)).toBe(true);
  });

  it.each([
    '/',
    '//',
    '/a.b/c..d',
    '/...',
    '/a b/.../c',
    '/\u2026/x',
    '/.well-known/x',
    '/..x/y',
    '/x../y',
    '/ /a',
    '/;../a',
    '/a;../b',
    '/a?../b',
    '/a\u2215b',
    '/a\uff0e',
    '/wait... what?',
    '/\ufffd.',
    '/.\ufffd',
    '/\ufffd..',
    '/\ufffd.\ufffd',
    '/\ufffd.\ufffd.',
    '/.\ufffd.\ufffd',
    '/..\ufffd.\ufffd',
    '/...\ufffd',
    '/caf\u00e9/\u4e2d\u6587',
  ])('%j has none', (path) => {
    expect(hidesTraversal(path)).toBe(false);
  });
});
