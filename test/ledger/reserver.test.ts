/** What the ledger writer reserves, publishes, repairs and corrects, and the effect of a flipped bit in the shared counters. */
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readAudit } from '../../src/ledger/audit.ts';
import { COUNTERS_SIZE_BYTES, Counters, WRITER_STATE } from '../../src/ledger/counters/counters.ts';
import type { Meter } from '../../src/ledger/meter.ts';
import { openDatabase } from '../../src/ledger/store/database.ts';
import { usageByDay } from '../../src/ledger/usage.ts';
import { blockSize, ChargeRate } from '../../src/ledger/writer/block-size.ts';
import { Reservations } from '../../src/ledger/writer/reservations.ts';
import { Random } from '../../tools/random.ts';
import { SEED } from '../support/seed.ts';
import { accountOf, chargeOnce, DAY_MS, LedgerFolder, type TestLedger, type TestReserver } from './support.ts';

let folder: LedgerFolder;
let ledger: TestLedger;
let reserver: TestReserver;
let meter: Meter;
let key: string;

const start = async (limit: number): Promise<void> => {
  ({ ledger, reserver, meter, key } = await folder.metered(limit));
};
const charge = () => chargeOnce(meter, accountOf(meter, key));
const row = (): Record<string, number> =>
  ledger.database.prepare('SELECT cycle, used, reserved, total FROM meters WHERE account_id = 1').get() as never;

beforeEach(() => {
  folder = new LedgerFolder();
});
afterEach(() => folder.remove());

describe('a block', () => {
  it.each([
    [0, 1_000_000, 64],
    [500, 1_000_000, 500],
    [50_000, 1_000_000, 10_000],
    [50_000, 1e12, 50_000],
    [1e9, 1e12, 8_388_607],
    [1_000, 1_000, 10],
    [0, 1_000, 10],
    [0, 199, 1],
    [0, 1, 1],
  ])('has, at %i lookups a second with a limit of %i, a size of %i', (rate, limit, expected) => {
    expect(blockSize(rate, limit)).toBe(expected);
  });

  it('follows the rate: up at once, down by halves', () => {
    const rate = new ChargeRate();
    rate.observe(1_000, 10_000);
    expect(rate.perSecond).toBe(0);
    rate.observe(1_500, 11_000);
    expect(rate.perSecond).toBe(500);
    rate.observe(1_501, 11_001);
    expect(rate.perSecond).toBe(500);
    rate.observe(1_600, 12_000);
    expect(rate.perSecond).toBe(300);
    rate.observe(0, 13_000);
    rate.observe(40, 14_000);
    expect(rate.perSecond).toBeLessThan(150);
  });

  it('is reserved before it is spent, is topped up when half is used, and shrinks to what is left', async () => {
    await start(1_000);
    for (let i = 1; i <= 1_000; i += 1) {
      expect(await charge()).toBe(1_000 - i);
      const { reserved } = row();
      expect(reserved).toBeGreaterThanOrEqual(i);
      expect(reserved).toBeLessThanOrEqual(Math.min(1_000, i + 10));
    }
    expect(await charge()).toBe('quota_exhausted');
  });

  it('is kept for an idle account, so that its next request does not wait', async () => {
    await start(10_000);
    await charge();
    folder.nowMs += 20 * DAY_MS;
    for (let i = 0; i < 10; i += 1) reserver.tick();
    expect(meter.charge(accountOf(meter, key))).toBe(9_998);
  });

  it('of the next cycle is not reserved before the boundary; a downgrade counts from there', async () => {
    await start(1_000);
    await charge();
    await ledger.subscribe('acme', 'custom', 'INV-2', 500);
    reserver.publishChanges();
    folder.nowMs += 30 * DAY_MS - 1;
    reserver.tick();
    expect(row()).toMatchObject({ cycle: 0 });
    expect(await charge()).toBe(998);
    folder.nowMs += 1;
    expect(meter.charge(accountOf(meter, key))).toBe('wait');
    expect(await charge()).toBe(499);
    expect(row()).toMatchObject({ cycle: 1, used: 0, reserved: 5, total: 2 });
  });
});

describe('an orderly stop', () => {
  it('leaves exactly what was used, with nothing reserved', async () => {
    await start(10_000);
    for (let i = 0; i < 7; i += 1) await charge();
    reserver.close();
    expect(row()).toMatchObject({ used: 7, reserved: 7, total: 7 });
    expect((await readAudit(ledger, 'acme', 10)).map(({ action }) => action)).not.toContain('ledger.recover');
  });
});

