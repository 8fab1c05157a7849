/** Each part is read by one worker and scanned by all of them. */
import { hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildIndex } from '../../src/builder/build.ts';
import type { BuildReport } from '../../src/builder/report.ts';
import { lineBlocks } from '../../src/drop/line-blocks.ts';
import { type LineSink, LineSplitter } from '../../src/drop/line-splitter.ts';
import { Random } from '../../tools/random.ts';
import { makeDrop, rewriteManifest } from './small-drops.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-parts-'));
  mkdirSync(join(folder, 'out'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Records the calls of a splitter to its sink. */
class RecordingSink implements LineSink {
  readonly lines: string[] = [];
  repairs = 0;
  line(buffer: Buffer, start: number, end: number, number: number): void {
    this.lines.push(`${number} ${buffer.toString('latin1', start, end)}`);
  }
  overlong(number: number): void {
    this.lines.push(`${number} too long`);
  }
  repair(name: string): void {
    this.lines.push(name);
  }
}

const LONG = 65_536;
/** Lines of every kind, enough for several blocks. */
function hostileText(random: Random): Buffer {
  const kinds: (() => string)[] = [
    () => '',
    () => 'x',
    () => 'short\r',
    () => '\r',
    () => 'l'.repeat(random.below(3_000)),
    () => 'e'.repeat(LONG),
    () => `${'e'.repeat(LONG)}\r`,
    () => 't'.repeat(LONG + 1),
    () => `${'t'.repeat(LONG + 1)}\r`,
  ];
  const lines = Array.from({ length: 400 }, () => random.pick(kinds)());
  // Longer than any block.
  lines.splice(random.below(400), 0, 'h'.repeat(700_000));
  return Buffer.from(`\ufeff${lines.join('\n')}${random.below(2) === 0 ? '\n' : ''}`);
}

async function* inChunks(bytes: Buffer, random: Random): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.below(300_000);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

const reserve = () => ({ bytes: Buffer.alloc(150_000) });

describe('blocks of lines', () => {
  it('contain the lines of the stream, each with its number', async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = new Random(seed);
      const bytes = hostileText(random);
      const whole = new RecordingSink();
      const splitter = new LineSplitter(whole);
      splitter.push(bytes);
      splitter.end();
      const sink = new RecordingSink();
      const lines = new LineSplitter(sink);
      let blocks = 0;
      for await (const { space, sizeBytes, firstLine } of lineBlocks(inChunks(bytes, random), reserve)) {
        blocks += 1;
        lines.skipTo(firstLine);
        lines.push(space.bytes.subarray(0, sizeBytes));
        lines.end();
        space.bytes.fill('x');
      }
      expect(blocks).toBeGreaterThan(5);
      expect(sink.lines).toEqual(whole.lines);
    }
  });

  it('are not created from an empty stream', async () => {
    for await (const block of lineBlocks(inChunks(Buffer.alloc(0), new Random(1)), reserve))
      expect(block).toBeUndefined();
  });
});

/** About 150 bytes per line: valid, invalid, blank and repaired lines, and domains that occur again later. */
function part(size: number): string {
  const lines = ['\ufeff{"domain":"first.example"}'];
  for (let i = 0; i < size; i += 1) {
    const domain = `name${i % Math.floor(size * 0.875)}.example`;
    if (i % 3 === 0) lines.push(`{"domain":"bad domain ${i}"}`);
    else if (i % 997 === 0) lines.push('', `{"domain":"www.${domain}","language":"de"}\r`);
    else if (i % 9_001 === 0) lines.push('y'.repeat(100_000));
    else {
      const page = `https://${domain}/login/${'p'.repeat(100)}`;
      lines.push(JSON.stringify({ domain, page_types: { login: page }, global_rank: i + 1 }));
    }
  }
  return lines.join('\n');
}

async function build(workers: number): Promise<{ report: BuildReport; sums: string }> {
  const out = join(folder, 'out', 'index.pgx');
  const rejectsFile = `${out}.rejects`;
  const report = await buildIndex({ drop: join(folder, 'drop'), out, generation: 1, workers, rejectsFile });
  return { report, sums: [out, rejectsFile].map((path) => hash('sha256', readFileSync(path))).join() };
}

/** The parts of the result that must not depend on the number of workers. */
const resultOf = ({
  lines,
  entries,
  duplicates,
  pages,
  ranksRepeated,
  rejects,
  repairs,
  rejectsWritten,
}: BuildReport) => [lines, entries, duplicates, pages, ranksRepeated, rejects, repairs, rejectsWritten];

async function expectSame(workers: number, alone: Awaited<ReturnType<typeof build>>): Promise<void> {
  const { report, sums } = await build(workers);
  expect(resultOf(report)).toEqual(resultOf(alone.report));
  expect(sums).toBe(alone.sums);
}

describe('a drop with one part that is larger than all others together', () => {
  it.each([
    // More rejects than are written.
    ['a.ndjson', 40_000],
    ['a.ndjson.gz', 16_000],
    ['a.ndjson.zst', 16_000],
  ])('gives the same index, rejects and report with any number of workers: %s', async (name, size) => {
    await makeDrop(join(folder, 'drop'), { [name]: part(size), 'b.ndjson': [{ domain: 'name7.example' }] });
    const alone = await build(0);
    const rejects = Object.values(alone.report.rejects).reduce((sum, count) => sum + count, 0);
    expect(rejects).toBeGreaterThan(size / 3);
    expect(alone.report.rejectsWritten).toBe(Math.min(rejects, 10_000));
    for (const workers of [2, 3]) await expectSame(workers, alone);
  });

  it('with parts that are read in parallel gives the same with any number of workers', async () => {
    const large = part(12_000);
    const parts = {
      'a.ndjson': large,
      'b.ndjson.zst': large,
      'c.ndjson': [],
      'd.ndjson.gz': part(500),
      'e.ndjson': large,
    };
    await makeDrop(join(folder, 'drop'), parts);
    const alone = await build(0);
    expect(alone.report.rejectsWritten).toBeGreaterThan(12_000);
    for (const workers of [1, 2, 4, 7]) await expectSame(workers, alone);
  });

  it('is refused if it is invalid as a whole', async () => {
    const drop = join(folder, 'drop');
    const manifest = await makeDrop(drop, { 'a.ndjson': part(16_000) });
    const [file] = manifest.files;
    const change = (changes: object) => rewriteManifest(drop, { ...manifest, files: [{ ...file, ...changes }] });
    for (const difference of [-15_000, -1, 1]) {
      change({ records: file!.records + difference });
      await expect(build(2)).rejects.toMatchObject({ code: 'drop_part_records' });
    }
    change({ sha256: '0'.repeat(64) });
    await expect(build(2)).rejects.toMatchObject({ code: 'drop_part_checksum' });
    truncateSync(join(drop, 'a.ndjson'), 1_200_000);
    change({ bytes: 1_200_000 });
    await expect(build(2)).rejects.toMatchObject({ name: 'PagegateError' });
  });
});
