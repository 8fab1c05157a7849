import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import xxhash from 'xxhash-wasm';
import { BlockChecksums, crc8, xxh64 } from '../../src/index/format/checksum.ts';
import { HashedKey, xxh32 } from '../../src/index/format/key-hash.ts';
import { bucketOfHash, SEED_A, SEED_B } from '../../src/index/format/layout.ts';

const reference = await xxhash();

describe('xxh32', () => {
  it('matches the reference, for all lengths, seeds and offsets', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(0xffffffff), fc.nat(5), (bytes, seed, start) => {
        const padded = Uint8Array.from([...new Uint8Array(start).fill(7), ...bytes, 9]);
        expect(xxh32(padded, start, start + bytes.length, seed)).toBe(reference.h32Raw(bytes, seed));
      }),
    );
    expect(xxh32(new Uint8Array(0), 0, 0, 0)).toBe(0x02cc5d05);
  });

  it('is the hash function of keys', () => {
    const hashed = new HashedKey();
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 253, unit: fc.constantFrom(...'abcxyz019.-_') }), (key) => {
        expect(hashed.set(key)).toBe(true);
        expect(hashed.hashA()).toBe(reference.h32Raw(Buffer.from(key), SEED_A));
        expect(hashed.hashB()).toBe(reference.h32Raw(Buffer.from(key), SEED_B));
      }),
    );
    expect(hashed.set('')).toBe(false);
    expect(hashed.set('x'.repeat(254))).toBe(false);
  });
});

describe('checksums', () => {
  it('are CRC-8/AUTOSAR and XXH64', () => {
    expect(crc8(Buffer.from('123456789'), 0, 9, 0)).toBe(0xdf);
    expect(crc8(Buffer.from('x123456789y'), 1, 10, 0)).toBe(0xdf);
    expect(xxh64(new Uint8Array(0))).toBe(0xef46db3751d8e999n);
  });

  it('of blocks are those of the whole, however the stream is split', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 12 }), (chunks) => {
        const blocks = new BlockChecksums(16);
        for (const chunk of chunks) blocks.update(chunk);
        const all = Buffer.concat(chunks);
        const expected = Array.from({ length: Math.ceil(all.length / 16) }, (_, i) =>
          xxh64(all.subarray(16 * i, 16 * i + 16)),
        );
        expect(blocks.finish()).toEqual(expected);
      }),
    );
  });
});

describe('bucketOfHash', () => {
  it('is exact even if a double would not be', () => {
    fc.assert(
      fc.property(fc.nat(0xffffffff), fc.integer({ min: 1, max: 2 ** 25 - 256 }), (hash, bucketCount) => {
        expect(bucketOfHash(hash, bucketCount)).toBe(Number((BigInt(hash) * BigInt(bucketCount)) >> 32n));
      }),
    );
    expect(bucketOfHash(0xffffffff, 2 ** 25 - 256)).toBe(2 ** 25 - 257);
  });

  it('gives each value of the top 8 bits its own buckets if their number is a multiple of 256', () => {
    for (const bucketCount of [256, 2_352_896]) {
      for (const part of [0, 1, 127, 255]) {
        expect(bucketOfHash((part << 24) >>> 0, bucketCount)).toBe((part * bucketCount) / 256);
        expect(bucketOfHash(((part << 24) | 0xffffff) >>> 0, bucketCount)).toBe(((part + 1) * bucketCount) / 256 - 1);
      }
    }
  });
});
