/** A table of damaged files: each row damages one field, and states how open, verify and a lookup report it. */
import { describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { crc8 } from '../../src/index/format/checksum.ts';
import {
  BUCKET,
  BUCKET_SIZE_BYTES,
  HEADER,
  SECTION_ENTRY,
  SECTIONS,
  type SectionName,
  SIZE_OF_LENGTH_CODE,
} from '../../src/index/format/layout.ts';
import { recordSeed } from '../../src/index/format/salt.ts';
import type { Index } from '../../src/index/read.ts';
import { verifyIndexBytes } from '../../src/index/verify.ts';
import { smallNames, tinyIndexBytes } from '../support/tiny-index.ts';
import {
  entryOffset,
  expectations,
  expectSameReport,
  lookUp,
  type Outcome,
  saltOfFile,
  sampleEntries,
  sealBlocks,
  sealBucketOf,
  sealHeader,
  sealSection,
  sectionsOf,
  sharedBytes,
  tryOpen,
  viewOf,
} from './support.ts';

interface Row {
  readonly name: string;
  /** Changes the bytes, or returns others. */
  readonly damage: (bytes: Uint8Array, view: DataView) => unknown;
  readonly open: 'ok' | 'index_corrupt' | 'index_newer_version' | 'index_older_version' | 'index_not_recognized';
  /** Matches the damage reported by verify. Absent if verify reports the same as open. */
  readonly verify?: RegExp;
  /** The outcome for the key in the damaged bucket and record. */
  readonly lookUp?: Outcome;
}

// One bucket, so that every record is in bucket 0 and the first one starts at payload offset 0.
const good = tinyIndexBytes(sampleEntries(12), { names: smallNames, bucketCount: 1 });
const expected = expectations(good);
const key = [...expected.keys()][0]!;
const sections = sectionsOf(good);
const bucket = sections.directory.offset;
const firstSize = SIZE_OF_LENGTH_CODE[good[bucket + BUCKET.lengths.offset]!]!;

const sealed =
  (change: (bytes: Uint8Array, view: DataView) => void) =>
  (bytes: Uint8Array, view: DataView): void => {
    change(bytes, view);
    sealHeader(bytes);
  };
const inBucket =
  (change: (bytes: Uint8Array) => void, base = 0) =>
  (bytes: Uint8Array): void => {
    change(bytes);
    sealBucketOf(bytes, 0, base);
  };
/** Changes the first record and recomputes its CRC-8, so that only its structure is wrong. */
const inRecord =
  (change: (record: Uint8Array) => void) =>
  (bytes: Uint8Array): void => {
    const record = bytes.subarray(sections.payload.offset, sections.payload.offset + firstSize);
    change(record);
    record[firstSize - 1] = crc8(record, 0, firstSize - 1, recordSeed(saltOfFile(bytes), 0, bytes[bucket]!));
  };
const afterDomain = 1 + good[sections.payload.offset]!;

const rows: readonly Row[] = [
  { name: 'nothing', damage: () => {}, open: 'ok', lookUp: 'right' },
  {
    name: 'magic',
    damage: (bytes) => {
      bytes[1] = 0x51;
    },
    open: 'index_not_recognized',
  },
  {
    name: 'major version: newer',
    damage: (_, view) => view.setUint16(HEADER.major.offset, 3, true),
    open: 'index_newer_version',
  },
  {
    name: 'major version: older',
    damage: (_, view) => view.setUint16(HEADER.major.offset, 1, true),
    open: 'index_older_version',
  },
  {
    name: 'minor version: newer',
    damage: sealed((_, view) => view.setUint16(HEADER.minor.offset, 9, true)),
    open: 'ok',
    lookUp: 'right',
  },
  {
    name: 'header size',
    damage: sealed((_, view) => view.setUint32(HEADER.headerSize.offset, 512, true)),
    open: 'index_corrupt',
  },
  {
    name: 'file size',
    damage: sealed((_, view) => view.setUint32(HEADER.fileSize.offset, 999_999, true)),
    open: 'index_corrupt',
  },
  {
    name: 'record count',
    damage: sealed((_, view) => view.setUint32(HEADER.recordCount.offset, 11, true)),
    open: 'ok',
    verify: /header.*11 records, there are 12/,
    lookUp: 'right',
  },
  {
    name: 'record count: more than the buckets can hold',
    damage: sealed((_, view) => view.setUint32(HEADER.recordCount.offset, 256, true)),
    open: 'index_corrupt',
  },
  {
    name: 'record count: most',
    damage: sealed((_, view) => view.setBigUint64(HEADER.recordCount.offset, 2n ** 64n - 1n, true)),
    open: 'index_corrupt',
  },
  {
    name: 'bucket count: 0',
    damage: sealed((_, view) => view.setUint32(HEADER.bucketCount.offset, 0, true)),
    open: 'index_corrupt',
  },
  {
    name: 'bucket count: more',
    damage: sealed((_, view) => view.setUint32(HEADER.bucketCount.offset, 2, true)),
    open: 'index_corrupt',
  },
  {
    name: 'bucket count: most',
    damage: sealed((_, view) => view.setUint32(HEADER.bucketCount.offset, 0xffffffff, true)),
    open: 'index_corrupt',
  },
  {
    name: 'first seed',
    damage: sealed((_, view) => view.setUint32(HEADER.seedA.offset, 1, true)),
    open: 'index_corrupt',
  },
  {
    name: 'second seed',
    damage: sealed((_, view) => view.setUint32(HEADER.seedB.offset, 1, true)),
    open: 'index_corrupt',
  },
  {
    name: 'block size',
    damage: sealed((_, view) => view.setUint32(HEADER.blockSize.offset, 4096, true)),
    open: 'index_corrupt',
  },
  {
    name: 'reserved bytes',
    damage: sealed((bytes) => {
      bytes[HEADER.reserved.offset] = 1;
    }),
    open: 'index_corrupt',
  },
  {
    name: 'header checksum',
    damage: (bytes) => {
      bytes[HEADER.checksum.offset]! ^= 1;
    },
    open: 'index_corrupt',
  },
  ...SECTIONS.flatMap((name): Row[] => {
    const set = (field: 'offset' | 'size', value: bigint) =>
      sealed((_, view) => view.setBigUint64(entryOffset(name) + SECTION_ENTRY[field].offset, value, true));
    const { offset, size } = sections[name];
    return [
      { name: `${name}: offset moved`, damage: set('offset', BigInt(offset + 64)), open: 'index_corrupt' },
      { name: `${name}: offset beyond the file`, damage: set('offset', 2n ** 63n), open: 'index_corrupt' },
      { name: `${name}: size larger`, damage: set('size', BigInt(size + 64)), open: 'index_corrupt' },
      { name: `${name}: size of 16 EiB`, damage: set('size', 2n ** 64n - 1n), open: 'index_corrupt' },
    ];
  }),
  ...(['dictionary', 'blocks', 'metadata'] as const).map(
    (name): Row => ({
      name: `${name}: a byte`,
      damage: (bytes) => {
        bytes[sections[name].offset + 3]! ^= 4;
      },
      open: 'index_corrupt',
    }),
  ),
  ...(['dictionary', 'metadata'] as const).map(
    (name): Row => ({ name: `${name}: not a map`, damage: sectionByte(name, 0, 0xc0), open: 'index_corrupt' }),
  ),
  {
    name: 'blocks: another checksum',
    damage: sectionByte('blocks', 0, good[sections.blocks.offset]! ^ 1),
    open: 'ok',
    verify: /directory.*block 0/,
    lookUp: 'right',
  },
  { name: 'a gap between sections', damage: gapByte, open: 'ok', verify: /gap before/, lookUp: 'right' },
  {
    name: 'bucket: a fingerprint',
    damage: (bytes) => {
      bytes[bucket]! ^= 0x10;
    },
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'bucket: checksum',
    damage: (bytes) => {
      bytes[bucket + BUCKET.checksum.offset]! ^= 1;
    },
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'bucket: all zero',
    damage: (bytes) => void bytes.fill(0, bucket, bucket + BUCKET_SIZE_BYTES),
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'bucket: all ones',
    damage: (bytes) => void bytes.fill(0xff, bucket, bucket + BUCKET_SIZE_BYTES),
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'bucket: base beyond the payload',
    damage: inBucket(() => {}, 2 ** 40 - 1),
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'bucket: base off by one',
    damage: inBucket(() => {}, 1),
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'bucket: longest length',
    damage: inBucket((bytes) => {
      bytes[bucket + BUCKET.lengths.offset] = 255;
    }),
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'bucket: shorter length',
    damage: inBucket((bytes) => {
      bytes[bucket + BUCKET.lengths.offset]! -= 1;
    }),
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'bucket: overflow that is not there',
    damage: inBucket((bytes) => {
      bytes[bucket + BUCKET.count.offset] = 255;
    }),
    open: 'ok',
    verify: /directory/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'record: a bit of the domain',
    damage: (bytes) => {
      bytes[sections.payload.offset + 1]! ^= 1;
    },
    open: 'ok',
    verify: /payload/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'record: CRC-8',
    damage: (bytes) => {
      bytes[sections.payload.offset + firstSize - 1]! ^= 1;
    },
    open: 'ok',
    verify: /payload/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'record: domain larger than the record',
    damage: inRecord((record) => {
      record[0] = 255;
    }),
    open: 'ok',
    verify: /payload/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'record: unknown symbol in the domain',
    damage: inRecord((record) => {
      record[1] = 0xff;
    }),
    open: 'ok',
    verify: /payload/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'record: page rank above 10',
    damage: inRecord((record) => {
      record[afterDomain] = 0xfe;
    }),
    open: 'ok',
    verify: /payload/,
  },
  {
    name: 'record: unknown language',
    damage: inRecord((record) => {
      record[afterDomain + 5] = 0xff;
    }),
    open: 'ok',
    verify: /payload/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'record: unknown IAB category',
    damage: inRecord((record) => {
      record[afterDomain + 6] = 200;
    }),
    open: 'ok',
    verify: /payload/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'record: unknown page type',
    damage: inRecord((record) => {
      record[afterDomain + 4]! |= 0x80;
    }),
    open: 'ok',
    verify: /payload/,
    lookUp: 'record_corrupt',
  },
  {
    name: 'record: all page types',
    damage: inRecord((record) => void record.fill(0xff, afterDomain + 2, afterDomain + 4)),
    open: 'ok',
    verify: /payload/,
    lookUp: 'record_corrupt',
  },
  { name: 'cut in the header', damage: (bytes) => bytes.slice(0, 256), open: 'index_corrupt' },
  { name: 'one byte less', damage: (bytes) => bytes.slice(0, -1), open: 'index_corrupt' },
  { name: 'one byte more', damage: (bytes) => Uint8Array.of(...bytes, 0), open: 'index_corrupt' },
];

function sectionByte(name: SectionName, at: number, value: number): Row['damage'] {
  return (bytes) => {
    bytes[sections[name].offset + at] = value;
    sealSection(bytes, name);
  };
}

function gapByte(bytes: Uint8Array): void {
  const after = SECTIONS.find((name, i) => {
    const before = SECTIONS[i - 1];
    return before !== undefined && sections[before].offset + sections[before].size < sections[name].offset;
  });
  expect(after).toBeDefined();
  bytes[sections[after!].offset - 1] = 1;
}

describe('a damaged file', () => {
  it.each(rows)('$name', async ({ damage, open, verify, lookUp: outcome }) => {
    const copy = good.slice();
    const changed = damage(copy, viewOf(copy));
    const bytes = changed instanceof Uint8Array ? changed : copy;
    const index = tryOpen(bytes);
    if (open !== 'ok') {
      expect(index).toBe(open);
      const report = await verifyIndexBytes(sharedBytes(bytes)).catch((error: unknown) => error);
      if (report instanceof PagegateError) expect(report.code).toBe(open);
      else expect(report).toMatchObject({ ok: false, damages: [{}] });
      return;
    }
    if (typeof index === 'string') throw new Error(`it does not open: ${index}`);
    if (outcome !== undefined) {
      expect(lookUp(index, key, expected.get(key)!, new Uint8Array(4 * index.info.maxAnswerSizeBytes))).toBe(outcome);
    }
    const report = await verifyIndexBytes(sharedBytes(bytes));
    if (verify === undefined) expect(report.damages).toEqual([]);
    else {
      expect(report.ok).toBe(false);
      const { where, what, offset, sizeBytes } = report.damages[0]!;
      expect(`${where}: ${what}`).toMatch(verify);
      expect(offset + sizeBytes).toBeLessThanOrEqual(bytes.length);
    }
  });

  it('is reported in the same way with any number of threads, even if all checksums are valid', async () => {
    for (const { damage, open } of rows) {
      const copy = good.slice();
      const changed = damage(copy, viewOf(copy));
      await expectSameReport(changed instanceof Uint8Array ? changed : copy);
      if (open !== 'ok') continue;
      sealBlocks(copy);
      // The one bucket belongs to one thread, whatever the number of threads.
      await expectSameReport(copy, [0, 2]);
    }
  });
});

it('a damaged record does not affect the one that was read before it', () => {
  const bytes = good.slice();
  inRecord((record) => {
    record[afterDomain + 6] = 200;
  })(bytes);
  const index = tryOpen(bytes) as Index;
  const [damaged, intact] = [...expected.keys()].slice(0, 2).map((domain) => index.find(domain)) as [number, number];
  const before = index.decode(intact);
  expect(() => index.decode(damaged)).toThrow(expect.objectContaining({ code: 'record_corrupt' }));
  expect(index.decode(intact)).toEqual(before);
});
