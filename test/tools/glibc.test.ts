import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ElfError, relaxGlibcNeed } from '../../tools/glibc/elf.ts';
import { compatibleName, makeCompatible } from '../../tools/glibc/install.ts';

interface Symbol {
  readonly name: string;
  readonly version: number;
}

const OLD = 2;
const NEW = 3;
const DYNAMIC_AT = 176;
const STRINGS_AT = 512;
const SYMBOLS_AT = 1024;
const HASH_AT = 1536;
const VERSYM_AT = 1600;
const VERNEED_AT = 1700;

/** A minimal shared object with only the given dynamic symbols and a need for libc in two versions. */
function tinyElf(symbols: readonly Symbol[], newest = 'GLIBC_2.38'): Buffer {
  const image = Buffer.alloc(2048);
  image.writeUInt32LE(0x464c457f, 0);
  image[4] = 2;
  image[5] = 1;
  image.writeUInt16LE(3, 16);
  image.writeBigUInt64LE(64n, 32);
  image.writeUInt16LE(56, 54);
  image.writeUInt16LE(2, 56);
  const segment = (at: number, type: number, offset: number, size: number): void => {
    image.writeUInt32LE(type, at);
    image.writeBigUInt64LE(BigInt(offset), at + 8);
    image.writeBigUInt64LE(BigInt(offset + 0x10000), at + 16);
    image.writeBigUInt64LE(BigInt(size), at + 32);
  };
  segment(64, 1, 0, 2048);
  segment(120, 2, DYNAMIC_AT, 16 * 6);
  const tags: [bigint, number][] = [
    [5n, STRINGS_AT],
    [6n, SYMBOLS_AT],
    [0x6ffffef5n, HASH_AT],
    [0x6ffffff0n, VERSYM_AT],
    [0x6ffffffen, VERNEED_AT],
  ];
  tags.forEach(([tag, offset], i) => {
    image.writeBigUInt64LE(tag, DYNAMIC_AT + 16 * i);
    image.writeBigUInt64LE(BigInt(offset + 0x10000), DYNAMIC_AT + 16 * i + 8);
  });
  let end = STRINGS_AT + 1;
  const addString = (text: string): number => {
    const at = end;
    end += image.write(`${text}\0`, at, 'latin1');
    return at - STRINGS_AT;
  };
  symbols.forEach((symbol, i) => {
    image.writeUInt32LE(addString(symbol.name), SYMBOLS_AT + 24 * (i + 1));
    image.writeUInt16LE(symbol.version, VERSYM_AT + 2 * (i + 1));
  });
  image.writeUInt32LE(symbols.length + 1, HASH_AT + 4);
  image.writeUInt16LE(1, VERNEED_AT);
  image.writeUInt16LE(2, VERNEED_AT + 2);
  image.writeUInt32LE(addString('libc.so.6'), VERNEED_AT + 4);
  image.writeUInt32LE(16, VERNEED_AT + 8);
  const versions = [
    { name: 'GLIBC_2.2.5', index: OLD },
    { name: newest, index: NEW },
  ];
  versions.forEach(({ name, index }, i) => {
    const at = VERNEED_AT + 16 + 16 * i;
    image.writeUInt16LE(index, at + 6);
    image.writeUInt32LE(addString(name), at + 8);
    image.writeUInt32LE(i === 0 ? 16 : 0, at + 12);
  });
  return image;
}

function nameOf(image: Buffer, i: number): string {
  const at = STRINGS_AT + image.readUInt32LE(SYMBOLS_AT + 24 * (i + 1));
  return image.toString('latin1', at, image.indexOf(0, at));
}

const versionOf = (image: Buffer, i: number): number => image.readUInt16LE(VERSYM_AT + 2 * (i + 1));

const ALIASES: readonly Symbol[] = [
  { name: 'malloc', version: OLD },
  { name: '__isoc23_strtol', version: NEW },
  { name: '__isoc23_strtoul', version: NEW },
  { name: '__isoc23_sscanf', version: NEW },
];

describe('relaxGlibcNeed', () => {
  test('redirects the three aliases to their older versions and removes the need', () => {
    const image = tinyElf(ALIASES);
    const before = Buffer.from(image);
    expect(relaxGlibcNeed(image)).toHaveLength(4);
    expect([0, 1, 2, 3].map((i) => nameOf(image, i))).toEqual(['malloc', 'strtol', 'strtoul', 'sscanf']);
    expect([0, 1, 2, 3].map((i) => versionOf(image, i))).toEqual([OLD, OLD, OLD, OLD]);
    expect(image.readUInt16LE(VERNEED_AT + 32 + 4)).toBe(2);
    const changed = [...image.keys()].filter((at) => image[at] !== before[at]);
    expect(changed.length).toBeGreaterThan(0);
    expect(changed.length).toBeLessThanOrEqual(3 * (4 + 2) + 2);
  });

  test('leaves an image alone that does not need 2.38', () => {
    const image = tinyElf([{ name: 'malloc', version: OLD }], 'GLIBC_2.34');
    const before = Buffer.from(image);
    expect(relaxGlibcNeed(image)).toEqual([]);
    expect(image.equals(before)).toBe(true);
  });

  test('refuses a symbol of 2.38 without an older version, and edits nothing', () => {
    const image = tinyElf([...ALIASES, { name: 'strlcpy', version: NEW }]);
    const before = Buffer.from(image);
    expect(() => relaxGlibcNeed(image)).toThrow(/strlcpy/);
    expect(image.equals(before)).toBe(true);
  });

  test.each([
    ['an empty file', Buffer.alloc(0)],
    ['a text', Buffer.from('#!/bin/sh\n'.repeat(20))],
    ['a 32-bit file', Object.assign(tinyElf(ALIASES), { 4: 1 })],
    ['a file cut after its header', tinyElf(ALIASES).subarray(0, 100)],
    ['a file cut inside its segments', tinyElf(ALIASES).subarray(0, 1000)],
  ])('refuses %s', (_, image) => {
    expect(() => relaxGlibcNeed(Buffer.from(image))).toThrow(ElfError);
  });
});

describe('makeCompatible', () => {
  const FILE = 'uws_linux_x64_137.node';
  let directory: string;
  let known: Record<string, string>;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'pagegate-glibc-'));
    const image = tinyElf(ALIASES);
    writeFileSync(join(directory, FILE), image);
    known = { [FILE]: createHash('sha256').update(image).digest('hex') };
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  test('writes the copy next to the original, once', () => {
    const original = readFileSync(join(directory, FILE));
    expect(makeCompatible(directory, '2.36', FILE, known).status).toBe('made');
    expect(makeCompatible(directory, '2.36', FILE, known).status).toBe('already_made');
    expect(readFileSync(join(directory, FILE)).equals(original)).toBe(true);
    expect(readdirSync(directory).sort()).toEqual([compatibleName(FILE), FILE].sort());
  });

  test.each(['2.38', '2.41', '3.0'])('does nothing on glibc %s', (glibc) => {
    expect(makeCompatible(directory, glibc, FILE, known).status).toBe('not_needed');
    expect(readdirSync(directory)).toEqual([FILE]);
  });

  test.each([
    ['glibc too old', '2.31', 0],
    ['no glibc', undefined, 0],
    ['an unknown checksum', '2.36', 1],
  ])('refuses: %s', (_, glibc, flip) => {
    const image = readFileSync(join(directory, FILE));
    image[image.length - 1] = flip;
    writeFileSync(join(directory, FILE), image);
    expect(makeCompatible(directory, glibc, FILE, known).status).toBe('failed');
    expect(readdirSync(directory)).toEqual([FILE]);
  });
});
