/** Encodes and decodes a bucket of the directory. */
import { BUCKET, BUCKET_SIZE_BYTES, BUCKET_SIZE_WORDS } from './layout.ts';

const BASE_WORD = BUCKET.base.offset / 4;
const BASE_HIGH_BYTE = BUCKET.base.offset + 4;

/** True if the bucket at word `at` has this checksum (see salt.ts). `words` is a piece of the directory as 32-bit words. */
export function bucketIsIntact(words: Uint32Array, at: number, checksum: number): boolean {
  const folded =
    words[at]! ^
    words[at + 1]! ^
    words[at + 2]! ^
    words[at + 3]! ^
    words[at + 4]! ^
    words[at + 5]! ^
    words[at + 6]! ^
    words[at + 7]! ^
    words[at + 8]! ^
    words[at + 9]! ^
    words[at + 10]! ^
    words[at + 11]! ^
    words[at + 12]! ^
    words[at + 13]! ^
    words[at + 14]! ^
    words[at + 15]!;
  return ((folded ^ (folded >>> 16) ^ checksum) & 0xffff) === 0;
}

/**
 * Returns a bit mask of the slots that may have a fingerprint, for the bucket at word `at`. Slot 4 w + b is bit 8 b + w. The mask contains all
 * slots that have the fingerprint, and sometimes a slot above one that has it. It avoids a loop: it is nearly always 0 for a miss and has
 * one bit for a hit, so the processor has no branch to mispredict.
 */
export function slotsWithFingerprint(words: Uint32Array, at: number, fingerprint: number): number {
  const pattern = Math.imul(fingerprint, 0x01010101);
  return (
    (zeroBytes(words[at]! ^ pattern) >>> 7) |
    (zeroBytes(words[at + 1]! ^ pattern) >>> 6) |
    (zeroBytes(words[at + 2]! ^ pattern) >>> 5) |
    (zeroBytes(words[at + 3]! ^ pattern) >>> 4) |
    (zeroBytes(words[at + 4]! ^ pattern) >>> 3) |
    (zeroBytes(words[at + 5]! ^ pattern) >>> 2) |
    (zeroBytes(words[at + 6]! ^ pattern) >>> 1)
  );
}

export function slotOfLowestBit(slots: number): number {
  const bit = 31 - Math.clz32(slots & -slots);
  return (bit & 7) * 4 + (bit >>> 3);
}

/** Returns the highest bit of each byte that is zero, and sometimes of a byte above such a byte. */
function zeroBytes(word: number): number {
  return (word - 0x01010101) & ~word & 0x80808080;
}

/** Like `readBucketBase`, for the directory as words and as bytes. */
export function bucketBase(words: Uint32Array, directory: Uint8Array, bucket: number): number {
  return (
    words[bucket * BUCKET_SIZE_WORDS + BASE_WORD]! +
    directory[bucket * BUCKET_SIZE_BYTES + BASE_HIGH_BYTE]! * 0x1_0000_0000
  );
}

/** Returns the offset in the payload at which the records of the bucket at `at` begin. */
export function readBucketBase(buckets: Uint8Array, at: number): number {
  const base = at + BUCKET.base.offset;
  return (
    buckets[base]! +
    buckets[base + 1]! * 0x100 +
    buckets[base + 2]! * 0x1_0000 +
    buckets[base + 3]! * 0x100_0000 +
    buckets[base + 4]! * 0x1_0000_0000
  );
}

/** Sets the base of the bucket at `at`; the counterpart of `readBucketBase`. */
export function writeBucketBase(buckets: Uint8Array, at: number, base: number): void {
  let rest = base;
  for (let i = 0; i < BUCKET.base.size; i++) {
    buckets[at + BUCKET.base.offset + i] = rest % 0x100;
    rest = Math.floor(rest / 0x100);
  }
}

/** Sets the checksum field of the bucket at `at` so that it has this checksum (see salt.ts). All other fields must be set. */
export function sealBucket(buckets: Uint8Array, at: number, checksum: number): void {
  let low = checksum & 0xff;
  let high = checksum >>> 8;
  for (let i = 0; i < BUCKET.checksum.offset; i += 2) {
    low ^= buckets[at + i]!;
    high ^= buckets[at + i + 1]!;
  }
  buckets[at + BUCKET.checksum.offset] = low;
  buckets[at + BUCKET.checksum.offset + 1] = high;
}

// The reader reads fingerprints and base as whole words.
if (BUCKET.end.offset !== BUCKET_SIZE_BYTES || BUCKET.fingerprints.offset !== 0 || BUCKET.base.offset % 4 !== 0) {
  throw new Error('the fields of a bucket are not where the reader looks for them');
}
