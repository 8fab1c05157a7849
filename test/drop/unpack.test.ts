/** Compressed parts as other programs write them: several members, several frames, bytes after the end. */
import { createHash, hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildIndex } from '../../src/builder/build.ts';
import type { BuildOptions } from '../../src/builder/options.ts';
import type { BuildReport } from '../../src/builder/report.ts';
import { describePart, makeManifest } from '../../src/drop/make-manifest.ts';
import { unpackedChunks } from '../../src/drop/unpack/unpack.ts';
import { ZstdFrames } from '../../src/drop/unpack/zstd-frames.ts';

const FACTS = { dataset: 'test', revision: 1, created: '2026-01-02T03:04:05Z', pageTypes: 'complete' } as const;
let folder = '';
let drop = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-unpack-test-'));
  drop = join(folder, 'drop');
  mkdirSync(drop);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lines = (tag: string, count: number): string =>
  Array.from({ length: count }, (_, i) => `{"domain":"${tag}${i}.example"}\n`).join('');
/** Text that hardly compresses: its frames are longer than one read. */
const dense = (tag: string, count: number): string =>
  Array.from({ length: count }, (_, i) => {
    const hex = createHash('sha512').update(`${tag}${i}`).digest('base64url').toLowerCase();
    return `{"domain":"${tag}${i}.example","x":"${hex}${hex}"}\n`;
  }).join('');

const zstd = (text: string, params: Record<number, number> = {}): Buffer => zstdCompressSync(text, { params });
const checked = (text: string): Buffer => zstd(text, { [constants.ZSTD_c_checksumFlag]: 1 });
const unsized = (text: string): Buffer => zstd(text, { [constants.ZSTD_c_contentSizeFlag]: 0 });
const skippable = (size: number, kind = 0): Buffer => {
  const frame = Buffer.alloc(8 + size, 0xfd);
  frame.writeUInt32LE(0x184d_2a50 + kind, 0);
  frame.writeUInt32LE(size, 4);
  return frame;
};
const member = (text: string): Buffer => gzipSync(text);

async function unpack(name: string, bytes: Buffer, size: number): Promise<string> {
  let at = 0;
  const next = (): Buffer | undefined => {
    if (at >= bytes.length) return undefined;
    const chunk = Buffer.from(bytes.subarray(at, at + size));
    at += size;
    return chunk;
  };
  let text = '';
  for await (const chunk of unpackedChunks(name, next)) text += chunk.toString('latin1');
  return text;
}

/** Writes a drop of one part with a hand-made manifest. */
function write(name: string, bytes: Buffer, records: number): void {
  writeFileSync(join(drop, name), bytes);
  const sha256 = hash('sha256', bytes);
  const vocabulary = { name: 'page-types', version: 1 };
  const { pageTypes: page_types, ...facts } = FACTS;
  const files = [{ name, bytes: bytes.length, records, sha256 }];
  const manifest = { format: 'pagegate-drop/1', ...facts, kind: 'full', vocabulary, page_types, files };
  writeFileSync(join(drop, 'manifest.json'), JSON.stringify(manifest));
}

const build = (options: Partial<BuildOptions> = {}): Promise<BuildReport> =>
  buildIndex({ drop, out: join(folder, 'index.pgx'), generation: 1, workers: 0, ...options });

const WHOLE: readonly (readonly [string, string, Buffer, number])[] = [
  ['two frames', 'a.zst', Buffer.concat([zstd(lines('a', 5)), zstd(lines('b', 7))]), 12],
  [
    'frames of every kind',
    'a.zst',
    Buffer.concat([checked(lines('a', 3)), unsized(lines('b', 3)), zstd(''), zstd(lines('c', 3))]),
    9,
  ],
  ['a skippable frame first', 'a.zst', Buffer.concat([skippable(100), zstd(lines('a', 5))]), 5],
  [
    'skippable frames between and after',
    'a.zst',
    Buffer.concat([zstd(lines('a', 5)), skippable(0, 15), skippable(300_000), zstd(lines('b', 2)), skippable(1, 7)]),
    7,
  ],
  ['nothing but a skippable frame', 'a.zst', skippable(5), 0],
  ['one repeated byte', 'a.zst', Buffer.concat([zstd(' '.repeat(60_000)), zstd(`\n${lines('a', 1)}`)]), 2],
  [
    'ten frames that are longer than what is read at once',
    'a.zst',
    Buffer.concat(Array.from({ length: 10 }, (_, i) => checked(dense(`t${i}x`, 2500)))),
    25_000,
  ],
  ['a line across two frames', 'a.zst', Buffer.concat([zstd('{"domain":"a.'), zstd('example"}\n')]), 1],
  ['two gzip members', 'a.gz', Buffer.concat([member(lines('a', 5)), member(lines('b', 7))]), 12],
  ['gzip members that are long', 'a.gz', Buffer.concat([member(dense('a', 5000)), member(dense('b', 5000))]), 10_000],
  ['gzip filled up with zeros', 'a.gz', Buffer.concat([member(lines('a', 5)), Buffer.alloc(600_000)]), 5],
];

