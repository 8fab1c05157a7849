/**
 * The salt binds every bucket and every record to its file and its place. It takes no space, because it is part of their checksums. The
 * checksums thus do not match for a bucket of another file, a record in a wrong slot, or records with the dictionary of another revision.
 */
import { xxh64 } from './checksum.ts';

/** Computes the salt of a file, a 32-bit integer, from the checksums of its dictionary and its metadata. */
export function saltOf(dictionaryChecksum: bigint, metadataChecksum: bigint): number {
  const bytes = new DataView(new ArrayBuffer(16));
  bytes.setBigUint64(0, dictionaryChecksum, true);
  bytes.setBigUint64(8, metadataChecksum, true);
  return Number(BigInt.asIntN(32, xxh64(new Uint8Array(bytes.buffer))));
}

/**
 * Returns the required exclusive or of a bucket's 32 half-words. It is never 0, so that zeros, or any other repeated bytes, are not taken
 * for an empty bucket.
 */
export function bucketChecksum(salt: number, bucket: number): number {
  const sum = (salt ^ bucket) & 0xffff;
  return sum | (((sum - 1) >> 16) & 0xffff);
}

/** Returns the seed of a record's CRC-8, for its bucket and fingerprint. For the overflow table of a bucket, the fingerprint is 0. */
export function recordSeed(salt: number, bucket: number, fingerprint: number): number {
  return ((salt >>> 16) ^ bucket ^ (bucket >>> 8) ^ (bucket >>> 16) ^ fingerprint) & 0xff;
}