describe('a damaged slot', () => {
  /** Flips bits in the first account's slot of the file. */
  function damage(byte: number, mask = 0x80): void {
    const fd = openSync(folder.countersFile, 'r+');
    const at = 4096 + 64 + byte;
    const bytes = Buffer.alloc(1);
    readSync(fd, bytes, 0, 1, at);
    bytes[0]! ^= mask;
    writeSync(fd, bytes, 0, 1, at);
    closeSync(fd);
  }

  it.each([0, 1, 2, 3, 12, 20, 30, 38, 40, 45, 50, 52, 57, 62])(
    'at byte %i is repaired automatically, for that account alone, and costs at most a block',
    async (byte) => {
      await start(10_000);
      await ledger.createAccount('other');
      const other = (await ledger.subscribe('other', 'custom', 'INV-2', 10_000)).issued!.key;
      reserver.publishChanges();
      for (let i = 0; i < 5; i += 1) {
        await charge();
        await chargeOnce(meter, accountOf(meter, other));
      }
      damage(byte);
      const left = await charge();
      expect(left).toBeLessThanOrEqual(9_994);
      expect(left).toBeGreaterThanOrEqual(9_994 - 100);
      expect(await chargeOnce(meter, accountOf(meter, other))).toBe(9_994);
      folder.nowMs += 1_000;
      reserver.tick();
      expect(row()['used']).toBe(10_000 - Number(left));
      const repairs = (await readAudit(ledger, 'acme', 10)).filter(({ action }) => action === 'ledger.repair_slot');
      expect(repairs.length).toBe(left === 9_994 ? 0 : 1);
      expect((await readAudit(ledger, 'other', 10)).filter(({ actor }) => actor === 'ledger writer')).toEqual([]);
    },
  );

  it('is found by the ledger writer itself, within a second', async () => {
    await start(10_000);
    await charge();
    damage(0);
    damage(3);
    folder.nowMs += 1_000;
    reserver.tick();
    expect(row()).toMatchObject({ used: 64, reserved: 64 });
    expect(meter.quotaLeft(accountOf(meter, key)).quota_used).toBe(64);
    expect((await readAudit(ledger, 'acme', 1))[0]).toMatchObject({
      action: 'ledger.repair_slot',
      actor: 'ledger writer',
    });
  });

  it('is found at the next start', async () => {
    await start(10_000);
    await charge();
    reserver.end();
    damage(41);
    expect(folder.reserver().open()).toBe(true);
    expect(row()).toMatchObject({ used: 64, reserved: 64, total: 64 });
  });
});

describe('a flipped bit anywhere in the shared file while in use', () => {
  it('gives no account more than a limit and a block, affects no other account, and the next start repairs it', async () => {
    await start(400);
    await ledger.createAccount('other');
    const other = (await ledger.subscribe('other', 'custom', 'INV-2', 1_000_000)).issued!.key;
    reserver.publishChanges();
    const random = new Random(SEED);
    const fd = openSync(folder.countersFile, 'r+');
    const word = Buffer.alloc(1);
    let served = 0;
    for (let round = 0; round < 400; round += 1) {
      // Mostly in used parts: the header's fields and the first account's slot.
      const spots = [random.below(160), 4096 + 64 + random.below(64), random.below(COUNTERS_SIZE_BYTES)];
      const at = spots[random.below(3)]!;
      readSync(fd, word, 0, 1, at);
      word[0]! ^= 1 << random.below(8);
      writeSync(fd, word, 0, 1, at);
      if (random.below(3) === 0) reserver.tick();
      const outcome = await charge();
      if (typeof outcome === 'number') served += 1;
      const theirs = await chargeOnce(meter, accountOf(meter, other));
      expect(typeof theirs, `byte ${at}: ${String(theirs)}`).toBe('number');
      folder.nowMs += 100;
    }
    closeSync(fd);
    expect(served).toBeLessThanOrEqual(400 + 4);
    reserver.end();
    const next = folder.reserver();
    expect(next.open()).toBe(true);
    expect(next.counters?.state).toBe(WRITER_STATE.ready);
    const { used, reserved } = row();
    expect(used).toBeGreaterThanOrEqual(Math.min(served, 400));
    expect(reserved).toBeLessThanOrEqual(400);
    expect((await ledger.view('other')).quota.quota_used).toBeGreaterThanOrEqual(400);
  });
});

