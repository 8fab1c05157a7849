import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ADVICE, dropCached, mapFile, mapShared } from '../../src/platform/libc.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pagegate-libc-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test("two mappings of a file see each other's writes, which all reach the file", () => {
  const path = join(directory, 'shared');
  const [one, two] = [mapShared(path, 8192), mapShared(path, 8192)];
  Atomics.add(new Int32Array(one.buffer), 3, 40);
  Atomics.add(new Int32Array(two.buffer), 3, 2);
  expect(new Int32Array(one.buffer)[3]).toBe(42);
  expect(readFileSync(path).readInt32LE(12)).toBe(42);
  one.unmap();
  two.unmap();
});

test('a view that outlives its mapping is empty: accessing it cannot crash the process', () => {
  const mapping = mapShared(join(directory, 'shared'), 8192);
  const view = new Int32Array(mapping.buffer);
  view[0] = 7;
  mapping.unmap();
  mapping.unmap();
  expect(view.length).toBe(0);
  expect(view[0]).toBeUndefined();
  expect(() => Atomics.load(view, 0)).toThrow();
  expect(() => mapping.buffer).toThrow(/closed/);
});

test('dropping a file from the cache loses nothing, written out or not, mapped or not', () => {
  const path = join(directory, 'cached');
  const bytes = Buffer.from(Array.from({ length: 3 << 20 }, (_, i) => i * 31));
  writeFileSync(path, bytes);
  const fd = openSync(path, 'r');
  dropCached(fd, 0, bytes.length);
  expect(readFileSync(path).equals(bytes)).toBe(true);
  const mapping = mapFile(fd, bytes.length);
  mapping.advise(ADVICE.hugePage);
  mapping.advise(ADVICE.populateRead);
  dropCached(fd, 0, bytes.length);
  expect(Buffer.from(mapping.buffer).equals(bytes)).toBe(true);
  // Whether there are any depends on the kernel.
  expect(mapping.hugePagesBytes() % 4096).toBe(0);
  expect(mapping.hugePagesBytes()).toBeLessThanOrEqual(bytes.length);
  mapping.unmap();
  expect(mapping.hugePagesBytes()).toBe(0);
  closeSync(fd);
});
