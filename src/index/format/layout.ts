/**
 * The byte layout of the index, defined nowhere else in the code. FORMAT.md describes it in words, and a test compares the two. Each offset
 * is derived from the previous field. All integers in the file are little-endian.
 */
import { LIMITS } from '../../limits.ts';

/** The first eight bytes: a byte with the high bit set, the name, and line ends, which a transfer as text would change. */
export const MAGIC = Object.freeze([0x89, 0x50, 0x47, 0x58, 0x0d, 0x0a, 0x1a, 0x0a] as const);
/** Increased when an old reader would misread the file. */
export const FORMAT_MAJOR = 2;
/** Increased when something is added that an old reader may ignore. */
export const FORMAT_MINOR = 0;

/** A named range of bytes. */
export interface Field {
  readonly offset: number;
  readonly size: number;
}

/** Assigns consecutive offsets to fields, from 0. */
function sequence<K extends string>(sizes: Record<K, number>): Readonly<Record<K, Field>> & { readonly end: Field } {
  const fields: Record<string, Field> = {};
  let offset = 0;
  for (const [name, size] of Object.entries<number>(sizes)) {
    fields[name] = { offset, size };
    offset += size;
  }
  fields['end'] = { offset, size: 0 };
  return fields as Readonly<Record<K, Field>> & { readonly end: Field };
}

/** The sections, in their order in the file and in the section table of the header. */
export const SECTIONS = ['dictionary', 'directory', 'payload', 'blocks', 'metadata'] as const;
export type SectionName = (typeof SECTIONS)[number];

/** One entry of the header's section table. */
export const SECTION_ENTRY = sequence({ offset: 8, size: 8, checksum: 8 });

export const HEADER_SIZE_BYTES = 256;
const CHECKSUM_SIZE_BYTES = 8;
const HEADER_FIELDS_SIZE_BYTES = 8 + 2 + 2 + 4 + 8 + 8 + 4 + 4 + 4 + 4 + SECTIONS.length * SECTION_ENTRY.end.offset;

/** The header, at offset 0. */
export const HEADER = sequence({
  magic: 8,
  major: 2,
  minor: 2,
  headerSize: 4,
  fileSize: 8,
  recordCount: 8,
  bucketCount: 4,
  seedA: 4,
  seedB: 4,
  blockSize: 4,
  sections: SECTIONS.length * SECTION_ENTRY.end.offset,
  reserved: HEADER_SIZE_BYTES - CHECKSUM_SIZE_BYTES - HEADER_FIELDS_SIZE_BYTES,
  checksum: CHECKSUM_SIZE_BYTES,
});

/** Sections begin at a multiple of this. The bytes of the gap before a section are zero. */
export const SECTION_ALIGNMENT_BYTES = 64;
/** The directory and the payload have a checksum for each block of this size, so that damage can be located. */
export const BLOCK_SIZE_BYTES = 1 << 20;
export const BLOCK_CHECKSUM_SIZE_BYTES = 8;

/** Number of slots of a bucket: as many as fit into a cache line together with base, count and checksum. */
export const SLOTS_PER_BUCKET = 28;
export const BUCKET_SIZE_BYTES = 64;
export const BUCKET_SIZE_WORDS = BUCKET_SIZE_BYTES / 4;

/** A bucket of the directory: one cache line for about 17 records. */
export const BUCKET = sequence({
  fingerprints: SLOTS_PER_BUCKET,
  lengths: SLOTS_PER_BUCKET,
  base: 5,
  count: 1,
  checksum: 2,
});

/** Maximum number of records in a bucket, including those without a slot. */
export const RECORDS_PER_BUCKET_MAX = 255;
/** Planned number of records for each bucket. */
export const RECORDS_PER_BUCKET = 17;
/** From this number on, the number of buckets is a multiple of it, so that a build can be split by the first 8 hash bits. */
export const BUCKET_COUNT_MULTIPLE = 256;
/** With this many buckets, an offset in the directory still fits into 31 bits. With 17 records per bucket, that is 570 million records. */
export const BUCKETS_MAX = 2 ** 25 - BUCKET_COUNT_MULTIPLE;
/** Maximum number of records of an index. */
export const RECORDS_MAX: number = BUCKETS_MAX * RECORDS_PER_BUCKET;
/** The range that the five bytes of a base can address. */
export const PAYLOAD_MAX_BYTES = 2 ** 40;
/**
 * Maximum size of the dictionary and of the metadata: each is read completely when an index is opened. A dictionary as we write it has at
 * most 3 MB, the metadata 40 KB.
 */
export const TABLES_MAX_BYTES = 2 ** 24;