describe('a correction', () => {
  it('gives lookups back while the server runs, is audited, and lets the account continue', async () => {
    await start(5);
    for (let i = 0; i < 5; i += 1) await charge();
    expect(await charge()).toBe('quota_exhausted');
    await ledger.correct('acme', { credit: 2 }, 'lost host');
    reserver.publishChanges();
    expect(row()).toMatchObject({ used: 3 });
    expect([await charge(), await charge(), await charge()]).toEqual([1, 0, 'quota_exhausted']);
    const [done, asked] = await readAudit(ledger, 'acme', 2);
    expect(asked!.action).toBe('account.correct {"credit":2} lost host');
    expect(done).toMatchObject({ actor: 'ledger writer', action: 'ledger.correct' });
    expect([done!.before, done!.after].map((text) => JSON.parse(text!).used)).toEqual([5, 3]);
  });

  it('moves a meter to another cycle, also to an earlier one', async () => {
    await start(100);
    folder.nowMs += 31 * DAY_MS;
    await charge();
    await ledger.correct('acme', { cycle: 0, used: 60 }, 'wrong clock');
    folder.nowMs -= 31 * DAY_MS;
    reserver.publishChanges();
    expect(await charge()).toBe(39);
    expect(row()).toMatchObject({ cycle: 0 });
  });

  it('does not change the usage by day, even right after midnight', async () => {
    await start(100);
    for (let i = 0; i < 3; i += 1) await charge();
    folder.nowMs += 1_000;
    reserver.tick();
    folder.nowMs += DAY_MS;
    for (let i = 0; i < 2; i += 1) await charge();
    await ledger.correct('acme', { credit: 1 }, 'why');
    reserver.publishChanges();
    const days = (await usageByDay(ledger, 'acme', 2, folder.nowMs)).map(({ lookups }) => lookups);
    expect([days, row()['total']]).toEqual([[3, 2], 5]);
  });

  it('waits for a ledger that cannot be written, and is then applied once', async () => {
    await start(100);
    for (let i = 0; i < 50; i += 1) await charge();
    await ledger.correct('acme', { credit: 10 }, 'why');
    const other = openDatabase(folder.file);
    other.exec('BEGIN IMMEDIATE');
    reserver.publishChanges();
    expect(reserver.state.ready).toBe(false);
    other.exec('ROLLBACK');
    other.close();
    reserver.tick();
    reserver.tick();
    expect(row()['used']).toBe(40);
    expect(await charge()).toBe(59);
  });

  it.each([
    ['lookups given back', { credit: 20 }, { cycle: 0, used: 10, total: 30 }],
    ['another number', { used: 5 }, { cycle: 0, used: 5, total: 30 }],
  ])('is kept if the ledger writer is killed after its commit: %s', async (_name, wanted, expected) => {
    await start(1_000);
    for (let i = 0; i < 30; i += 1) await charge();
    await ledger.correct('acme', wanted, 'why');
    const killed = vi.spyOn(Counters.prototype, 'reset').mockImplementation(() => {
      throw new Error('killed');
    });
    reserver.publishChanges();
    killed.mockRestore();
    expect(row()).toMatchObject(expected);
    reserver.abandon();
    expect(folder.reserver().open()).toBe(true);
    expect(row()).toMatchObject(expected);
  });

  it('is made once if the ledger writer is killed before its commit, and charges nothing', async () => {
    await start(1_000);
    for (let i = 0; i < 30; i += 1) await charge();
    await ledger.correct('acme', { credit: 20 }, 'why');
    const killed = vi.spyOn(Reservations.prototype, 'correct').mockImplementation(function kill(this: Reservations) {
      this.counters?.forget(1);
      throw new Error('killed');
    });
    reserver.publishChanges();
    killed.mockRestore();
    reserver.abandon();
    const next = folder.reserver();
    expect(next.open()).toBe(true);
    next.tick();
    expect(row()).toMatchObject({ used: 10, total: 30 });
  });

  it('is refused by the ledger itself without a correction', async () => {
    await start(100);
    await charge();
    folder.nowMs += 1_000;
    reserver.tick();
    const set = (text: string) => () => ledger.database.exec(`UPDATE meters SET ${text}`);
    expect(set('used = 0')).toThrow(/never goes back/);
    expect(set('cycle = 0, used = reserved + 1')).toThrow(/more than reserved/);
  });
});
