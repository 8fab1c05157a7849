/** Beyond 4 GiB: a sparse file with the size of 400 million records, with real records at its start and end. */
import { chmodSync, closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readBucketBase, sealBucket, writeBucketBase } from '../../src/index/format/bucket.ts';
import { xxh64 } from '../../src/index/format/checksum.ts';
import { blocksSize, decodeHeader, encodeHeader } from '../../src/index/format/header.ts';
import { alignSection, BUCKET_SIZE_BYTES } from '../../src/index/format/layout.ts';
import { bucketChecksum, saltOf } from '../../src/index/format/salt.ts';
import { NO_RECORD, openIndex } from '../../src/index/read.ts';
import { entryOf, smallNames, tinyIndexBytes, withTempDirectory } from '../support/tiny-index.ts';

const GIB = 2 ** 30;
const entries = Array.from({ length: 12 }, (_, i) =>
  entryOf(`far-${i}.example`, { login: `https://far-${i}.example/login` }, {}, smallNames),
);

/** Writes an index of two buckets with a hole of `holeBytes` between their records. */
function writeWithHole(path: string, holeBytes: number): void {
  const bytes = tinyIndexBytes(entries, { names: smallNames, bucketCount: 2 });
  const header = decodeHeader(bytes);
  const { dictionary, directory, payload, metadata } = header.sections;
  const second = directory.offset + BUCKET_SIZE_BYTES;
  const split = readBucketBase(bytes, second);
  expect(split).toBeGreaterThan(0);
  expect(split).toBeLessThan(payload.size);
  writeBucketBase(bytes, second, split + holeBytes);
  sealBucket(bytes, second, bucketChecksum(saltOf(dictionary.checksum, metadata.checksum), 1));
  const payloadSize = payload.size + holeBytes;
  const blocks = new Uint8Array(blocksSize(directory.size, payloadSize));
  const blocksOffset = alignSection(payload.offset + payloadSize);
  const metadataOffset = alignSection(blocksOffset + blocks.length);
  const fileSizeBytes = metadataOffset + metadata.size;
  const sections = {
    dictionary,
    directory,
    payload: { ...payload, size: payloadSize },
    blocks: { offset: blocksOffset, size: blocks.length, checksum: xxh64(blocks) },
    metadata: { ...metadata, offset: metadataOffset },
  };
  const fd = openSync(path, 'wx');
  ftruncateSync(fd, fileSizeBytes);
  const write = (from: number, to: number, offset: number): void => void writeSync(fd, bytes, from, to - from, offset);
  writeSync(fd, encodeHeader({ ...header, fileSizeBytes, sections }), 0, 256, 0);
  write(256, payload.offset + split, 256);
  write(payload.offset + split, payload.offset + payload.size, payload.offset + split + holeBytes);
  write(metadata.offset, metadata.offset + metadata.size, metadataOffset);
  closeSync(fd);
  chmodSync(path, 0o444);
}

describe('offsets', () => {
  // 24 GiB is the size of 400 million records of 60 bytes. The other values are around powers of two.
  it.each([GIB - 100, 2 * GIB - 100, 4 * GIB - 100, 5 * GIB, 24 * GIB])(
    'work with %d bytes between two records',
    (holeBytes) => {
      withTempDirectory((directory) => {
        const path = join(directory, 'large.pgx');
        writeWithHole(path, holeBytes);
        const index = openIndex(path);
        expect(index.info.sizeBytes).toBeGreaterThan(holeBytes);
        let far = 0;
        for (const { domain, pageTypes } of entries) {
          const handle = index.find(domain);
          if (Math.floor(handle / 256) > holeBytes) far++;
          expect(index.decode(handle)).toEqual({
            domain,
            pageTypes: pageTypes.map(({ type, url }) => ({ type, url })),
          });
        }
        expect(far).toBeGreaterThan(0);
        expect(far).toBeLessThan(entries.length);
        expect(index.find('far-99.example')).toBe(NO_RECORD);
        index.close();
      });
    },
  );
});