export const SEED_A = 0x9747b28c;
export const SEED_B = 0x3c6ef372;

/** Bit fields of the 16-bit word that follows the domain in a record. */
export const FACTS = {
  rankMask: 0x3ff,
  rankAbsent: 0x3ff,
  globalRankShift: 10,
  globalRankMask: 7,
  globalRankMaxBytes: 4,
  originShift: 13,
  originMask: 7,
} as const;

/** Meanings of the ordinal that begins a page's URL in a record. */
export const URL_CODE = { pathLiteral: 0, fullLiteral: 1, otherOrigin: 2, firstTemplate: 3 } as const;
/** An ordinal takes one byte below `ORDINAL_WIDE`, and two bytes from there on. */
export const ORDINAL_WIDE = 224;
export const ORDINAL_MAX = ORDINAL_WIDE + (256 - ORDINAL_WIDE) * 256 - 1;
/** Codes for filtering sets: the empty set, a literal list, a set in the dictionary. */
export const SET_CODE = { none: 0, literal: 1, firstTable: 2 } as const;
/** Symbol codes: an escaped byte follows; the record's domain; the first symbol of the table. */
export const SYMBOL_CODE = { escape: 0, domain: 1, first: 2 } as const;
export const SYMBOL_MAX_BYTES = 8;
/** A record's own origin is one of this many first origins of the dictionary. */
export const RECORD_ORIGINS = 8;
export const ORIGINS_MAX = 255;
/** Origin of a path template in the dictionary that uses the origin of the record. */
export const INHERITED_ORIGIN = 255;
export const PAGE_TYPES_MAX = 32;
export const DOMAIN_MAX_BYTES = LIMITS.domainBytes.value;
export const URL_MAX_BYTES = LIMITS.pageUrlBytes.value;
/** Upper bound for `max_answer_size` in the metadata: more than 32 URLs and all names together can take. */
export const ANSWER_MAX_BYTES: number = 2 ** 20;

const LENGTH_EXACT_CODES = 192;
const RECORD_MIN_BYTES = 8;

/** Stored size of a record by length code: every size from 8 to 199 bytes, then in steps of a ninth. */
export const SIZE_OF_LENGTH_CODE: Uint32Array = (() => {
  const sizes = new Uint32Array(256);
  for (let code = 0; code < LENGTH_EXACT_CODES; code++) sizes[code] = RECORD_MIN_BYTES + code;
  for (let code = LENGTH_EXACT_CODES; code < 256; code++) {
    const previous = sizes[code - 1]!;
    sizes[code] = previous + Math.floor(previous / 9);
  }
  return sizes;
})();

export const RECORD_MAX_BYTES = SIZE_OF_LENGTH_CODE[255]!;

/** Returns the smallest length code whose size is at least `sizeBytes`; -1 if there is none. */
export function lengthCodeOf(sizeBytes: number): number {
  if (sizeBytes <= RECORD_MIN_BYTES) return 0;
  const exact = sizeBytes - RECORD_MIN_BYTES;
  if (exact < LENGTH_EXACT_CODES) return exact;
  for (let code = LENGTH_EXACT_CODES; code < 256; code++) if (SIZE_OF_LENGTH_CODE[code]! >= sizeBytes) return code;
  return -1;
}

/** Returns the number of buckets for a number of records. */
export function planBucketCount(recordCount: number): number {
  const wanted = Math.max(1, Math.ceil(recordCount / RECORDS_PER_BUCKET));
  return wanted < BUCKET_COUNT_MULTIPLE ? wanted : Math.ceil(wanted / BUCKET_COUNT_MULTIPLE) * BUCKET_COUNT_MULTIPLE;
}

/**
 * Returns the bucket of a hash: `floor(hashA × bucketCount / 2^32)`. Computed with 32-bit integers for speed, because a lookup waits for it:
 * it multiplies 16-bit halves of the hash by 12-bit halves of the count, lowest part first. The bits that a shift drops cannot affect the result.
 */
export function bucketOfHash(hashA: number, bucketCount: number): number {
  const high = hashA >>> 16;
  const low = hashA & 0xffff;
  const countHigh = bucketCount >>> 12;
  const countLow = bucketCount & 0xfff;
  const twelfth = (Math.imul(low, countLow) >>> 12) + Math.imul(low, countHigh);
  const sixteenth = (twelfth >>> 4) + Math.imul(high, countLow);
  return ((sixteenth >>> 12) + Math.imul(high, countHigh)) >>> 4;
}

/** Rounds an offset up to the alignment of sections. */
export function alignSection(offset: number): number {
  return Math.ceil(offset / SECTION_ALIGNMENT_BYTES) * SECTION_ALIGNMENT_BYTES;
}
