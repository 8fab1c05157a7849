/** Metering in one process: exactness, cycles, failures of the file, recovery. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Committer } from '../../src/ledger/committer.ts';
import { packWord, STATE } from '../../src/ledger/counters.ts';
import { openDatabase } from '../../src/ledger/database.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { ChargeOutcome, Durability, Meter } from '../../src/ledger/meter.ts';
import { usageByDay } from '../../src/ledger/usage.ts';
import { accountOf, chargeOnce, DAY_MS, TestLink, TestRoom } from './support.ts';

let room: TestRoom;
let ledger: Ledger;
let committer: Committer;
let key: string;

async function start(limit: number, durability?: Durability): Promise<Meter> {
  const metered = await room.metered(limit, durability);
  ({ ledger, key, committer } = metered);
  return metered.meter;
}

const charge = async (meter: Meter): Promise<ChargeOutcome> => chargeOnce(meter, accountOf(meter, key));

beforeEach(() => {
  room = new TestRoom();
});
afterEach(() => room.remove());

describe.each(['full', 'relaxed'] as const)('with durability %s', (durability) => {
  it('charges one for each, tells what is left, and refuses beyond the limit', async () => {
    const meter = await start(3, durability);
    expect(await charge(meter)).toEqual({ charged: true, remaining: 2 });
    expect(await charge(meter)).toEqual({ charged: true, remaining: 1 });
    expect(await charge(meter)).toEqual({ charged: true, remaining: 0 });
    expect(await charge(meter)).toEqual({
      charged: false,
      error: 'quota_exhausted',
      quota: {
        plan: 'custom',
        activated: true,
        quota_limit: 3,
        quota_used: 3,
        quota_remaining: 0,
        quota_resets_at: '2026-01-31T00:00:00Z',
      },
    });
  });

  it('lets exactly the last units through when more are in flight over two meters', async () => {
    const one = await start(100, durability);
    const two = await room.meter(committer, { durability });
    const account = accountOf(one, key);
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, (_, i) => chargeOnce(i % 2 === 0 ? one : two, account)),
    );
    const left = outcomes.flatMap((outcome) => (outcome.charged ? [outcome.remaining] : []));
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  it('resets once at the boundary, and a clock set back never opens the old cycle again', async () => {
    const meter = await start(2, durability);
    await charge(meter);
    room.nowMs += 30 * DAY_MS - 1000;
    expect(await charge(meter)).toEqual({ charged: true, remaining: 0 });
    room.nowMs += 1000;
    committer.tick();
    expect(await charge(meter)).toEqual({ charged: true, remaining: 1 });
    room.nowMs -= 20 * DAY_MS;
    expect(await charge(meter)).toEqual({ charged: true, remaining: 0 });
    expect(await charge(meter)).toMatchObject({ charged: false, error: 'quota_exhausted' });
    room.nowMs -= 300 * DAY_MS;
    expect(await charge(meter)).toMatchObject({ charged: false, error: 'quota_exhausted' });
  });

  it('refuses a clock far ahead with a reason, and goes on when it is set right', async () => {
    const meter = await start(2, durability);
    await charge(meter);
    room.nowMs += 500 * DAY_MS;
    expect(await charge(meter)).toEqual({ charged: false, error: 'ledger_unavailable' });
    expect(meter.health().reason).toMatch(/500 days after the ledger was last used/);
    committer.tick();
    expect(meter.health().reason).toMatch(/500 days after/);
    committer.counters.state = STATE.ready;
    committer.counters.lastSeenSeconds = room.nowMs / 1000;
    expect(meter.health().reason).toBe('');
    committer.counters.lastSeenSeconds -= 500 * 86_400;
    committer.counters.state = STATE.failed;
    room.nowMs -= 500 * DAY_MS;
    committer.tick();
    committer.tick();
    expect(await charge(meter)).toEqual({ charged: true, remaining: 0 });
  });
});

describe('accounts seen by a worker', () => {
  it('go on in the next cycle when another worker has opened it', async () => {
    const meter = await start(5);
    await charge(meter);
    committer.counters.replace(1, packWord(1, 1), 2);
    expect(await charge(meter)).toEqual({ charged: true, remaining: 3 });
    expect(committer.counters.word(1)).toBe(packWord(1, 2));
  });

  it('follow an upgrade, a suspension, a rotation and a closure', async () => {
    const meter = await start(1);
    await charge(meter);
    expect(await charge(meter)).toMatchObject({ error: 'quota_exhausted' });
    const change = (task: () => unknown): void => {
      task();
      committer.publishRevision();
    };
    change(() => ledger.subscribe('acme', 'custom', 'INV-2', 3));
    expect(await charge(meter)).toEqual({ charged: true, remaining: 1 });
    change(() => ledger.setActive('acme', false));
    expect(meter.authenticate(key)).toMatchObject({ kind: 'account', activated: false, quota: { quota_used: 2 } });
    expect(await charge(meter)).toMatchObject({ error: 'not_activated' });
    change(() => ledger.setActive('acme', true));
    change(() => ledger.rotateKey('acme', 60));
    expect(meter.authenticate(key).kind).toBe('account');
    room.nowMs += 60_000;
    expect(meter.authenticate(key).kind).toBe('unknown');
    key = ledger.showKey('acme').key;
    expect(meter.authenticate(key).kind).toBe('account');
    const revoked = key;
    change(() => {
      key = ledger.rotateKey('acme', 60).key;
    });
    change(() => ledger.revokeKey('acme', ledger.view('acme').keys.at(-2)!.id));
    expect([revoked, key].map((one) => meter.authenticate(one).kind)).toEqual(['unknown', 'account']);
    change(() => ledger.revokeKey('acme', ledger.view('acme').keys.at(-1)!.id));
    expect(meter.authenticate(key).kind).toBe('unknown');
    key = ledger.rotateKey('acme').key;
    change(() => ledger.closeAccount('acme'));
    expect(meter.authenticate(key).kind).toBe('unknown');
  });

  it('are neither known nor unknown while the ledger writer starts', async () => {
    const meter = await start(1);
    committer.counters.state = STATE.starting;
    expect(() => meter.authenticate(key)).toThrow(expect.objectContaining({ code: 'ledger_unavailable' }));
    expect(meter.health()).toMatchObject({ ready: false, reason: 'The ledger writer is starting.' });
    committer.counters.state = STATE.ready;
    expect(meter.authenticate(key).kind).toBe('account');
  });

  it('stay refused once they have expired, when the clock is set back or the server starts anew', async () => {
    const meter = await start(9);
    const { key: second } = ledger.rotateKey('acme', 3600);
    committer.publishRevision();
    const { key: third } = ledger.rotateKey('acme', 3660);
    committer.publishRevision();
    expect([key, second, third].map((one) => meter.authenticate(one).kind)).not.toContain('unknown');
    room.nowMs += 3_600_000;
    committer.tick();
    // Seen, and not yet written down.
    room.nowMs += 50_000;
    committer.tick();
    room.nowMs += 10_000;
    committer.tick();
    room.nowMs -= 7_200_000;
    committer.tick();
    const expectKeys = (one: Meter): void =>
      expect([key, second, third].map((text) => one.authenticate(text).kind)).toEqual([
        'unknown',
        'unknown',
        'account',
      ]);
    expectKeys(meter);
    committer.open();
    expectKeys(await room.meter(committer));
    expect(ledger.showKey('acme').key).toBe(third);
    const [, , last] = ledger.view('acme').keys;
    expect(last!.expiresAt).toBeNull();
    // The clock is two hours behind the latest moment seen: an overlap that reaches beyond it goes on, a shorter one is over.
    const { key: fourth } = ledger.rotateKey('acme', 3 * 3600);
    committer.publishRevision();
    expectKeys(meter);
    const { key: fifth } = ledger.rotateKey('acme', 3600);
    committer.publishRevision();
    expect([third, fourth, fifth].map((text) => meter.authenticate(text).kind)).toEqual([
      'unknown',
      'unknown',
      'account',
    ]);
  });

  it('stay refused after a restart by what the counters have seen, unless nobody can have seen it', async () => {
    await start(9);
    const startSeconds = room.nowMs / 1000;
    ledger.rotateKey('acme', 3630);
    room.nowMs += 3_600_000;
    committer.tick();
    room.nowMs += 50_000;
    committer.tick();
    room.nowMs -= 7_200_000;
    const reopen = (): number => (committer.open() ? committer.counters.lastSeenSeconds - startSeconds : -1);
    expect(reopen()).toBe(3650);
    expect((await room.meter(committer)).authenticate(key).kind).toBe('unknown');
    committer.counters.lastSeenSeconds = startSeconds + 3720;
    expect(reopen()).toBe(3720);
    committer.counters.lastSeenSeconds = startSeconds + 3721;
    expect(reopen()).toBe(3600);
  });

  it('are not asked for with a key whose checksum is wrong', async () => {
    const meter = await start(1);
    await meter.flush();
    committer.close = () => {};
    rmSync(room.file);
    for (const end of ['-wal', '-shm']) rmSync(`${room.file}${end}`, { force: true });
    expect(meter.authenticate(`${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`).kind).toBe('unknown');
    // The same ledger does answer "cannot be asked" for a key that could exist.
    expect(() => meter.authenticate(key)).toThrow(expect.objectContaining({ code: 'ledger_unavailable' }));
  });
});

describe('usage by day', () => {
  it('counts every charge on its day, keeps 400 days and no more', async () => {
    const meter = await start(1000, 'relaxed');
    for (let day = 0; day < 410; day += 1) {
      for (let i = 0; i <= day % 3; i += 1) await charge(meter);
      committer.commit();
      room.nowMs += DAY_MS;
      committer.tick();
    }
    await charge(meter);
    committer.commit();
    const days = usageByDay(ledger, 'acme', 400, room.nowMs);
    expect(days).toHaveLength(400);
    expect(days.at(-1)).toEqual({ account: 'acme', day: '2027-02-15', lookups: 1 });
    expect(days.at(-2)?.lookups).toBe((409 % 3) + 1);
    const kept = ledger.database.prepare('SELECT count(*) FROM usage_days').pluck().get();
    expect(kept).toBeLessThanOrEqual(400);
    expect(() => usageByDay(ledger, 'acme', 401)).toThrow(expect.objectContaining({ code: 'usage' }));
    expect(() => usageByDay(ledger, 'nobody', 1)).toThrow(expect.objectContaining({ code: 'account_not_found' }));
  });

  it('never goes back, whatever the clock and the counters do', async () => {
    const meter = await start(9);
    await charge(meter);
    await charge(meter);
    room.nowMs -= DAY_MS;
    await charge(meter);
    expect(usageByDay(ledger, 'acme', 9, room.nowMs)).toEqual([{ account: 'acme', day: '2026-01-01', lookups: 3 }]);
    const saved = (): unknown => ledger.database.prepare('SELECT cycle, used, total, day_used FROM meters').raw().get();
    for (const [word, total, expected] of [
      [packWord(0, 2), 4, [0, 3, 4, 4]],
      [packWord(1, 1), 1, [1, 1, 4, 4]],
    ] as const) {
      committer.counters.replace(1, word, total);
      expect(committer.commit(true)).toBe(true);
      expect(saved()).toEqual(expected);
    }
  });
});

describe('a ledger that cannot be written', () => {
  it('locked: takes the charge back, says why, charges nothing, and goes on by itself', async () => {
    const meter = await start(5);
    await charge(meter);
    const other = openDatabase(room.file);
    other.exec('BEGIN IMMEDIATE');
    expect(await charge(meter)).toEqual({ charged: false, error: 'ledger_unavailable' });
    expect(meter.health()).toMatchObject({ ready: false, reason: expect.stringContaining('SQLITE_BUSY') });
    for (let i = 0; i < 10; i += 1)
      expect(await charge(meter)).toEqual({ charged: false, error: 'ledger_unavailable' });
    committer.tick();
    committer.tick();
    expect(meter.health().ready).toBe(false);
    other.exec('ROLLBACK');
    other.close();
    committer.tick();
    committer.tick();
    expect(meter.health()).toMatchObject({ ready: true, reason: '' });
    expect(await charge(meter)).toEqual({ charged: true, remaining: 3 });
  });

  it('locked: what a commit could not write is in the next one', async () => {
    await charge(await start(5, 'relaxed'));
    const other = openDatabase(room.file);
    other.exec('BEGIN IMMEDIATE');
    expect(committer.commit()).toBe(false);
    other.exec('ROLLBACK');
    other.close();
    expect(committer.commit()).toBe(true);
    expect(ledger.read.cycleUsage(1)).toEqual({ cycle: 0, used: 1 });
  });

  it('damaged: says so and charges nothing, until a sound file is there', async () => {
    const meter = await start(5);
    await charge(meter);
    ledger.close();
    committer.commit(true);
    renameSync(room.file, `${room.file}.sound`);
    for (const end of ['-wal', '-shm']) renameSync(`${room.file}${end}`, `${room.file}.sound${end}`);
    writeFileSync(room.file, 'this is no database, but long enough to be looked at. '.repeat(100));
    committer.tick();
    committer.tick();
    expect(await charge(meter)).toEqual({ charged: false, error: 'ledger_unavailable' });
    expect(meter.health().reason).toMatch(/SQLITE_NOTADB/);
    for (const end of ['', '-wal', '-shm']) renameSync(`${room.file}.sound${end}`, `${room.file}${end}`);
    committer.tick();
    committer.tick();
    expect(await charge(meter)).toEqual({ charged: true, remaining: 3 });
  });

  it('a ledger writer that does not answer: the charge is taken back in time, none is made until it answers again', async () => {
    await start(5);
    const link = new TestLink(committer);
    const meter = await room.meter(committer, { timeoutMs: 1_000, link });
    link.isCut = true;
    expect(await charge(meter)).toEqual({ charged: false, error: 'ledger_unavailable' });
    expect(await charge(meter)).toEqual({ charged: false, error: 'ledger_unavailable' });
    expect(meter.health().reason).toMatch(/has not answered/);
    expect(meter.quotaLeft(accountOf(meter, key)).quota_used).toBe(0);
    link.isCut = false;
    await expect.poll(() => meter.health().ready).toBe(true);
    expect(await charge(meter)).toEqual({ charged: true, remaining: 4 });
  });
});

describe('the write-ahead log', () => {
  it('stays small under sustained load, and its size is shown', async () => {
    const meter = await start(1_000_000, 'relaxed');
    for (let i = 0; i < 4000; i += 1) {
      await charge(meter);
      committer.commit();
    }
    committer.tick();
    expect(meter.health().walBytes).toBeGreaterThan(0);
    expect(meter.health().walBytes).toBeLessThan(8 * 1024 * 1024);
    expect(meter.health().commits).toBeGreaterThan(4000);
  });
});
