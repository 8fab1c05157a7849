/** Metering in one process: exact counts, cycles, failures of the file, recovery. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { WRITER_STATE } from '../../src/ledger/counters/counters.ts';
import type { Meter } from '../../src/ledger/meter.ts';
import { openDatabase } from '../../src/ledger/store/database.ts';
import { usageByDay } from '../../src/ledger/usage.ts';
import {
  accountOf,
  chargeOnce,
  DAY_MS,
  LedgerFolder,
  type Outcome,
  type TestLedger,
  TestLink,
  type TestReserver,
} from './support.ts';

let folder: LedgerFolder;
let ledger: TestLedger;
let reserver: TestReserver;
let key: string;

async function start(limit: number): Promise<Meter> {
  const metered = await folder.metered(limit);
  ({ ledger, key, reserver } = metered);
  return metered.meter;
}

const charge = async (meter: Meter): Promise<Outcome> => chargeOnce(meter, accountOf(meter, key));

beforeEach(() => {
  folder = new LedgerFolder();
});
afterEach(() => folder.remove());

describe('a charge', () => {
  it('counts one lookup, returns what is left, and is refused beyond the limit', async () => {
    const meter = await start(3);
    expect(await charge(meter)).toEqual(2);
    expect(await charge(meter)).toEqual(1);
    expect(await charge(meter)).toEqual(0);
    expect(await charge(meter)).toBe('quota_exhausted');
    expect(meter.quotaLeft(accountOf(meter, key))).toEqual({
      plan: 'custom',
      activated: true,
      quota_limit: 3,
      quota_used: 3,
      quota_remaining: 0,
      quota_resets_at: '2026-01-31T00:00:00Z',
    });
  });

  it('lets exactly the last lookups through if more are in flight over two meters', async () => {
    const one = await start(100);
    const two = await folder.meter(reserver);
    const account = accountOf(one, key);
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, (_, i) => chargeOnce(i % 2 === 0 ? one : two, account)),
    );
    const left = outcomes.filter((outcome) => typeof outcome === 'number');
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  it('resets once at the boundary; a clock that is set back never reopens the previous cycle', async () => {
    const meter = await start(2);
    await charge(meter);
    folder.nowMs += 30 * DAY_MS - 1000;
    expect(await charge(meter)).toEqual(0);
    folder.nowMs += 1000;
    reserver.tick();
    expect(await charge(meter)).toEqual(1);
    folder.nowMs -= 20 * DAY_MS;
    expect(await charge(meter)).toEqual(0);
    expect(await charge(meter)).toBe('quota_exhausted');
    folder.nowMs -= 300 * DAY_MS;
    expect(await charge(meter)).toBe('quota_exhausted');
  });

  it('is refused with a reason if the clock is far ahead, and works again when it is corrected', async () => {
    const meter = await start(2);
    await charge(meter);
    folder.nowMs += 500 * DAY_MS;
    expect(await charge(meter)).toBe('ledger_unavailable');
    expect(meter.health().reason).toMatch(/500 days after the ledger was last used/);
    reserver.tick();
    expect(meter.health().reason).toMatch(/500 days after/);
    folder.nowMs -= 500 * DAY_MS;
    reserver.tick();
    reserver.tick();
    expect(await charge(meter)).toEqual(0);
  });
});

describe('accounts seen by a worker', () => {
  it('follow an upgrade, a suspension, a rotation and a closure', async () => {
    const meter = await start(1);
    await charge(meter);
    expect(await charge(meter)).toBe('quota_exhausted');
    const change = async (task: () => Promise<unknown>): Promise<void> => {
      await task();
      reserver.publishChanges();
    };
    await change(() => ledger.subscribe('acme', 'custom', 'INV-2', 3));
    expect(await charge(meter)).toEqual(1);
    await change(() => ledger.setActive('acme', false));
    expect(meter.authenticate(key)).toMatchObject({ kind: 'account', activated: false, quota: { quota_used: 2 } });
    expect(await charge(meter)).toBe('not_activated');
    await change(() => ledger.setActive('acme', true));
    await change(() => ledger.rotateKey('acme', 60));
    expect(meter.authenticate(key).kind).toBe('account');
    folder.nowMs += 60_000;
    expect(meter.authenticate(key).kind).toBe('unknown');
    key = (await ledger.showKey('acme')).key;
    expect(meter.authenticate(key).kind).toBe('account');
    const revoked = key;
    await change(async () => {
      key = (await ledger.rotateKey('acme', 60)).key;
    });
    await change(async () => await ledger.revokeKey('acme', (await ledger.view('acme')).keys.at(-2)!.id));
    expect([revoked, key].map((one) => meter.authenticate(one).kind)).toEqual(['unknown', 'account']);
    await change(async () => await ledger.revokeKey('acme', (await ledger.view('acme')).keys.at(-1)!.id));
    expect(meter.authenticate(key).kind).toBe('unknown');
    key = (await ledger.rotateKey('acme')).key;
    await change(() => ledger.closeAccount('acme'));
    expect(meter.authenticate(key).kind).toBe('unknown');
  });

  it('are neither known nor unknown while the ledger writer starts', async () => {
    const meter = await start(1);
    expect(meter.authenticate(key).kind).toBe('account');
    reserver.counters!.state = WRITER_STATE.starting;
    expect(meter.health()).toMatchObject({ ready: false, reason: 'The ledger writer is starting.' });
    reserver.abandon();
    folder.loseCounters();
    const early = await folder.meter(reserver);
    expect(() => early.authenticate(key)).toThrow(expect.objectContaining({ code: 'ledger_unavailable' }));
    expect(early.health()).toMatchObject({ ready: false, reason: 'The ledger writer is starting.' });
    reserver.open();
    await expect.poll(() => early.health().ready).toBe(true);
    expect(early.authenticate(key).kind).toBe('account');
    expect(await charge(early)).toBe(0);
  });

  it('stay refused after their keys expired, even if the clock is set back or the server restarts', async () => {
    const meter = await start(9);
    const { key: second } = await ledger.rotateKey('acme', 3600);
    reserver.publishChanges();
    const { key: third } = await ledger.rotateKey('acme', 3660);
    reserver.publishChanges();
    expect([key, second, third].map((one) => meter.authenticate(one).kind)).not.toContain('unknown');
    folder.nowMs += 3_600_000;
    reserver.tick();
    // The meter has seen this moment but not yet saved it.
    folder.nowMs += 50_000;
    reserver.tick();
    folder.nowMs += 10_000;
    reserver.tick();
    folder.nowMs -= 7_200_000;
    reserver.tick();
    const expectKeys = (one: Meter): void =>
      expect([key, second, third].map((text) => one.authenticate(text).kind)).toEqual([
        'unknown',
        'unknown',
        'account',
      ]);
    expectKeys(meter);
    reserver.open();
    expectKeys(await folder.meter(reserver));
    expect((await ledger.showKey('acme')).key).toBe(third);
    const [, , last] = (await ledger.view('acme')).keys;
    expect(last!.expiresAt).toBeNull();
    // The clock is two hours behind the latest moment seen. An overlap that reaches beyond that moment continues, a shorter one is over.
    const { key: fourth } = await ledger.rotateKey('acme', 3 * 3600);
    reserver.publishChanges();
    expectKeys(meter);
    const { key: fifth } = await ledger.rotateKey('acme', 3600);
    reserver.publishChanges();
    expect([third, fourth, fifth].map((text) => meter.authenticate(text).kind)).toEqual([
      'unknown',
      'unknown',
      'account',
    ]);
  });

  it('are not looked up with a key whose checksum is wrong', async () => {
    const meter = await start(1);
    await meter.flush();
    rmSync(folder.file);
    for (const end of ['-wal', '-shm']) rmSync(`${folder.file}${end}`, { force: true });
    expect(meter.authenticate(`${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`).kind).toBe('unknown');
    // For a key that could exist, the same ledger does report that it is unavailable.
    expect(() => meter.authenticate(key)).toThrow(expect.objectContaining({ code: 'ledger_unavailable' }));
  });
});

describe('usage by day', () => {
  it('counts every charge on its day, and keeps exactly 400 days', async () => {
    const meter = await start(1000);
    for (let day = 0; day < 410; day += 1) {
      for (let i = 0; i <= day % 3; i += 1) await charge(meter);
      folder.nowMs += 1_000;
      reserver.tick();
      folder.nowMs += DAY_MS - 1_000;
      reserver.tick();
    }
    await charge(meter);
    folder.nowMs += 1_000;
    reserver.tick();
    const days = await usageByDay(ledger, 'acme', 400, folder.nowMs);
    expect(days).toHaveLength(400);
    expect(days.at(-1)).toEqual({ account: 'acme', day: '2027-02-15', lookups: 1 });
    expect(days.at(-2)?.lookups).toBe((409 % 3) + 1);
    const kept = ledger.database.prepare('SELECT count(*) FROM usage_days').pluck().get();
    expect(kept).toBeLessThanOrEqual(400);
    await expect(usageByDay(ledger, 'acme', 401)).rejects.toThrow(expect.objectContaining({ code: 'usage' }));
    await expect(usageByDay(ledger, 'nobody', 1)).rejects.toThrow(
      expect.objectContaining({ code: 'account_not_found' }),
    );
  });

  it('never decreases, whatever the clock and the counters do', async () => {
    const meter = await start(9);
    await charge(meter);
    await charge(meter);
    folder.nowMs -= DAY_MS;
    await charge(meter);
    reserver.tick();
    expect(await usageByDay(ledger, 'acme', 9, folder.nowMs)).toEqual([
      { account: 'acme', day: '2026-01-01', lookups: 3 },
    ]);
  });
});

describe('a ledger that cannot be written', () => {
  it('if locked: spends what is reserved, then refuses, gives the reason from the first failed commit on, and recovers', async () => {
    const meter = await start(1000);
    expect(await charge(meter)).toBe(999);
    const other = openDatabase(folder.file);
    other.exec('BEGIN IMMEDIATE');
    const outcomes: Outcome[] = [];
    for (let i = 0; i < 20; i += 1) outcomes.push(await charge(meter));
    // One percent of the limit is reserved ahead, and less than half of it was used when the lock came.
    expect(outcomes.filter((outcome) => typeof outcome === 'number')).toEqual([
      998, 997, 996, 995, 994, 993, 992, 991, 990,
    ]);
    expect(outcomes.at(-1)).toBe('ledger_unavailable');
    expect(meter.health()).toMatchObject({ ready: false, reason: expect.stringContaining('SQLITE_BUSY') });
    reserver.tick();
    expect(meter.health().ready).toBe(false);
    other.exec('ROLLBACK');
    other.close();
    reserver.tick();
    expect(meter.health()).toMatchObject({ ready: true, reason: '' });
    expect(await charge(meter)).toBe(989);
    expect((await ledger.view('acme')).quota.quota_used).toBe(11);
  });

  it('if damaged: reports it and charges nothing until there is an intact file', async () => {
    const meter = await start(1000);
    await charge(meter);
    ledger.close();
    reserver.tick();
    renameSync(folder.file, `${folder.file}.intact`);
    for (const end of ['-wal', '-shm']) renameSync(`${folder.file}${end}`, `${folder.file}.intact${end}`);
    writeFileSync(folder.file, 'this is not a ledger, but long enough to be looked at. '.repeat(100));
    folder.nowMs += 1_000;
    reserver.tick();
    reserver.tick();
    expect(await charge(meter)).toBe('ledger_unavailable');
    expect(meter.health().reason).toMatch(/SQLITE_NOTADB/);
    for (const end of ['', '-wal', '-shm']) renameSync(`${folder.file}.intact${end}`, `${folder.file}${end}`);
    reserver.tick();
    expect(await charge(meter)).toBe(998);
  });

  it('if the ledger writer does not answer: the first request waits until the timeout, the next ones do not wait, until it answers again', async () => {
    await start(5);
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const link = new TestLink(reserver);
    const meter = await folder.meter(reserver, { timeoutMs: 500, link });
    link.isCut = true;
    const outcomes: Outcome[] = [];
    const charged = charge(meter).then((outcome) => outcomes.push(outcome));
    await vi.advanceTimersByTimeAsync(400);
    expect(outcomes).toEqual([]);
    await vi.advanceTimersByTimeAsync(100);
    await charged;
    expect(outcomes).toEqual(['ledger_unavailable']);
    expect(meter.charge(accountOf(meter, key))).toBe('ledger_unavailable');
    expect(meter.health().reason).toMatch(/has not answered/);
    expect(meter.quotaLeft(accountOf(meter, key)).quota_used).toBe(0);
    link.isCut = false;
    await vi.advanceTimersByTimeAsync(100);
    await new Promise(setImmediate);
    expect(meter.health().ready).toBe(true);
    expect(await charge(meter)).toBe(4);
  });
});

describe('the write-ahead log', () => {
  it('stays small under sustained load, and its size is reported', async () => {
    const meter = await start(1_000_000);
    for (let i = 0; i < 4_000; i += 1) {
      await charge(meter);
      folder.nowMs += 1_000;
      reserver.tick();
    }
    expect(meter.health().wal_bytes).toBeGreaterThan(0);
    expect(meter.health().wal_bytes).toBeLessThan(8 * 1024 * 1024);
    expect(meter.health().commits).toBeGreaterThan(4_000);
  });
});
