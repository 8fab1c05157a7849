import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mapShared } from '../../src/platform/libc.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pagegate-libc-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test('two mappings of a file see each other, and the file has it all', () => {
  const path = join(directory, 'shared');
  const [one, two] = [mapShared(path, 8192), mapShared(path, 8192)];
  Atomics.add(new Int32Array(one.buffer), 3, 40);
  Atomics.add(new Int32Array(two.buffer), 3, 2);
  expect(new Int32Array(one.buffer)[3]).toBe(42);
  expect(readFileSync(path).readInt32LE(12)).toBe(42);
  one.unmap();
  two.unmap();
});

test('a view that outlives its mapping is empty: touching it cannot end the process', () => {
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
