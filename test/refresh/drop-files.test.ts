import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { checkPartContent, checkParts, DROP_LIMITS } from '../../src/refresh/drop-files.ts';
import { type Bench, createBench, sha256 } from './support.ts';

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

const put = (name: string, bytes: Uint8Array, records = 2) => {
  const folder = bench.drop('d');
  writeFileSync(join(folder, name), bytes);
  return { folder, part: { name, bytes: bytes.length, records, sha256: sha256(bytes) } };
};

const codeOf = async (task: Promise<unknown>): Promise<string> =>
  task.then(
    () => 'no failure',
    (error) => (error instanceof PagegateError ? error.code : String(error)),
  );

const TEXT = Buffer.from('{"domain":"example.com"}\n{"domain":"example.org"}\n');

test.each([
  ['a.ndjson', TEXT],
  ['a.ndjson.gz', gzipSync(TEXT)],
  ['a.ndjson.zst', zstdCompressSync(TEXT)],
])('a sound part passes and its unpacked size is known: %s', async (name, bytes) => {
  const { folder, part } = put(name, bytes);
  expect(await checkPartContent(folder, part)).toBe(TEXT.length);
});

test.each([
  ['a.ndjson', TEXT],
  ['a.ndjson.gz', gzipSync(TEXT)],
  ['a.ndjson.zst', zstdCompressSync(TEXT)],
])('a wrong checksum is refused: %s', async (name, bytes) => {
  const { folder, part } = put(name, bytes);
  expect(await codeOf(checkPartContent(folder, { ...part, sha256: sha256('other') }))).toBe('drop_part_checksum');
});

test.each([
  ['a.ndjson.gz', gzipSync(TEXT)],
  ['a.ndjson.zst', zstdCompressSync(TEXT)],
])('a truncated part is refused: %s', async (name, bytes) => {
  const { folder, part } = put(name, bytes);
  truncateSync(join(folder, name), bytes.length - 5);
  expect(await codeOf(checkPartContent(folder, part))).toBe('drop_part_truncated');
});

test.each([
  ['bomb.ndjson.gz', gzipSync(Buffer.alloc(4 << 20))],
  ['bomb.ndjson.zst', zstdCompressSync(Buffer.alloc(4 << 20))],
])('a part that unpacks to far more than its records need is refused: %s', async (name, bytes) => {
  const { folder, part } = put(name, bytes);
  expect(bytes.length).toBeLessThan(10_000);
  expect(await codeOf(checkPartContent(folder, part))).toBe('drop_too_large');
});

test('too many parts and too large parts are refused before they are read', async () => {
  const { folder, part } = put('a.ndjson', TEXT);
  expect(await codeOf(checkParts(folder, [part], { ...DROP_LIMITS, partsMax: 0 }))).toBe('drop_too_large');
  expect(await codeOf(checkParts(folder, [part], { ...DROP_LIMITS, partSizeMaxBytes: 10 }))).toBe('drop_too_large');
  expect(await codeOf(checkParts(folder, [part]))).toBe('no failure');
});