const JUNK = Buffer.from('junk');
const good = zstd(lines('a', 5));
const BROKEN: readonly (readonly [string, string, Buffer])[] = [
  ['four bytes after a frame', 'a.zst', Buffer.concat([good, JUNK])],
  ['three bytes after a frame', 'a.zst', Buffer.concat([good, JUNK.subarray(1)])],
  ['zeros after a frame', 'a.zst', Buffer.concat([good, Buffer.alloc(100)])],
  ['3 MB after a frame', 'a.zst', Buffer.concat([good, Buffer.alloc(3 << 20, 'junk')])],
  ['a frame cut off in its header', 'a.zst', Buffer.concat([good, good.subarray(0, 6)])],
  ['a frame cut off in a block', 'a.zst', Buffer.concat([good, good.subarray(0, -3)])],
  ['a frame cut off in its checksum', 'a.zst', checked(lines('a', 5)).subarray(0, -1)],
  ['a skippable frame cut off', 'a.zst', Buffer.concat([good, skippable(10).subarray(0, -1)])],
  ['a frame with a wrong checksum', 'a.zst', Buffer.concat([checked(lines('a', 5)).subarray(0, -4), JUNK])],
  ['a frame from another program after a good one', 'a.zst', Buffer.concat([good, member('x')])],
  ['a damaged second frame', 'a.zst', Buffer.concat([good, zstd(dense('b', 9000)).fill(0, 100_000, 200_000)])],
  ['an empty file', 'a.zst', Buffer.alloc(0)],
  ['an empty file', 'a.gz', Buffer.alloc(0)],
  ['junk after a gzip', 'a.gz', Buffer.concat([member(lines('a', 5)), JUNK])],
  ['3 MB after a gzip', 'a.gz', Buffer.concat([member(lines('a', 5)), Buffer.alloc(3 << 20, 'junk')])],
  ['junk after zeros after a gzip', 'a.gz', Buffer.concat([member(lines('a', 5)), Buffer.alloc(10), JUNK])],
  [
    'a member after many zeros after a gzip',
    'a.gz',
    Buffer.concat([member(lines('a', 5)), Buffer.alloc(1 << 20), member(lines('b', 5))]),
  ],
  ['a gzip member cut off', 'a.gz', Buffer.concat([member(lines('a', 5)), member(lines('b', 5)).subarray(0, -9)])],
];

