/**
 * What ties every bucket and every record to its own file and its own place, at no byte: their checksums are computed with it. A bucket of
 * another file, a record in another one's slot, or records whose dictionary is another revision's, do not fit.
 */
import { xxh64 } from './checksum.ts';

/** The salt of a file, a 32-bit integer, from the checksums of its dictionary and of its metadata. */
export function saltOf(dictionaryChecksum: bigint, metadataChecksum: bigint): number {
  const bytes = new DataView(new ArrayBuffer(16));
  bytes.setBigUint64(0, dictionaryChecksum, true);
  bytes.setBigUint64(8, metadataChecksum, true);
  return Number(BigInt.asIntN(32, xxh64(new Uint8Array(bytes.buffer))));
}

/**
 * What a bucket's 32 half-words must give, exclusive-ored: never 0, so that zeros, and whatever else repeats, are not taken for an empty
 * bucket.
 */
export function bucketChecksum(salt: number, bucket: number): number {
  const sum = (salt ^ bucket) & 0xffff;
  return sum | (((sum - 1) >> 16) & 0xffff);
}

/** What the CRC-8 of a record begins with, by its bucket and its slot's fingerprint; of a bucket's overflow table with fingerprint 0. */
export function recordSeed(salt: number, bucket: number, fingerprint: number): number {
  return ((salt >>> 16) ^ bucket ^ (bucket >>> 8) ^ (bucket >>> 16) ^ fingerprint) & 0xff;
}
