import { closeSync, fstatSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { PartSource } from '../../src/drop/unpack/part-source.ts';
import * as libc from '../../src/platform/libc.ts';
import { withTempDirectory } from '../support/tiny-index.ts';

vi.mock(import('../../src/platform/libc.ts'), async (original) => {
  const actual = await original();
  return { ...actual, dropCached: vi.fn(actual.dropCached) };
});

it.each([
  [0, []],
  [3, [[0, 3]]],
  [
    (8 << 20) + 5,
    [
      [0, 8 << 20],
      [8 << 20, 5],
    ],
  ],
])('a part of %i bytes that is read once is dropped from the page cache', (size, dropped) => {
  withTempDirectory((directory) => {
    const path = join(directory, 'a.ndjson');
    writeFileSync(path, Buffer.alloc(size));
    for (const dropsCached of [false, true]) {
      const source = new PartSource(path, { dropsCached });
      while (source.next() !== undefined);
      source.close();
      const calls = vi.mocked(libc.dropCached).mock.calls.map(([, offset, sizeBytes]) => [offset, sizeBytes]);
      expect(calls).toEqual(dropsCached ? dropped : []);
    }
    vi.mocked(libc.dropCached).mockClear();
  });
});

it('closing a part twice does not close a file that was opened in between, and the part has no more bytes', () => {
  withTempDirectory((directory) => {
    const path = join(directory, 'a.ndjson');
    writeFileSync(path, '{}\n');
    const source = new PartSource(path);
    source.close();
    // The system gives the lowest free descriptor: that of the part.
    const other = openSync(path, 'r');
    source.close();
    expect(source.next()).toBeUndefined();
    expect(fstatSync(other).size).toBe(3);
    closeSync(other);
    rmSync(path);
  });
});