describe('a compressed part', () => {
  it.each(WHOLE)('of %s is read completely (%s)', async (_, name, bytes, records) => {
    write(name, bytes, records);
    expect(await describePart(drop, name)).toMatchObject({ bytes: bytes.length, records });
    expect((await build()).lines).toBe(records);
  });

  it.each(BROKEN)('with %s is refused (%s)', async (_, name, bytes) => {
    write(name, bytes, 10_000);
    await expect(describePart(drop, name)).rejects.toThrow(name);
    await expect(build()).rejects.toMatchObject({ code: 'drop_part_truncated' });
  });

  it('is read like that in a thread, too', async () => {
    write('a.zst', Buffer.concat([good, zstd(lines('b', 7))]), 12);
    expect((await build({ workers: 1 })).lines).toBe(12);
    write('a.zst', Buffer.concat([good, Buffer.alloc(3 << 20, 'junk')]), 5);
    await expect(build({ workers: 1 })).rejects.toMatchObject({ code: 'drop_part_truncated' });
  });

  it('gives the same text however its bytes are split', async () => {
    const parts = [skippable(3), checked('one\n'), zstd(''), unsized('two\n'), skippable(0), zstd('three\n')];
    const frames = Buffer.concat(parts);
    for (const size of [1, 2, 3, 4, 5, 7, 11, 17, 1000]) {
      expect(await unpack('a.zst', frames, size)).toBe('one\ntwo\nthree\n');
      const members = Buffer.concat([member('one\n'), member(''), member('two\n'), Buffer.alloc(9)]);
      expect(await unpack('a.gz', members, size)).toBe('one\ntwo\n');
    }
  });

  it('is read with as many frames as lines, and refused with more', async () => {
    const frames = Array.from({ length: 5000 }, (_, i) => zstd(lines(`t${i}x`, 1)));
    writeFileSync(join(drop, 'a.ndjson.zst'), Buffer.concat(frames));
    const [part] = (await makeManifest(drop, FACTS)).files;
    expect(part?.records).toBe(5000);
    expect((await build()).lines).toBe(5000);
    const halves = Array.from({ length: 1100 }, (_, i) => [zstd(`{"domain":"t${i}`), zstd('.example"}\n')]).flat();
    const bytes = Buffer.concat(halves);
    write('a.zst', bytes, 1100);
    await expect(build()).rejects.toMatchObject({
      code: 'drop_too_large',
      message: expect.stringMatching(/a\.zst: it has more than 2124 frames/) as string,
    });
  });

  it('is read with any number of frames that unpack to nothing', async () => {
    const nothing = Array.from({ length: 100_000 }, (_, i) => (i % 2 === 0 ? zstd('') : skippable(0)));
    write('a.zst', Buffer.concat([...nothing, good]), 5);
    expect((await build()).lines).toBe(5);
  });

  it.each([
    [
      'a window of 256 MiB',
      Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x90, 0x01, 0, 0]),
      /a window of 256 MiB, at most 128/,
    ],
    ['a window of 144 MiB', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x89, 0x01, 0, 0]), /a window of 144 MiB/],
    [
      'content of 1 GiB in one segment',
      Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40]),
      /a window of 1024 MiB/,
    ],
    ['a dictionary', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x01, 0x58, 7, 0x01, 0, 0]), /needs a dictionary/],
  ])('with %s must be compressed again by the vendor', async (_, frame, why) => {
    write('a.zst', Buffer.concat([good, frame, Buffer.alloc(30)]), 5);
    await expect(build()).rejects.toMatchObject({
      code: 'drop_part_unsupported',
      message: expect.stringMatching(why) as string,
    });
  });

  it('is read with the largest window', async () => {
    const packed = zstd(lines('a', 5), { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_contentSizeFlag]: 0 });
    const widest = Buffer.concat([packed.subarray(0, 5), Buffer.from([0x88]), packed.subarray(6)]);
    write('a.zst', widest, 5);
    expect((await build()).lines).toBe(5);
  });

  it('of a few bytes that unpack to gigabytes is refused, whatever number of records it claims', async () => {
    const bomb = zstd(' '.repeat(64 << 20));
    expect(bomb.length * 4096).toBeLessThan(64 << 20);
    write('a.zst', bomb, bomb.length * 2048);
    await expect(build()).rejects.toMatchObject({ code: 'drop_too_large' });
  });
});

describe('a plain part', () => {
  it('may have lines of the maximum length', async () => {
    const long = Array.from({ length: 6 }, (_, i) => `{"domain":"t${i}.example","x":"`);
    writeFileSync(join(drop, 'a.ndjson'), long.map((start) => `${start.padEnd(65_534, 'x')}"}\n`).join(''));
    await makeManifest(drop, FACTS);
    expect(await build()).toMatchObject({ lines: 6, entries: 6, rejects: {} });
  });

  it('that grows while it is read is refused', async () => {
    writeFileSync(join(drop, 'a.ndjson'), lines('a', 30_000));
    await makeManifest(drop, FACTS);
    const path = join(drop, 'a.ndjson');
    const { size } = statSync(path);
    const onStart = (): void => writeFileSync(path, lines('b', 5), { flag: 'a' });
    await expect(build({ onStart })).rejects.toMatchObject({ code: 'drop_part_size' });
    expect(statSync(path).size).toBeGreaterThan(size);
  });
});

