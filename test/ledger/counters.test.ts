/** The counters that workers and the ledger writer share: their contents, which of them are trusted, and the effect of a flipped bit. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  CHARGE_REFUSED,
  COUNTERS_SIZE_BYTES,
  Counters,
  SLOT_COUNT,
  WRITER_STATE,
} from '../../src/ledger/counters/counters.ts';
import {
  countersPaths,
  createCounters,
  findCounters,
  openCounters,
  readCounters,
  removeCounters,
} from '../../src/ledger/counters/location.ts';
import { awaitPublished } from '../../src/ledger/counters/wait-for-writer.ts';
import { CYCLE_SECONDS } from '../../src/ledger/cycle.ts';
import { LedgerFolder } from './support.ts';

const ANCHOR = 1_000_000;
const fresh = (): Counters => new Counters(new SharedArrayBuffer(COUNTERS_SIZE_BYTES));

describe('a slot', () => {
  it('can be spent to zero, and then gives the reason for a refusal', () => {
    const counters = fresh();
    expect(counters.charge(1, ANCHOR, ANCHOR)).toBe(CHARGE_REFUSED.damaged);
    counters.reset(1, { cycle: 0, limit: 3, reserved: 0, left: 0 });
    expect(counters.charge(1, ANCHOR, ANCHOR)).toBe(CHARGE_REFUSED.empty);
    expect(counters.publish(1, { cycle: 0, limit: 3, reserved: 2 }, 2)).toBe(true);
    expect([counters.charge(1, ANCHOR, ANCHOR), counters.isLow]).toEqual([2, true]);
    expect(counters.view(1)).toEqual({ cycle: 0, limit: 3, reserved: 2, left: 1 });
    expect([1, 2].map(() => counters.charge(1, ANCHOR, ANCHOR))).toEqual([1, CHARGE_REFUSED.empty]);
    expect(counters.publish(1, { cycle: 0, limit: 3, reserved: 3 }, 1)).toBe(true);
    expect([counters.charge(1, ANCHOR, ANCHOR), counters.isLow]).toEqual([0, false]);
    expect(counters.charge(1, ANCHOR, ANCHOR)).toBe(CHARGE_REFUSED.exhausted);
  });

  it('ends with its cycle, to the second', () => {
    const counters = fresh();
    counters.reset(1, { cycle: 2, limit: 9, reserved: 9, left: 9 });
    const end = ANCHOR + 3 * CYCLE_SECONDS;
    expect(counters.charge(1, ANCHOR, end - 1)).toBe(8);
    expect(counters.charge(1, ANCHOR, end)).toBe(CHARGE_REFUSED.cycleOver);
    expect(counters.charge(1, ANCHOR, ANCHOR - 1)).toBe(7);
  });

  it('gives back what is left, so that the used amount is exact', () => {
    const counters = fresh();
    counters.reset(1, { cycle: 0, limit: 100, reserved: 50, left: 50 });
    for (let i = 0; i < 7; i += 1) counters.charge(1, ANCHOR, ANCHOR);
    expect(counters.withdraw(1)).toEqual({ cycle: 0, limit: 100, reserved: 7, left: 0 });
    expect(counters.charge(1, ANCHOR, ANCHOR)).toBe(CHARGE_REFUSED.empty);
    expect(counters.withdraw(2)).toBeUndefined();
  });

  it('never gives more than was published, however many epochs pass', () => {
    const counters = fresh();
    counters.reset(1, { cycle: 0, limit: 1_000_000, reserved: 0, left: 0 });
    let charged = 0;
    for (let epoch = 1; epoch < 1_000; epoch += 1) {
      counters.publish(1, { cycle: 0, limit: 1_000_000, reserved: 3 * epoch }, 3);
      while (counters.charge(1, ANCHOR, ANCHOR) >= 0) charged += 1;
      expect(charged).toBe(3 * epoch);
    }
  });

  it('is refused if a bit is flipped that would give more than its block; other accounts are not affected', () => {
    const memory = new SharedArrayBuffer(COUNTERS_SIZE_BYTES);
    const counters = new Counters(memory);
    const bytes = new Uint8Array(memory);
    const slotStart = 4096 + 64;
    for (let bit = 0; bit < 64 * 8; bit += 1) {
      for (const id of [1, 2]) counters.reset(id, { cycle: 0, limit: 1_000, reserved: 100, left: 10 });
      counters.charge(1, ANCHOR, ANCHOR);
      bytes[slotStart + (bit >> 3)]! ^= 1 << (bit & 7);
      let charged = 0;
      while (charged < 1_000 && counters.charge(1, ANCHOR, ANCHOR) >= 0) charged += 1;
      expect(charged, `bit ${bit}`).toBeLessThanOrEqual(10);
      expect(counters.charge(2, ANCHOR, ANCHOR)).toBe(909);
    }
  });

  it('shows a change of any published field', () => {
    const memory = new SharedArrayBuffer(COUNTERS_SIZE_BYTES);
    const counters = new Counters(memory);
    const words = new Int32Array(memory, 4096 + 64, 16);
    // Finds the record in use: its bytes change when the slot is written again.
    counters.reset(1, { cycle: 3, limit: 1_000, reserved: 100, left: 10 });
    const inUse = [...words.keys()].filter((at) => at > 0 && words[at] !== 0);
    expect(inUse.length).toBeGreaterThanOrEqual(4);
    fc.assert(
      fc.property(fc.constantFrom(...inUse), fc.integer(), (at, value) => {
        counters.reset(1, { cycle: 3, limit: 1_000, reserved: 100, left: 10 });
        counters.reset(1, { cycle: 3, limit: 1_000, reserved: 100, left: 10 });
        if (words[at] === value) return;
        words[at] = value;
        expect(counters.view(1)).toBeUndefined();
        expect(counters.charge(1, ANCHOR, ANCHOR)).toBe(CHARGE_REFUSED.damaged);
        expect(counters.publish(1, { cycle: 3, limit: 1_000, reserved: 200 }, 100)).toBe(false);
      }),
    );
  });

  it('exists for every account', () => {
    const counters = fresh();
    for (const id of [1, SLOT_COUNT - 1]) {
      counters.reset(id, { cycle: 0, limit: 1e12, reserved: 1e12, left: 2 ** 24 - 1 });
      expect(counters.charge(id, ANCHOR, ANCHOR)).toBe(2 ** 24 - 2);
    }
  });
});

describe('the header', () => {
  it('keeps as much of a long reason as fits', () => {
    const counters = fresh();
    counters.reason = 'x'.repeat(5_000);
    expect(counters.reason).toBe('x'.repeat(1_022));
    expect(counters.view(0)).toBeUndefined();
  });

  it('keeps each of its numbers', () => {
    const counters = fresh();
    const status = { heartbeatMs: 1.5e12, commits: 8, commitMs: 0.5, walBytes: 9 };
    Object.assign(counters, { state: WRITER_STATE.failed, revision: 7, lastSeenSeconds: 3_000_000_000, status });
    counters.nextEpoch();
    expect(counters).toMatchObject({ state: WRITER_STATE.failed, revision: 7, lastSeenSeconds: 3_000_000_000 });
    expect(counters).toMatchObject({ epoch: 1, reason: '', status });
  });
});

describe('the file', () => {
  let folder: LedgerFolder;
  let id: string;
  beforeEach(() => {
    folder = new LedgerFolder();
    id = folder.ledger().read.ledgerId();
    createCounters(folder.file, id).close();
  });
  afterEach(async () => {
    for (const path of countersPaths(folder.file, id)) rmSync(path, { force: true });
    await folder.remove();
  });
  const path = (): string => countersPaths(folder.file, id)[0]!;
  const isBelieved = (): boolean => {
    const opened = openCounters(folder.file, id);
    opened?.close();
    expect(readCounters(folder.file, id) !== undefined).toBe(opened !== undefined);
    return opened !== undefined;
  };

  it('is in memory, readable by its owner only, and trusted', () => {
    expect(path()).toMatch(/^\/dev\/shm\/pagegate-[0-9a-f]{32}-\d+-\d+$/);
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    expect(findCounters(folder.file, id)).toEqual({ path: path(), isInMemory: true });
    expect(isBelieved()).toBe(true);
  });

  it.each([
    ['of another ledger', 8],
    ['of another boot', 24],
    ['of another device', 40],
    ['of another file', 48],
    ['of another layout', 4],
    ['of another kind', 0],
  ])('%s is not trusted', (_what, offset) => {
    const fd = openSync(path(), 'r+');
    const byte = Buffer.alloc(1);
    readSync(fd, byte, 0, 1, offset);
    writeSync(fd, Buffer.from([byte[0]! ^ 1]), 0, 1, offset);
    closeSync(fd);
    expect(isBelieved()).toBe(false);
  });

  it('is not trusted if it was copied or truncated, or is a link or a folder', () => {
    const copy = join(folder.dir, 'copy');
    copyFileSync(path(), copy);
    const opened = openCounters(folder.file, id)!;
    rmSync(path());
    expect(opened.isCurrent()).toBe(false);
    copyFileSync(copy, path());
    expect([isBelieved(), opened.isCurrent()]).toEqual([false, false]);
    opened.close();
    rmSync(path());
    const fd = openSync(path(), 'w');
    writeSync(fd, readFileSync(copy).subarray(0, 4096));
    closeSync(fd);
    expect(isBelieved()).toBe(false);
    rmSync(path());
    symlinkSync(copy, path());
    expect(isBelieved()).toBe(false);
    rmSync(path());
    symlinkSync(dirname(folder.file), path());
    expect(isBelieved()).toBe(false);
  });

  it('differs for a copied folder', () => {
    const other = new LedgerFolder();
    other.ledger();
    copyFileSync(folder.file, other.file);
    expect(countersPaths(other.file, id)[0]).not.toBe(path());
    return other.remove();
  });

  it.runIf(process.getuid?.() === 0)('differs for a snapshot that is mounted next to the original', ({ skip }) => {
    // Two new file systems have the same numbers, like a file system and its snapshot.
    const places = ['one', 'snapshot'].map((name) => join(folder.dir, name));
    try {
      for (const place of places) {
        mkdirSync(place);
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', place], { stdio: 'ignore' });
        mkdirSync(join(place, 'ledger'));
      }
      const folders = places.map((place) => join(place, 'ledger'));
      expect(new Set(folders.map((path) => statSync(path).ino)).size).toBe(1);
      expect(new Set(folders.map((path) => countersPaths(join(path, 'ledger.sqlite'), id)[0])).size).toBe(2);
    } catch (error) {
      if ((error as { status?: number }).status !== undefined) skip();
      throw error;
    } finally {
      for (const place of places) spawnSync('umount', ['-l', place]);
    }
  });
});

describe('a command that waits for the ledger writer', () => {
  const folder = new LedgerFolder();
  const id = folder.ledger().read.ledgerId();
  const opened = createCounters(folder.file, id);
  afterAll(() => {
    opened.close();
    removeCounters(folder.file, id);
    return folder.remove();
  });

  it.each([
    ['with its change', 7, 7, 0],
    ['with that of another command on top', 9, 7, 0],
    ['beyond 32 bits', 2 ** 31 + 1, 2 ** 31 - 1, 0],
    ['without it', 6, 7, 1],
  ])('%s', (_what, published, revision, waits) => {
    opened.counters.status = { ...opened.counters.status, heartbeatMs: Date.now() };
    opened.counters.revision = published;
    // The writer catches up while the command sleeps for the first time.
    const sleep = vi.spyOn(Atomics, 'wait').mockImplementation(() => {
      opened.counters.revision = revision;
      return 'timed-out';
    });
    onTestFinished(() => sleep.mockRestore());
    awaitPublished(folder.file, id, revision);
    expect(sleep).toHaveBeenCalledTimes(waits);
  });
});
