/** An index that is read by several threads: what is reported does not depend on how many there are, nor on where their parts meet. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readHeader } from '../../src/index/header.ts';
import { HEADER, LINE, LINE_SIZE_BYTES, SIZE_OF_LENGTH_CODE } from '../../src/index/layout.ts';
import { readLineBase } from '../../src/index/line.ts';
import { openMappedFile } from '../../src/index/mapped-file.ts';
import { readTables } from '../../src/index/read-tables.ts';
import { type Damage, RecordWalk } from '../../src/index/record-walk.ts';
import { type VerifyReport, verifyIndex } from '../../src/index/verify.ts';
import { walkInThreads } from '../../src/index/verify-pool.ts';
import { Random } from '../../tools/random.ts';
import { smallCatalog, tinyIndexBytes, withTempDirectory, writeTinyIndex } from '../support/tiny-index.ts';
import {
  expectSameReport,
  sampleEntries,
  sealBlocks,
  sealHeader,
  sealLineOf,
  sectionsOf,
  sharedBytes,
  viewOf,
} from './support.ts';

/** Two threads meet at line 12, three at lines 8 and 16. */
const LINES = 24;
const SEAMS = [12, 16];
const good = tinyIndexBytes(sampleEntries(LINES * 8), { catalog: smallCatalog, lineCount: LINES });
const { directory, payload } = sectionsOf(good);

const lineAt = (line: number): number => directory.offset + line * LINE_SIZE_BYTES;
const baseOf = (bytes: Uint8Array, line: number): number => readLineBase(bytes, lineAt(line));

/** Takes a line's records from it; its base stays. */
function emptyLine(bytes: Uint8Array, line: number): void {
  const base = baseOf(bytes, line);
  bytes.fill(0, lineAt(line), lineAt(line + 1));
  sealLineOf(bytes, line, base);
}

/** Verifies a changed copy, its lines as they are and its blocks sealed. */
async function report(change: (bytes: Uint8Array) => void): Promise<VerifyReport> {
  const bytes = good.slice();
  change(bytes);
  sealBlocks(bytes);
  return (await expectSameReport(bytes)) as VerifyReport;
}

describe('what several threads report', () => {
  it('is that an intact index is one', async () => {
    expect(await report(() => {})).toMatchObject({ ok: true, recordCount: LINES * 8, damages: [] });
  });

  it('is the same at the seams of their parts', async () => {
    for (const seam of SEAMS) {
      const shifted = await report((bytes) => {
        for (let line = seam; line < LINES; line++) sealLineOf(bytes, line, baseOf(bytes, line) + 1);
      });
      expect(shifted.damages[0]).toMatchObject({ where: `line ${seam}` });
      expect(shifted.damages[0]?.what).toMatch(/^its base is/);
      // Both parts are sound by themselves: the records between them belong to no line.
      const emptied = await report((bytes) => emptyLine(bytes, seam - 1));
      expect(emptied.damages[0]).toMatchObject({ where: `line ${seam}` });
      const swapped = await report((bytes) => {
        const before = bytes.slice(lineAt(seam - 1), lineAt(seam));
        bytes.copyWithin(lineAt(seam - 1), lineAt(seam), lineAt(seam + 1));
        bytes.set(before, lineAt(seam));
        sealLineOf(bytes, seam - 1, baseOf(good, seam - 1));
        sealLineOf(bytes, seam, baseOf(good, seam));
      });
      expect(swapped.damages.length).toBeGreaterThan(1);
      // The last record of the part before becomes the first of the part behind, in its place.
      const moved = await report((bytes) => {
        const count = bytes[lineAt(seam - 1) + LINE.count.offset]!;
        const size = SIZE_OF_LENGTH_CODE[bytes[lineAt(seam - 1) + LINE.lengths.offset + count - 1]!]!;
        for (const { offset } of [LINE.fingerprints, LINE.lengths]) {
          const from = lineAt(seam - 1) + offset + count - 1;
          const to = lineAt(seam) + offset;
          bytes.copyWithin(to + 1, to, to + LINE.fingerprints.size - 1);
          bytes[to] = bytes[from]!;
          bytes[from] = 0;
        }
        bytes[lineAt(seam - 1) + LINE.count.offset]! -= 1;
        bytes[lineAt(seam) + LINE.count.offset]! += 1;
        sealLineOf(bytes, seam - 1, baseOf(good, seam - 1));
        sealLineOf(bytes, seam, baseOf(good, seam) - size);
      });
      expect(moved.damages.map(({ what }) => what)).toEqual(['its domain belongs into another line']);
    }
  });

  it('is the same at the end, and of the number of records', async () => {
    const unused = await report((bytes) => {
      emptyLine(bytes, LINES - 1);
    });
    expect(unused.damages.map(({ where }) => where)).toEqual(['header', 'payload']);
    const counted = await report((bytes) => {
      viewOf(bytes).setBigUint64(HEADER.recordCount.offset, BigInt(LINES * 8 + 1), true);
      sealHeader(bytes);
    });
    expect(counted.damages.map(({ where }) => where)).toEqual(['header']);
  });

  it('ends with as many damages, the same ones, where there are more', async () => {
    const { damages } = await report((bytes) => {
      for (let at = payload.offset; at < payload.offset + payload.size; at += 97) bytes[at]! ^= 0x55;
    });
    expect(damages).toHaveLength(20);
  });

  it('is the same of random bits, whether their checksums fit or not', async () => {
    const random = new Random(4);
    for (let i = 0; i < 8; i++) {
      const bytes = flipped(random);
      await expectSameReport(bytes);
      sealBlocks(bytes);
      await expectSameReport(bytes);
    }
  });

  it('would be the same of any parts', () => {
    const random = new Random(5);
    let damaged = 0;
    for (let i = 0; i < 600; i++) {
      const bytes = flipped(random);
      const whole = walkInParts(bytes, undefined);
      for (const size of [1, 5, 8, 12, LINES]) expect(walkInParts(bytes, size)).toEqual(whole);
      if (whole.damages.length > 0) damaged += 1;
    }
    expect(damaged).toBeGreaterThan(300);
  });
});

