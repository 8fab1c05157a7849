/**
 * The header. `decodeHeader` reads its bytes as a `RawHeader`, which is not trusted. `validateHeader` checks it and returns a `Header`, whose
 * sections follow each other within the file. The reader computes only with checked numbers. `layout.ts` defines the offsets of the fields.
 */
import { PagegateError } from '../../errors.ts';
import { xxh64 } from './checksum.ts';
import {
  alignSection,
  BLOCK_CHECKSUM_SIZE_BYTES,
  BLOCK_SIZE_BYTES,
  BUCKET_SIZE_BYTES,
  BUCKETS_MAX,
  FORMAT_MAJOR,
  FORMAT_MINOR,
  HEADER,
  HEADER_SIZE_BYTES,
  MAGIC,
  PAYLOAD_MAX_BYTES,
  RECORDS_PER_BUCKET_MAX,
  SECTION_ENTRY,
  SECTIONS,
  SEED_A,
  SEED_B,
  type SectionName,
  TABLES_MAX_BYTES,
} from './layout.ts';

/** A section: offset and size in bytes, and the XXH64 of its bytes (0 for sections that the block checksums cover). */
export interface Section {
  readonly offset: number;
  readonly size: number;
  readonly checksum: bigint;
}

interface HeaderFields {
  readonly major: number;
  readonly minor: number;
  readonly fileSizeBytes: number;
  readonly recordCount: number;
  readonly bucketCount: number;
  readonly sections: Readonly<Record<SectionName, Section>>;
}

/** The fields as they are in the file, not checked. */
export interface RawHeader extends HeaderFields {
  readonly headerSize: number;
  readonly seedA: number;
  readonly seedB: number;
  readonly blockSize: number;
  readonly reserved: Uint8Array;
  readonly checksum: bigint;
  readonly computedChecksum: bigint;
}

declare const validated: unique symbol;

/** A header that `validateHeader` has checked. */
export interface Header extends HeaderFields {
  readonly [validated]: true;
}

/** Encodes a header; the counterpart of `decodeHeader`. */
export function encodeHeader(fields: HeaderFields): Uint8Array {
  const bytes = new Uint8Array(HEADER_SIZE_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC, HEADER.magic.offset);
  view.setUint16(HEADER.major.offset, fields.major, true);
  view.setUint16(HEADER.minor.offset, fields.minor, true);
  view.setUint32(HEADER.headerSize.offset, HEADER_SIZE_BYTES, true);
  view.setBigUint64(HEADER.fileSize.offset, BigInt(fields.fileSizeBytes), true);
  view.setBigUint64(HEADER.recordCount.offset, BigInt(fields.recordCount), true);
  view.setUint32(HEADER.bucketCount.offset, fields.bucketCount, true);
  view.setUint32(HEADER.seedA.offset, SEED_A, true);
  view.setUint32(HEADER.seedB.offset, SEED_B, true);
  view.setUint32(HEADER.blockSize.offset, BLOCK_SIZE_BYTES, true);
  SECTIONS.forEach((name, i) => {
    const at = HEADER.sections.offset + i * SECTION_ENTRY.end.offset;
    view.setBigUint64(at + SECTION_ENTRY.offset.offset, BigInt(fields.sections[name].offset), true);
    view.setBigUint64(at + SECTION_ENTRY.size.offset, BigInt(fields.sections[name].size), true);
    view.setBigUint64(at + SECTION_ENTRY.checksum.offset, fields.sections[name].checksum, true);
  });
  view.setBigUint64(HEADER.checksum.offset, xxh64(bytes.subarray(0, HEADER.checksum.offset)), true);
  return bytes;
}

/** Decodes the fields without checking them. `bytes` must have at least the size of the header. */
export function decodeHeader(bytes: Uint8Array): RawHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_SIZE_BYTES);
  const sections = Object.fromEntries(
    SECTIONS.map((name, i) => {
      const at = HEADER.sections.offset + i * SECTION_ENTRY.end.offset;
      const section: Section = {
        offset: Number(view.getBigUint64(at + SECTION_ENTRY.offset.offset, true)),
        size: Number(view.getBigUint64(at + SECTION_ENTRY.size.offset, true)),
        checksum: view.getBigUint64(at + SECTION_ENTRY.checksum.offset, true),
      };
      return [name, section];
    }),
  ) as Record<SectionName, Section>;
  return {
    major: view.getUint16(HEADER.major.offset, true),
    minor: view.getUint16(HEADER.minor.offset, true),
    headerSize: view.getUint32(HEADER.headerSize.offset, true),
    fileSizeBytes: Number(view.getBigUint64(HEADER.fileSize.offset, true)),
    recordCount: Number(view.getBigUint64(HEADER.recordCount.offset, true)),
    bucketCount: view.getUint32(HEADER.bucketCount.offset, true),
    seedA: view.getUint32(HEADER.seedA.offset, true),
    seedB: view.getUint32(HEADER.seedB.offset, true),
    blockSize: view.getUint32(HEADER.blockSize.offset, true),
    sections,
    reserved: bytes.slice(HEADER.reserved.offset, HEADER.reserved.offset + HEADER.reserved.size),
    checksum: view.getBigUint64(HEADER.checksum.offset, true),
    computedChecksum: xxh64(bytes.subarray(0, HEADER.checksum.offset)),
  };
}

