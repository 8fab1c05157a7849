import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkDrop, checkPartContents } from '../../src/drop/check-drop.ts';
import { readSigningKey, writeSignature } from '../../src/drop/sign-drop.ts';
import { LIMITS } from '../../src/limits.ts';
import { type Bench, codeOf, createBench } from '../refresh/support.ts';
import { HARMLESS_JSON, HOSTILE_JSON } from '../support/hostile-json.ts';

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

const TEXT = Buffer.from('{"domain":"example.com"}\n{"domain":"example.org"}\n');

const contentsOf = async (drop: string) => {
  const { manifest } = checkDrop({ drop, trustedKeys: bench.trusted });
  return checkPartContents(drop, manifest);
};

test('intact parts pass, and their unpacked size is reported', async () => {
  const parts = { 'a.ndjson': TEXT, 'b.ndjson.gz': gzipSync(TEXT), 'c.ndjson.zst': zstdCompressSync(TEXT) };
  const reports = await contentsOf(bench.drop('d', { parts }));
  expect(reports.map((one) => [one.name, one.unpackedSizeBytes])).toEqual(
    Object.keys(parts).map((name) => [name, TEXT.length]),
  );
});

test.each([
  ['a.ndjson', TEXT],
  ['a.ndjson.gz', gzipSync(TEXT)],
  ['a.ndjson.zst', zstdCompressSync(TEXT)],
])('a part with one byte changed is refused: %s', async (name, bytes) => {
  const drop = bench.drop('d', { parts: { [name]: bytes } });
  const changed = Buffer.from(bytes);
  changed[changed.length - 2]! ^= 1;
  writeFileSync(join(drop, name), changed);
  expect(await codeOf(contentsOf(drop))).toMatch(/^drop_part_(checksum|truncated)$/);
});

test.each([
  ['a.ndjson.gz', gzipSync(TEXT)],
  ['a.ndjson.zst', zstdCompressSync(TEXT)],
])('a part that was truncated before it was listed is refused: %s', async (name, bytes) => {
  const drop = bench.drop('d', { parts: { [name]: bytes.subarray(0, bytes.length - 5) } });
  expect(await codeOf(contentsOf(drop))).toBe('drop_part_truncated');
});

test.each([
  ['bomb.ndjson.gz', gzipSync(Buffer.alloc(4 << 20))],
  ['bomb.ndjson.zst', zstdCompressSync(Buffer.alloc(4 << 20))],
])('a part that unpacks to far more than its records need is refused: %s', async (name, bytes) => {
  expect(bytes.length).toBeLessThan(10_000);
  expect(await codeOf(contentsOf(bench.drop('d', { parts: { [name]: bytes } })))).toBe('drop_too_large');
});

test('a manifest that is a folder, or larger than the maximum, is refused before it is read', async () => {
  const manifest = join(bench.drop('d'), 'manifest.json');
  truncateSync(manifest, 8 * 2 ** 20 + 1);
  expect(await codeOf(contentsOf(join(bench.root, 'd')))).toBe('drop_too_large');
  expect(LIMITS.manifestBytes.beyond).toBe('`drop_too_large`');
  rmSync(manifest);
  mkdirSync(manifest);
  expect(await codeOf(contentsOf(join(bench.root, 'd')))).toBe('drop_file_kind');
});

test('a signature file that is larger than the maximum is refused before it is read', async () => {
  const drop = bench.drop('d');
  truncateSync(join(drop, 'manifest.json.sig'), LIMITS.signatureFileBytes.value + 1);
  expect(LIMITS.signatureFileBytes.beyond).toBe(`\`${await codeOf(contentsOf(drop))}\``);
});

test('a signature can be added to existing ones', async () => {
  const drop = bench.drop('d');
  const other = createBench();
  const { manifestBytes } = checkDrop({ drop, trustedKeys: bench.trusted });
  writeSignature(drop, manifestBytes, other.vendor, true);
  expect(checkDrop({ drop, trustedKeys: bench.trusted })).toMatchObject({ signedBy: 'vendor' });
  const renamed = [{ name: 'next', key: other.trusted[0]!.key }];
  expect(checkDrop({ drop, trustedKeys: renamed })).toMatchObject({ signedBy: 'next' });
  writeSignature(drop, manifestBytes, other.vendor, false);
  const refusal = expect.objectContaining({ code: 'drop_signature_invalid' });
  expect(() => checkDrop({ drop, trustedKeys: bench.trusted })).toThrow(refusal);
  other.remove();
});