describe('the frames of a zstd file', () => {
  it('end where the frames were joined, however the bytes are split', () => {
    const frame = fc.oneof(
      fc
        .tuple(fc.string({ maxLength: 300 }), fc.constantFrom(zstd, checked, unsized))
        .map(([text, pack]) => pack(text)),
      fc.integer({ min: 0, max: 40 }).map((size) => skippable(size)),
      fc.constant(zstd(' '.repeat(300_000))),
    );
    fc.assert(
      fc.property(fc.array(frame, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 60 }), (all, size) => {
        const bytes = Buffer.concat(all);
        const frames = new ZstdFrames();
        const ends: number[] = [];
        for (let offset = 0; offset < bytes.length; offset += size) {
          const chunk = bytes.subarray(offset, offset + size);
          for (let at = 0; at < chunk.length; ) {
            at = frames.advance(chunk, at);
            if (frames.isBetweenFrames) ends.push(offset + at);
          }
        }
        let sum = 0;
        expect(ends).toEqual(
          all.map(({ length }) => {
            sum += length;
            return sum;
          }),
        );
      }),
    );
  });

  const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
  /** A block of a frame: raw (0), one byte repeated (1), or compressed (2). */
  const block = (kind: number, size: number, isLast: boolean): number[] => {
    const header = (size << 3) | (kind << 1) | (isLast ? 1 : 0);
    const body: number[] = new Array(kind === 1 ? 1 : size).fill(0xb5);
    return [header & 0xff, (header >> 8) & 0xff, header >> 16, ...body];
  };
  const endOf = (bytes: readonly number[]): number | undefined => {
    const frames = new ZstdFrames();
    const end = frames.advance(Uint8Array.from([...bytes, ...MAGIC, 0, 0, 0]), 0);
    return frames.isBetweenFrames ? end : undefined;
  };

  it('end after every kind of header, block and checksum in the format', () => {
    const blocks = [...block(0, 5, false), ...block(1, 70_000, false), ...block(2, 300, false), ...block(0, 0, true)];
    for (const [sizeFlag, sizeBytes] of [0, 2, 4, 8].entries())
      for (const [idFlag, idBytes] of [0, 1, 2, 4].entries())
        for (const single of [0, 1])
          for (const checksum of [0, 1]) {
            const contentSizeBytes = single === 0 ? sizeBytes : Math.max(1, sizeBytes);
            const frame = [
              ...MAGIC,
              (sizeFlag << 6) | (single << 5) | (checksum << 2) | idFlag,
              ...(single === 0 ? [0x2f] : []),
              ...new Array<number>(idBytes).fill(0),
              ...new Array<number>(contentSizeBytes).fill(0).fill(0x2f, 0, Math.min(3, contentSizeBytes)),
              ...blocks,
              ...new Array<number>(checksum * 4).fill(0xfd),
            ];
            expect([sizeFlag, idFlag, single, checksum, endOf(frame)]).toEqual([
              sizeFlag,
              idFlag,
              single,
              checksum,
              frame.length,
            ]);
          }
  });

  it('are passed to the decompressor unchanged, except those that unpack to nothing', () => {
    const frame = fc.oneof(
      fc
        .tuple(fc.string({ maxLength: 300 }), fc.constantFrom(zstd, checked, unsized))
        .map(([text, pack]) => ({ bytes: pack(text), isFed: text !== '' })),
      fc.integer({ min: 0, max: 40 }).map((size) => ({ bytes: skippable(size), isFed: false })),
    );
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), fc.integer({ min: 1, max: 60 }), (all, size) => {
        const bytes = Buffer.concat(all.map((one) => one.bytes));
        const frames = new ZstdFrames();
        const fed: Buffer[] = [Buffer.alloc(0)];
        for (let offset = 0; offset < bytes.length; offset += size) {
          const chunk = bytes.subarray(offset, offset + size);
          for (let at = 0; at < chunk.length; ) {
            at = frames.advance(chunk, at);
            fed.push(Buffer.concat([fed.pop()!, ...frames.pieces]));
            if (frames.isBetweenFrames && fed.at(-1)!.length > 0) fed.push(Buffer.alloc(0));
          }
        }
        const expected = all.filter(({ isFed }) => isFed).map((one) => one.bytes);
        expect(fed.slice(0, -1)).toEqual(expected);
        expect(frames.count).toBe(expected.length);
      }),
    );
  });

  it('that are empty are skipped to the last byte', () => {
    const empty = checked('');
    expect(() => new ZstdFrames().advance(empty, 0)).not.toThrow();
    empty[empty.length - 1]! ^= 1;
    expect(() => new ZstdFrames().advance(empty, 0)).toThrow(/the checksum of an empty zstd frame is wrong/);
    // A frame that claims content but has none is left to the decompressor.
    const liar = Buffer.from([...MAGIC, 0x20, 7, ...block(0, 0, true)]);
    const frames = new ZstdFrames();
    frames.advance(liar, 0);
    expect(frames).toMatchObject({ count: 1, pieces: [liar] });
  });

  it('do not end before the end of a skippable frame of 4 GB', () => {
    const frames = new ZstdFrames();
    const size = 0xffff_fff0;
    const header = Buffer.alloc(8);
    header.writeUInt32LE(0x184d_2a5f, 0);
    header.writeUInt32LE(size, 4);
    frames.advance(header, 0);
    const chunk = new Uint8Array(1 << 20);
    for (let left = size; left > 0; left -= chunk.length) {
      expect(frames.isBetweenFrames).toBe(false);
      const part = chunk.subarray(0, Math.min(left, chunk.length));
      expect(frames.advance(part, 0)).toBe(part.length);
    }
    expect(frames.isBetweenFrames).toBe(true);
  });

  it('are not recognized if the first bytes are not those of a frame, or a block has an unknown kind', () => {
    for (const magic of [0x184d_2a4f, 0x184d_2a60, 0xfd2f_b527, 0xfd2f_b529, 0, 0xffff_ffff]) {
      const bytes = Buffer.alloc(16);
      bytes.writeUInt32LE(magic, 0);
      expect(() => new ZstdFrames().advance(bytes, 0)).toThrow(/no zstd frame/);
    }
    expect(() => endOf([...MAGIC, 0x20, 7, ...block(3, 1, true)])).toThrow(/no known kind/);
  });
});