/** Returns the size of the blocks section: a checksum for each block of the directory, then for each block of the payload. */
export function blocksSize(directorySize: number, payloadSize: number): number {
  const blocks = Math.ceil(directorySize / BLOCK_SIZE_BYTES) + Math.ceil(payloadSize / BLOCK_SIZE_BYTES);
  return blocks * BLOCK_CHECKSUM_SIZE_BYTES;
}

/**
 * Checks a header, also against the size of its file.
 *
 * @throws PagegateError index_newer_version, index_older_version, index_corrupt
 */
export function validateHeader(raw: RawHeader, path: string, fileSizeBytes: number): Header {
  // Check the version before the checksum: another major version may compute the checksum differently.
  if (raw.major > FORMAT_MAJOR) {
    throw new PagegateError(
      'index_newer_version',
      `${path}: the file is version ${raw.major}.${raw.minor}, this program knows ${FORMAT_MAJOR}.${FORMAT_MINOR}.`,
      { path, found: raw.major, known: FORMAT_MAJOR },
    );
  }
  if (raw.major < FORMAT_MAJOR) {
    throw new PagegateError(
      'index_older_version',
      `${path}: the file is version ${raw.major}.${raw.minor}, this program reads ${FORMAT_MAJOR}.${FORMAT_MINOR}.`,
      { path, found: raw.major, known: FORMAT_MAJOR },
    );
  }
  const check = (what: string, found: number | bigint, expected: number | bigint): void => {
    if (found !== expected) throw indexCorrupt(path, 'header', `${what} is ${found}, expected ${expected}`);
  };
  check('the checksum', raw.checksum, raw.computedChecksum);
  check('the header size', raw.headerSize, HEADER_SIZE_BYTES);
  check('the file size', fileSizeBytes, raw.fileSizeBytes);
  check('the first seed', raw.seedA, SEED_A);
  check('the second seed', raw.seedB, SEED_B);
  check('the block size', raw.blockSize, BLOCK_SIZE_BYTES);
  if (raw.reserved.some((byte) => byte !== 0)) throw indexCorrupt(path, 'header', 'reserved bytes are not zero');
  if (raw.bucketCount < 1 || raw.bucketCount > BUCKETS_MAX)
    throw indexCorrupt(path, 'header', `there are ${raw.bucketCount} buckets`);
  const { dictionary, directory, payload, blocks, metadata } = raw.sections;
  const mostRecords = raw.bucketCount * RECORDS_PER_BUCKET_MAX;
  if (raw.recordCount > mostRecords)
    throw indexCorrupt(path, 'header', `there are ${raw.recordCount} records, the buckets hold at most ${mostRecords}`);
  check('the size of the directory', directory.size, raw.bucketCount * BUCKET_SIZE_BYTES);
  const checkSize = (name: string, size: number, most: number): void => {
    if (size > most) throw indexCorrupt(path, 'header', `the ${name} has ${size} bytes, at most ${most} are possible`);
  };
  checkSize('dictionary', dictionary.size, TABLES_MAX_BYTES);
  checkSize('payload', payload.size, PAYLOAD_MAX_BYTES);
  checkSize('metadata', metadata.size, TABLES_MAX_BYTES);
  check('the size of the blocks', blocks.size, blocksSize(directory.size, payload.size));
  let end = HEADER_SIZE_BYTES;
  for (const name of SECTIONS) {
    check(`the offset of the section ${name}`, raw.sections[name].offset, alignSection(end));
    end = raw.sections[name].offset + raw.sections[name].size;
  }
  check('the end of the last section', end, raw.fileSizeBytes);
  return raw as unknown as Header;
}

/** Returns an index_corrupt error that names the part of the file. */
export function indexCorrupt(path: string, where: string, what: string): PagegateError {
  return new PagegateError('index_corrupt', `${path}: in the ${where}, ${what}.`, { path, where });
}