test.each<[string, string, RegExp]>([
  ['of something else', 'junk\n', /its line 1 is not the base64 of 64 bytes/],
  ['of eight', `${Buffer.alloc(64).toString('base64')}\n`.repeat(8), /it has 9 lines, and at most 8 are read/],
])('a signature is not added to a file %s', (_what, text, expected) => {
  const drop = bench.drop('d');
  const { manifestBytes } = checkDrop({ drop, trustedKeys: bench.trusted });
  const file = join(drop, 'manifest.json.sig');
  writeFileSync(file, text);
  const refusal = { code: 'drop_signature_file', message: expect.stringMatching(expected) };
  expect(() => writeSignature(drop, manifestBytes, bench.vendor, true)).toThrow(expect.objectContaining(refusal));
  expect(readFileSync(file, 'utf8')).toBe(text);
  writeSignature(drop, manifestBytes, bench.vendor, false);
  expect(checkDrop({ drop, trustedKeys: bench.trusted })).toMatchObject({ signedBy: 'vendor' });
});

test('a public key given for signing is reported as one', () => {
  const pem = bench.trusted[0]!.key.export({ type: 'spki', format: 'pem' }).toString();
  expect(() => readSigningKey('vendor.pem', pem)).toThrow(/vendor\.pem: it is a public key; expected the private one/);
});

test.each([
  [1, '1 line,'],
  [3, '3 lines,'],
])('a part with another number of lines than in the manifest is refused: 2 instead of %i', async (records, said) => {
  const drop = bench.drop('d', { parts: { 'a.ndjson': TEXT } });
  const manifest = JSON.parse(readFileSync(join(drop, 'manifest.json'), 'utf8'));
  manifest.files[0].records = records;
  await expect(contentsOf(bench.resign(drop, manifest))).rejects.toMatchObject({
    code: 'drop_part_records',
    message: expect.stringContaining(`the manifest says ${said} the file has `),
  });
});

test('a pipe or a link that replaces a checked part is refused without waiting', async () => {
  const drop = bench.drop('d', { parts: { 'a.ndjson': TEXT } });
  const { manifest } = await checkDrop({ drop, trustedKeys: bench.trusted });
  rmSync(join(drop, 'a.ndjson'));
  execFileSync('mkfifo', [join(drop, 'a.ndjson')]);
  expect(await codeOf(checkPartContents(drop, manifest))).toBe('drop_file_kind');
  rmSync(join(drop, 'a.ndjson'));
  writeFileSync(join(drop, 'elsewhere'), TEXT);
  symlinkSync('elsewhere', join(drop, 'a.ndjson'));
  expect(await codeOf(checkPartContents(drop, manifest))).toBe('drop_file_kind');
});

test.each(['2016-12-31T23:59:60Z', '2026-11-21T00:00:00+05', '2026-11-21T00:00:00+0530'])(
  'an ambiguous creation time is refused: %s',
  (created) => {
    const drop = bench.drop('d');
    const manifest = JSON.parse(readFileSync(join(drop, 'manifest.json'), 'utf8'));
    const changed = bench.resign(drop, { ...manifest, created });
    const refusal = expect.objectContaining({ code: 'manifest_invalid' });
    expect(() => checkDrop({ drop: changed, trustedKeys: bench.trusted })).toThrow(refusal);
  },
);

const spoiled = (spoil: (text: string) => Uint8Array) => {
  const drop = bench.drop('d');
  const text = readFileSync(join(drop, 'manifest.json'), 'utf8');
  return checkDrop({ drop: bench.resign(drop, spoil(text)), trustedKeys: bench.trusted });
};

test.each(HOSTILE_JSON)('a manifest signed by the vendor is also refused with $name', (hostile) => {
  const refusal = { code: 'manifest_invalid', message: expect.stringMatching(hostile.expected) };
  expect(() => spoiled(hostile.spoil)).toThrow(expect.objectContaining(refusal));
});

test('a name that is repeated in one part of a manifest is refused, with its place', () => {
  const twice = (text: string) => Buffer.from(text.replace('"bytes":', '"bytes":1,\n"bytes":'));
  expect(() => spoiled(twice)).toThrow('files[0].bytes is set more than once (line 2)');
});

test.each(HARMLESS_JSON)('a manifest with $name is read', ({ spoil }) => {
  expect(spoiled(spoil).signedBy).toBe('vendor');
});
