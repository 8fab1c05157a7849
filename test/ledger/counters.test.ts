/** The counters that workers and ledger writer share: what they hold, and whose they are. */
import { copyFileSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  countersFile,
  openCounters,
  packWord,
  peekCounter,
  readCountersOwner,
  STATE,
  unpackWord,
} from '../../src/ledger/counters.ts';
import { accountOf, chargeOnce, TestRoom } from './support.ts';

let room: TestRoom;
beforeEach(() => {
  room = new TestRoom();
  // Counters lie beside a ledger.
  room.ledger();
});
afterEach(() => room.remove());

describe('the shared counters', () => {
  it('pack a cycle and its use so that later is greater', () => {
    expect(unpackWord(packWord(12, 345))).toEqual({ cycle: 12, used: 345 });
    expect(packWord(1, 0) > packWord(0, 1_000_000_000_000)).toBe(true);
    expect(packWord(3, 5) > packWord(3, 4)).toBe(true);
  });

  it('made anew hold nothing, and the numbers of commits go on unless they cannot be true', () => {
    const id = room.ledger().read.ledgerId();
    const counters = openCounters(room.file, { create: true });
    const made = (started: number): unknown => {
      counters.charge(1, packWord(0, 0), packWord(0, 5));
      counters.done = started;
      counters.reset(id);
      return [counters.word(1), counters.total(1), counters.takeDirty(), counters.state, counters.done];
    };
    expect(made(7)).toEqual([0n, 0, [], STATE.starting, 7]);
    expect(made(2 ** 51)).toEqual([0n, 0, [], STATE.starting, 0]);
    expect(made(-1)).toEqual([0n, 0, [], STATE.starting, 0]);
    counters.close();
  });

  it('keep as much of a long reason as there is room for', () => {
    const counters = openCounters(room.file, { create: true });
    counters.reason = 'x'.repeat(5_000);
    expect(counters.reason).toBe('x'.repeat(1_022));
    expect([counters.takeDirty(), counters.word(0)]).toEqual([[], 0n]);
    counters.close();
  });

  it.each([
    ['a cycle far ahead', 1, packWord(3, 0), 2, packWord(0, 1)],
    ['more lookups than there can be', 1, packWord(0, 3), 2e9, packWord(0, 1)],
    ['usage before the first plan', 2, packWord(0, 3), 3, 0n],
    ['the next cycle', 1, packWord(1, 2), 3, packWord(1, 2)],
  ])('with %s are believed only as far as somebody can have charged', async (_what, account, word, total, expected) => {
    const { ledger, key, committer, meter } = await room.metered(5);
    await chargeOnce(meter, accountOf(meter, key));
    ledger.createAccount('unpaid');
    committer.counters.replace(account, word, total);
    expect(committer.open()).toBe(true);
    expect(committer.counters.word(account)).toBe(expected);
    const saved = ledger.read.cycleUsage(account);
    expect(packWord(saved.cycle, saved.used)).toBe(expected);
  });

  it('of another layout, cut short or out of reach are not taken for usage', () => {
    const id = room.ledger().read.ledgerId();
    const path = countersFile(room.file);
    expect(readCountersOwner(room.file)).toBeUndefined();
    const counters = openCounters(room.file, { create: true });
    counters.reset(id);
    expect([counters.isFor(id), peekCounter(room.file, id, 1)]).toEqual([true, { word: 0n, total: 0 }]);
    const bytes = readFileSync(path);
    bytes.writeUInt32LE(2, 4);
    writeFileSync(path, bytes);
    expect([counters.isFor(id), peekCounter(room.file, id, 1)]).toEqual([false, undefined]);
    counters.close();
    bytes.writeUInt32LE(1, 4);
    writeFileSync(path, bytes.subarray(0, 4096));
    expect(peekCounter(room.file, id, 1)).toBeUndefined();
    rmSync(path);
    symlinkSync(path, path);
    expect(readCountersOwner(room.file)).toBe('damaged');
    rmSync(path);
  });

  it('take a charge back in its own cycle only, and never below nothing', () => {
    const counters = openCounters(room.file, { create: true });
    const charged = counters.charge(1, packWord(0, 0), packWord(0, 5));
    counters.charge(1, packWord(1, 0), packWord(1, 5));
    counters.uncharge(1, charged);
    expect([counters.word(1), counters.total(1)]).toEqual([packWord(1, 1), 1]);
    for (let i = 0; i < 2; i += 1) counters.uncharge(1, packWord(1, 1));
    expect(counters.word(1)).toBe(packWord(1, 0));
    counters.close();
  });

  it('find what a killed worker charged without marking it', async () => {
    const { ledger, key, committer, meter } = await room.metered(5);
    await chargeOnce(meter, accountOf(meter, key));
    const counters = openCounters(room.file, { create: false });
    counters.charge(1, packWord(0, 0), packWord(0, 5));
    counters.takeDirty();
    counters.close();
    committer.commit();
    expect(ledger.database.prepare('SELECT used FROM meters').pluck().get()).toBe(1);
    committer.commit(true);
    expect(ledger.database.prepare('SELECT used FROM meters').pluck().get()).toBe(2);
    committer.counters.charge(1, packWord(0, 0), packWord(0, 5));
    committer.counters.takeDirty();
    ledger.createAccount('beta');
    committer.open();
    expect(committer.counters.revision).toBe(ledger.read.revision());
    expect(ledger.database.prepare('SELECT used FROM meters').pluck().get()).toBe(3);
  });

  it('of another ledger are neither believed nor forgotten', async () => {
    const { key, meter } = await room.metered(5);
    await chargeOnce(meter, accountOf(meter, key));
    const other = new TestRoom();
    try {
      const second = other.ledger();
      second.createAccount('acme');
      second.subscribe('acme', 'custom', 'INV-1', 5);
      second.close();
      copyFileSync(countersFile(room.file), countersFile(other.file));
      const its = other.committer();
      expect(its.open()).toBe(false);
      expect(its.counters.reason).toMatch(/is another ledger: expected .* got .* remove /);
      expect(its.counters.word(1)).toBe(packWord(0, 1));
      await other.close();
      rmSync(countersFile(other.file));
      const anew = other.committer();
      expect(anew.open()).toBe(true);
      expect(anew.counters.word(1)).toBe(0n);
    } finally {
      await other.remove();
    }
  });
});
