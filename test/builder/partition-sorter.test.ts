import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PartitionSorter } from '../../src/builder/arrange/partition-sorter.ts';
import { estimateRecords } from '../../src/builder/arrange/partitions.ts';
import {
  partitionOf,
  partitionSize,
  readWord,
  SPILL_HEADER_BYTES,
  type SpillFile,
  SpillWriter,
  spilledPosition,
  spilledSize,
} from '../../src/builder/arrange/spill.ts';

interface Spilled {
  readonly hashA: number;
  readonly hashB: number;
  readonly domain: string;
  readonly part: number;
  readonly line: number;
  readonly tail: number;
}

let folder = '';
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-sort-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The start of an encoded record: the length of the domain, the domain, then any bytes. */
const recordOf = ({ domain, tail }: Spilled): Buffer =>
  Buffer.concat([Buffer.of(domain.length), Buffer.from(domain), Buffer.alloc(tail, 0xaa)]);

function spill(records: readonly Spilled[], partitionBits: number, writers = 1): SpillFile[] {
  const all = Array.from({ length: writers }, () => new SpillWriter(join(folder, `spill-${files++}`), partitionBits));
  records.forEach((record, i) => {
    const bytes = recordOf(record);
    all[i % writers]!.add(record.hashA, record.hashB, record.part, record.line, bytes, bytes.length);
  });
  return all.map((writer) => writer.finish());
}

function sorted(sorter: PartitionSorter): unknown[] {
  return Array.from(sorter.order.subarray(0, sorter.count), (at) => {
    const { bytes } = sorter;
    const domainAt = at + SPILL_HEADER_BYTES + 1;
    const domain = Buffer.from(bytes.subarray(domainAt, domainAt + bytes[domainAt - 1]!)).toString();
    return [readWord(bytes, at), readWord(bytes, at + 4), domain, spilledPosition(bytes, at), spilledSize(bytes, at)];
  });
}

/** The expected result, computed in the simplest way. */
function expectedOf(records: readonly Spilled[], partition: number, partitionBits: number): unknown[] {
  const position = ({ part, line }: Spilled): number => part * 2 ** 40 + line;
  const latest = new Map<string, Spilled>();
  for (const record of records) {
    if (partitionOf(record.hashA, partitionBits) !== partition) continue;
    const id = `${record.hashA} ${record.hashB} ${record.domain}`;
    const other = latest.get(id);
    if (other === undefined || position(other) < position(record)) latest.set(id, record);
  }
  return [...latest.values()]
    .sort((a, b) => a.hashA - b.hashA || a.hashB - b.hashB || (a.domain < b.domain ? -1 : 1))
    .map((record) => [record.hashA, record.hashB, record.domain, position(record), recordOf(record).length]);
}

const hash = fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1));
const record: fc.Arbitrary<Spilled> = fc.record({
  hashA: hash,
  hashB: fc.oneof(hash, fc.constantFrom(5, 6)),
  domain: fc.constantFrom('a', 'ab', 'b', 'ba', 'c'),
  part: fc.constantFrom(0, 1, 300, 65_535),
  line: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.constantFrom(2 ** 32 + 1, 2 ** 40 - 1)),
  tail: fc.integer({ min: 0, max: 300 }),
});
// Each place in a drop has one line.
const records = fc.uniqueArray(record, { maxLength: 300, selector: ({ part, line }) => `${part} ${line}` });

describe('sorting a partition', () => {
  it('returns records in hash order, and of each domain the latest entry', () => {
    let duplicates = 0;
    fc.assert(
      fc.property(records, fc.constantFrom(0, 1, 4), fc.integer({ min: 1, max: 3 }), (list, partitionBits, writers) => {
        const spilled = spill(list, partitionBits, writers);
        const sorter = new PartitionSorter();
        let kept = 0;
        for (let partition = 0; partition < 2 ** partitionBits; partition++) {
          sorter.load(spilled, partition);
          expect(sorted(sorter)).toEqual(expectedOf(list, partition, partitionBits));
          kept += sorter.count;
          duplicates += sorter.duplicates;
          expect(sorter.count + sorter.duplicates).toBe(
            list.filter(({ hashA }) => partitionOf(hashA, partitionBits) === partition).length,
          );
        }
        expect(kept).toBeLessThanOrEqual(list.length);
      }),
      { numRuns: 150, seed: 11 },
    );
    expect(duplicates).toBeGreaterThan(0);
  });

  it('drops replaced entries while reading if the entries exceed its memory', () => {
    const list = Array.from({ length: 40_000 }, (_, i): Spilled => {
      const domain = `d${i % 50}`;
      return { hashA: (i % 50) * 1000, hashB: 9, domain, part: 0, line: i + 1, tail: 40 };
    });
    const spilled = spill(list, 0);
    const sorter = new PartitionSorter(256 * 1024);
    expect(partitionSize(spilled, 0)).toBeGreaterThan(8 * 256 * 1024);
    sorter.load(spilled, 0);
    expect(sorted(sorter)).toEqual(expectedOf(list, 0, 0));
    expect(sorter.duplicates).toBe(40_000 - 50);
  });

  it('reports if the domains do not fit into its memory', () => {
    const list = Array.from(
      { length: 9000 },
      (_, i): Spilled => ({ hashA: i, hashB: 1, domain: `d${i}`, part: 0, line: i + 1, tail: 60 }),
    );
    const sorter = new PartitionSorter(256 * 1024);
    expect(() => sorter.load(spill(list, 0), 0)).toThrow(expect.objectContaining({ code: 'build_too_large' }) as Error);
  });

  it('accepts a record larger than a block', () => {
    const list = [5, 1, 3].map(
      (hashA, i): Spilled => ({ hashA, hashB: 1, domain: 'x', part: 0, line: i + 1, tail: 150_000 }),
    );
    const sorter = new PartitionSorter();
    sorter.load(spill(list, 4), 0);
    expect(sorted(sorter)).toEqual(expectedOf(list, 0, 4));
  });
});

describe('the number of records', () => {
  const distinct = (count: number): Spilled[] =>
    Array.from(
      { length: count },
      (_, i): Spilled => ({
        hashA: Math.imul(i, 0x9e3779b1) >>> 0,
        hashB: 1,
        domain: `d${i}`,
        part: 0,
        line: i + 1,
        tail: 0,
      }),
    );
  /** One domain many times, in the partition of this hash. */
  const repeated = (count: number, hashA: number): Spilled[] =>
    Array.from(
      { length: count },
      (_, i): Spilled => ({ hashA, hashB: 2, domain: 'same', part: 1, line: i + 1, tail: 0 }),
    );

  it('is exact for a small drop', () => {
    expect(estimateRecords(spill([], 3), 3)).toBe(0);
    expect(estimateRecords(spill([...distinct(5000), ...repeated(5000, 7)], 3), 3)).toBe(5001);
  });

  it('differs by less than a percent in a large drop, wherever a repeated domain is', () => {
    for (const hashA of [0, 2 ** 32 - 1]) {
      const files = spill([...distinct(150_000), ...repeated(150_000, hashA)], 4);
      expect(Math.abs(estimateRecords(files, 4) / 150_001 - 1)).toBeLessThan(0.01);
    }
  });
});
