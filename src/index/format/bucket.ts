/** A bucket of the directory, encoded and decoded side by side. */
import { BUCKET, BUCKET_CHECK, BUCKET_SIZE_BYTES, BUCKET_SIZE_WORDS } from './layout.ts';

const BASE_WORD = BUCKET.base.offset / 4;
const BASE_HIGH_BYTE = BUCKET.base.offset + 4;

/** True when the bucket's checksum is right. `words` is the directory as 32-bit words. */
export function bucketIsIntact(words: Uint32Array, bucket: number): boolean {
  const i = bucket * BUCKET_SIZE_WORDS;
  const folded =
    words[i]! ^
    words[i + 1]! ^
    words[i + 2]! ^
    words[i + 3]! ^
    words[i + 4]! ^
    words[i + 5]! ^
    words[i + 6]! ^
    words[i + 7]! ^
    words[i + 8]! ^
    words[i + 9]! ^
    words[i + 10]! ^
    words[i + 11]! ^
    words[i + 12]! ^
    words[i + 13]! ^
    words[i + 14]! ^
    words[i + 15]!;
  return ((folded ^ (folded >>> 16) ^ bucket ^ BUCKET_CHECK) & 0xffff) === 0;
}

/**
 * The slots of a bucket that may have a fingerprint, as bits: slot 4 w + b is bit 8 b + w. All that have it are among them; a slot above one that
 * has it may be as well. One number instead of a loop: nearly always it is 0 for a miss and has one bit for a hit, which leaves
 * the machine no branch to guess.
 */
export function slotsWithFingerprint(words: Uint32Array, bucket: number, fingerprint: number): number {
  const i = bucket * BUCKET_SIZE_WORDS;
  const pattern = Math.imul(fingerprint, 0x01010101);
  return (
    (zeroBytes(words[i]! ^ pattern) >>> 7) |
    (zeroBytes(words[i + 1]! ^ pattern) >>> 6) |
    (zeroBytes(words[i + 2]! ^ pattern) >>> 5) |
    (zeroBytes(words[i + 3]! ^ pattern) >>> 4) |
    (zeroBytes(words[i + 4]! ^ pattern) >>> 3) |
    (zeroBytes(words[i + 5]! ^ pattern) >>> 2) |
    (zeroBytes(words[i + 6]! ^ pattern) >>> 1)
  );
}

/** The slot of the lowest bit of `slotsWithFingerprint`. */
export function slotOfLowestBit(slots: number): number {
  const bit = 31 - Math.clz32(slots & -slots);
  return (bit & 7) * 4 + (bit >>> 3);
}

/** The highest bit of each byte that is zero, and sometimes of one above such a byte. */
function zeroBytes(word: number): number {
  return (word - 0x01010101) & ~word & 0x80808080;
}

/** The same as `readBucketBase`, from the whole directory as words and as bytes. */
export function bucketBase(words: Uint32Array, directory: Uint8Array, bucket: number): number {
  return (
    words[bucket * BUCKET_SIZE_WORDS + BASE_WORD]! +
    directory[bucket * BUCKET_SIZE_BYTES + BASE_HIGH_BYTE]! * 0x1_0000_0000
  );
}

/** Where the bucket's records begin, in bytes from the beginning of the payload. */
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

/** Sets the base and then the checksum of the bucket at `at`, whose number in the whole directory is `bucket`. */
export function sealBucket(buckets: Uint8Array, at: number, bucket: number, base: number): void {
  writeBucketBase(buckets, at, base);
  let low = (BUCKET_CHECK ^ bucket) & 0xff;
  let high = ((BUCKET_CHECK ^ bucket) >>> 8) & 0xff;
  for (let i = 0; i < BUCKET.check.offset; i += 2) {
    low ^= buckets[at + i]!;
    high ^= buckets[at + i + 1]!;
  }
  buckets[at + BUCKET.check.offset] = low;
  buckets[at + BUCKET.check.offset + 1] = high;
}

// The reader takes fingerprints and base a word at a time.
if (BUCKET.end.offset !== BUCKET_SIZE_BYTES || BUCKET.fingerprints.offset !== 0 || BUCKET.base.offset % 4 !== 0) {
  throw new Error('the fields of a bucket are not where the reader looks for them');
}
