/** FORMAT.md, layout.ts and the golden file agree. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readBucketBase } from '../../src/index/format/bucket.ts';
import { blocksSize, decodeHeader, type RawHeader, validateHeader } from '../../src/index/format/header.ts';
import { HashedKey } from '../../src/index/format/key-hash.ts';
import {
  ANSWER_MAX_BYTES,
  alignSection,
  BLOCK_SIZE_BYTES,
  BUCKET,
  BUCKET_SIZE_BYTES,
  BUCKETS_MAX,
  type Field,
  FORMAT_MAJOR,
  FORMAT_MINOR,
  HEADER,
  HEADER_SIZE_BYTES,
  MAGIC,
  ORDINAL_WIDE,
  PAYLOAD_MAX_BYTES,
  RECORDS_PER_BUCKET,
  RECORDS_PER_BUCKET_MAX,
  SECTION_ALIGNMENT_BYTES,
  SECTION_ENTRY,
  SECTIONS,
  SEED_A,
  SEED_B,
  type SectionName,
  SIZE_OF_LENGTH_CODE,
  SLOTS_PER_BUCKET,
  TABLES_MAX_BYTES,
} from '../../src/index/format/layout.ts';
import { bucketChecksum, recordSeed, saltOf } from '../../src/index/format/salt.ts';
import { openIndexBytes } from '../../src/index/read.ts';
import { bytesInMemory } from '../support/tiny-index.ts';
import { goldenEntries, readGolden, writeGolden } from './golden/golden.ts';

const page = readFileSync(new URL('../../src/index/FORMAT.md', import.meta.url), 'utf8');
const golden = readGolden();

/** Returns the rows of the table after this heading whose first column has this title. */
function tableAfter(heading: string, firstColumn: string): string[][] {
  const from = page.indexOf(`${heading}\n`);
  expect(from).toBeGreaterThan(-1);
  const lines = page.slice(from).split('\n');
  const start = lines.findIndex((line) => line.startsWith(`| ${firstColumn} `));
  const rows: string[][] = [];
  for (const line of lines.slice(start + 2)) {
    if (!line.startsWith('|')) break;
    rows.push(
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  }
  return rows;
}

function fieldsOf(sequence: Readonly<Record<string, Field>>): (string | number)[][] {
  return Object.entries(sequence).flatMap(([name, { offset, size }]) => (name === 'end' ? [] : [[name, offset, size]]));
}

const asFields = (rows: string[][]): (string | number)[][] =>
  rows.map(([name = '', offset, size]) => [name, Number(offset), Number(size)]);

describe('FORMAT.md', () => {
  it('has the fields of layout.ts', () => {
    expect(asFields(tableAfter('## Header', 'field'))).toEqual(fieldsOf(HEADER));
    expect(asFields(tableAfter('An entry of the section table:', 'field'))).toEqual(fieldsOf(SECTION_ENTRY));
    expect(asFields(tableAfter('## Bucket', 'field'))).toEqual(fieldsOf(BUCKET));
    expect(tableAfter('## Overview', 'part').map(([name]) => name)).toEqual(['header', ...SECTIONS]);
  });

  it('contains the numbers of layout.ts', () => {
    const magic = MAGIC.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const size = (code: number): string => `size(${code}) = ${SIZE_OF_LENGTH_CODE[code]}`;
    for (const text of [
      `# The index file, format ${FORMAT_MAJOR}.${FORMAT_MINOR}`,
      `\`${magic}\``,
      `| header | offset 0, ${HEADER_SIZE_BYTES} bytes |`,
      `first multiple of ${SECTION_ALIGNMENT_BYTES} that is at or after`,
      `| blockSize | 44 | 4 | ${BLOCK_SIZE_BYTES} |`,
      `XXH64 of each block of ${BLOCK_SIZE_BYTES.toLocaleString('en-US')} bytes`,
      `${SEED_A} (0x${SEED_A.toString(16)})`,
      `${SEED_B} (0x${SEED_B.toString(16)})`,
      `1 to ${BUCKETS_MAX.toLocaleString('en-US')} |`,
      `for about ${RECORDS_PER_BUCKET} records`,
      `\`extra = count - ${SLOTS_PER_BUCKET}\``,
      `at most ${RECORDS_PER_BUCKET_MAX} × bucketCount`,
      `of the metadata, at most ${TABLES_MAX_BYTES.toLocaleString('en-US')} |`,
      `integer, at most ${ANSWER_MAX_BYTES}`,
      `one byte when n is below ${ORDINAL_WIDE}`,
      size(191),
      size(192),
      size(255),
    ]) {
      expect(page).toContain(text);
    }
  });
});

const hex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');

describe('the golden file', () => {
  it('is the output of the writer', () => {
    const written = writeGolden();
    const at = golden.findIndex((byte, i) => byte !== written[i]);
    if (at >= 0 || written.length !== golden.length) {
      expect.fail(`sizes ${golden.length} and ${written.length}; the first byte that differs is at offset ${at}`);
    }
  });

  it('is the worked example of FORMAT.md', () => {
    const { dictionary, directory, payload, metadata } = decodeHeader(golden).sections;
    const bytesOf = (...values: string[]): string => values.join(' ').replaceAll('`', '');
    const bucket = golden.subarray(directory.offset + BUCKET_SIZE_BYTES, directory.offset + directory.size);
    for (const field of ['base', 'count', 'checksum'] as const) {
      const { offset, size } = BUCKET[field];
      expect(page).toContain(`| ${field} | \`${hex(bucket.subarray(offset, offset + size))}\` |`);
    }
    for (const { offset } of [BUCKET.fingerprints, BUCKET.lengths])
      expect(page).toContain(`\`${hex(bucket.subarray(offset, offset + 4))}\``);
    const base = payload.offset + readBucketBase(bucket, 0);
    const table = tableAfter('is the overflow table:', 'bytes').map(([bytes = '']) => bytes);
    expect(bytesOf(...table)).toBe(hex(golden.subarray(base, base + 5)));
    const rows = tableAfter('Record of `example.com`:', 'bytes').map(([bytes = '']) => bytes);
    expect(bytesOf(...rows)).toBe(hex(golden.subarray(base + 15, base + 40)));
    const salt = saltOf(dictionary.checksum, metadata.checksum);
    const hashed = new HashedKey();
    hashed.set('example.com');
    const hashedBytes = new DataView(new ArrayBuffer(16));
    hashedBytes.setBigUint64(0, dictionary.checksum, true);
    hashedBytes.setBigUint64(8, metadata.checksum, true);
    for (const text of [
      `hashA is 0x${hashed.hashA().toString(16)} and hashB 0x${hashed.hashB().toString(16)}`,
      `0x${dictionary.checksum.toString(16)}`,
      `0x${metadata.checksum.toString(16)}`,
      `\`${hex(new Uint8Array(hashedBytes.buffer))}\``,
      `the salt is 0x${(salt >>> 0).toString(16)}`,
      `are 0x${bucketChecksum(salt, 1).toString(16)}`,
      `= 0x${recordSeed(salt, 1, 0).toString(16)} |`,
      `= 0x${recordSeed(salt, 1, 0xa6).toString(16)}`,
    ]) {
      expect(page).toContain(text);
    }
  });

  it('can be queried', () => {
    const index = openIndexBytes(bytesInMemory(golden));
    expect(index.decode(index.find('example.com'))).toEqual({
      domain: 'example.com',
      language: 'en',
      pageTypes: [
        { type: 'login', url: 'https://example.com/login' },
        { type: 'pricing', url: 'https://www.example.com/p?\\' },
      ],
      iabCategory: 'Topic 1',
      filteringCategories: ['News'],
      openPageRank: 5.5,
      globalRank: 1000,
    });
    for (const { domain, pageTypes } of goldenEntries.slice(1)) {
      expect(index.decode(index.find(domain))).toEqual({ domain, pageTypes });
    }
  });
});

describe('a consistent header', () => {
  /** Returns a check of the header of a file with these section sizes and otherwise correct fields. */
  function headerOf(bucketCount: number, payload: number, others: Partial<Record<SectionName, number>> = {}) {
    const raw = decodeHeader(golden);
    const directory = bucketCount * BUCKET_SIZE_BYTES;
    const sizes: Partial<Record<string, number>> = {
      directory,
      payload,
      blocks: blocksSize(directory, payload),
      ...others,
    };
    let end = HEADER_SIZE_BYTES;
    const sections = Object.fromEntries(
      SECTIONS.map((name) => {
        const section = {
          ...raw.sections[name],
          offset: alignSection(end),
          size: sizes[name] ?? raw.sections[name].size,
        };
        end = section.offset + section.size;
        return [name, section];
      }),
    ) as RawHeader['sections'];
    return (): unknown =>
      validateHeader({ ...raw, recordCount: 0, bucketCount, sections, fileSizeBytes: end }, 'x', end);
  }

  it('must have buckets, payload and blocks within the limits of the format', () => {
    for (const [buckets, payload] of [
      [1, 0],
      [BUCKETS_MAX, PAYLOAD_MAX_BYTES],
    ] as const)
      expect(headerOf(buckets, payload)()).toMatchObject({ bucketCount: buckets });
    expect(headerOf(0, 0)).toThrow(/there are 0 buckets/);
    expect(headerOf(BUCKETS_MAX + 1, 0)).toThrow(/there are \d+ buckets/);
    expect(headerOf(1, PAYLOAD_MAX_BYTES + 1)).toThrow(/the payload has/);
    expect(headerOf(1, 100, { blocks: 0 })).toThrow(/the size of the blocks/);
  });

  it('must not have more to read on opening than the format allows', () => {
    for (const name of ['dictionary', 'metadata'] as const) {
      expect(headerOf(1, 0, { [name]: TABLES_MAX_BYTES })()).toMatchObject({ bucketCount: 1 });
      expect(headerOf(1, 0, { [name]: TABLES_MAX_BYTES + 1 })).toThrow(`the ${name} has 16777217 bytes`);
    }
  });
});