/** The index with some bits of directory or payload changed; the lines often fit their checks again, so that what they say is followed. */
function flipped(random: Random): Uint8Array {
  const below = (limit: number): number => random.below(limit);
  const bytes = good.slice();
  const { offset, size } = [directory, payload][below(2)]!;
  for (let flips = 1 + below(3); flips > 0; flips--) bytes[offset + below(size)]! ^= 1 << below(8);
  if (below(4) === 0) emptyLine(bytes, below(LINES));
  if (below(2) === 0) for (let line = 0; line < LINES; line++) sealLineOf(bytes, line, baseOf(bytes, line));
  return bytes;
}

/** What threads do, in this one: a walk that skips the parts of so many lines that another one has found sound, up to the first that is not. */
function walkInParts(bytes: Uint8Array, size: number | undefined): { recordCount: number; damages: Damage[] } {
  const shared = sharedBytes(bytes);
  const header = readHeader(shared);
  const tables = readTables(shared, header);
  const walk = new RecordWalk(shared, header, tables, 1);
  for (let from = 0; size !== undefined && from < LINES; from += size) {
    const lines = { from, to: Math.min(LINES, from + size) };
    const sound = new RecordWalk(shared, header, tables, 1).checkLines(lines);
    if (sound === undefined || !walk.skip(sound)) break;
  }
  while (walk.line < LINES && walk.damages.length < 20) walk.checkLine();
  walk.checkEnd();
  return { recordCount: walk.recordCount, damages: walk.damages };
}

describe('several threads', () => {
  it('tell how far they are, up to the end', async () => {
    await withTempDirectory(async (folder) => {
      const path = join(folder, 'index.pgx');
      writeTinyIndex(path, sampleEntries(3000), { catalog: smallCatalog });
      for (const workers of [0, 2]) {
        const seen: number[] = [];
        let total = 0;
        const onProgress = (done: number, all: number): void => {
          seen.push(done);
          total = all;
        };
        expect(await verifyIndex(path, { workers, onProgress })).toMatchObject({ ok: true, recordCount: 3000 });
        expect(seen).toEqual([...seen].sort((a, b) => a - b));
        expect(seen.at(-1)).toBe(total);
      }
    });
  });

  it('end when they are told to, whatever they are doing', async () => {
    await withTempDirectory(async (folder) => {
      const path = join(folder, 'index.pgx');
      writeTinyIndex(path, sampleEntries(5000), { catalog: smallCatalog });
      const threads = (): string[] =>
        readdirSync('/proc/self/task').filter((task) =>
          /^Worker/.test(readFileSync(`/proc/self/task/${task}/comm`, 'latin1')),
        );
      const before = threads();
      for (let i = 0; i < 6; i++) {
        const controller = new AbortController();
        const stop = new Error('stopped');
        setTimeout(() => controller.abort(stop), 25 * i);
        const ended = await verifyIndex(path, { workers: 3, signal: controller.signal }).catch((error) => error);
        if (ended !== stop) expect(ended).toMatchObject({ ok: true });
        // The kernel lists a thread for a moment after it was waited for.
        await expect.poll(threads).toEqual(before);
      }
    });
  });

  it('name what fails in them', async () => {
    await withTempDirectory(async (folder) => {
      const path = join(folder, 'index.pgx');
      const bytes = good.slice();
      bytes[HEADER.checksum.offset]! ^= 1;
      writeFileSync(path, bytes, { mode: 0o444 });
      const changed = openMappedFile(path);
      const { address, sizeBytes } = changed;
      const intact = sharedBytes(good);
      const header = readHeader(intact);
      const walk = new RecordWalk(intact, header, readTables(intact, header), 1);
      const setup = { path, address, sizeBytes, decodeEveryNthLine: 1 };
      const walking = walkInThreads(walk, 2, setup, async () => {}, undefined);
      await expect(walking).rejects.toMatchObject({ name: 'PagegateError', code: 'index_corrupt', details: { path } });
      changed.close();
    });
  });
});
