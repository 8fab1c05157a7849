/** A ledger file that is removed, emptied or replaced while its shared counters remain: 503, nothing lost, nothing made anew. */
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backupLedger, checkLedger, restoreLedger } from '../../src/ledger/backup.ts';
import type { Committer } from '../../src/ledger/committer.ts';
import { countersFile } from '../../src/ledger/counters.ts';
import { type Ledger, openLedger } from '../../src/ledger/ledger.ts';
import type { Meter } from '../../src/ledger/meter.ts';
import { type LedgerWriter, startLedgerWriter } from '../../src/ledger/writer.ts';
import { accountOf, chargeOnce, TestRoom } from './support.ts';

const UNAVAILABLE = { charged: false, error: 'ledger_unavailable' };
const unavailable = expect.objectContaining({ code: 'ledger_unavailable' });

let room: TestRoom;
let ledger: Ledger;
let committer: Committer;
let meter: Meter;
let key: string;
const backup = (): string => join(room.dir, 'backup.sqlite');

/** 10 lookups, a backup, 25 lookups. */
beforeEach(async () => {
  room = new TestRoom();
  room.nowMs = Date.now();
  ({ ledger, key, committer, meter } = await room.metered(1000));
  for (let i = 0; i < 10; i += 1) await chargeOnce(meter, accountOf(meter, key));
  backupLedger(room.file, backup());
  for (let i = 0; i < 25; i += 1) await chargeOnce(meter, accountOf(meter, key));
});
afterEach(() => room.remove());

const removeLedger = (): void => {
  for (const end of ['', '-wal', '-shm']) rmSync(`${room.file}${end}`, { force: true });
};

const emptyLedger = (): void => {
  removeLedger();
  writeFileSync(room.file, '');
};

/** A second worker, which has seen no key yet. */
const freshMeter = (): Promise<Meter> => room.meter(committer);

const restore = () => restoreLedger({ backup: backup(), file: room.file, actor: 'op', now: room.now });

describe('a ledger that is removed while it serves', () => {
  const loss: [string, () => void][] = [
    ['removed', removeLedger],
    ['removed with its log left behind', () => rmSync(room.file)],
    ['emptied', emptyLedger],
    ['removed with its directory', () => rmSync(dirname(room.file), { recursive: true })],
  ];

  it.each(loss)('%s: is not made anew, and nothing is charged or refused as unknown', async (_how, lose) => {
    lose();
    for (let i = 0; i < 5; i += 1) {
      committer.tick();
      expect(committer.commit()).toBe(false);
    }
    expect(existsSync(room.file) ? readFileSync(room.file).length : 0).toBe(0);
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual(UNAVAILABLE);
    expect(committer.counters.word(1)).toBe(35n);
    expect(meter.health()).toMatchObject({ ready: false, reason: expect.stringContaining('account restore') });
    expect(meter.health().reason).toContain(ledger.read.ledgerId());
  });

  it.each(loss.slice(0, 3))('%s: a worker that must ask it says so', async (_how, lose) => {
    const second = ledger.rotateKey('acme', 3600).key;
    lose();
    committer.tick();
    expect(() => meter.authenticate(second)).toThrow(unavailable);
    const fresh = await freshMeter();
    expect(() => fresh.authenticate(key)).toThrow(unavailable);
  });

  it('goes on by itself when the file is put back', async () => {
    ledger.close();
    committer.commit(true);
    for (const end of ['', '-wal', '-shm'])
      if (existsSync(`${room.file}${end}`)) renameSync(`${room.file}${end}`, `${room.file}.away${end}`);
    committer.tick();
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual(UNAVAILABLE);
    for (const end of ['', '-wal', '-shm'])
      if (existsSync(`${room.file}.away${end}`)) renameSync(`${room.file}.away${end}`, `${room.file}${end}`);
    committer.tick();
    committer.tick();
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual({ charged: true, remaining: 964 });
  });

  it('is restored, and what was used since the backup stays used', async () => {
    removeLedger();
    committer.tick();
    await room.close();
    expect(restore()).toMatchObject({ raised: [{ account: 'acme', lookups: 25 }], knownFrom: ['counters'] });
    committer = room.committer();
    expect(committer.open()).toBe(true);
    meter = await freshMeter();
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual({ charged: true, remaining: 964 });
  });
});

describe('a start without the ledger', () => {
  it('is refused while the counters remain, until a restore or a start over', async () => {
    await room.close();
    removeLedger();
    committer = room.committer();
    expect(committer.open()).toBe(false);
    committer.tick();
    expect(committer.counters.reason).toMatch(/expected ledger [0-9a-f]{32}.*To start over.*remove .*counters\.map/);
    expect(committer.counters.word(1)).toBe(35n);
    expect(existsSync(room.file)).toBe(false);
    const fresh = await freshMeter();
    expect(() => fresh.authenticate(key)).toThrow(unavailable);
    await room.close();
    rmSync(countersFile(room.file));
    expect(room.committer().open()).toBe(true);
    expect(room.ledger().list()).toEqual([]);
  });

  it('is refused even when the header of the counters is damaged', async () => {
    await room.close();
    removeLedger();
    const counters = readFileSync(countersFile(room.file));
    counters.fill(0x55, 0, 24);
    writeFileSync(countersFile(room.file), counters);
    expect(room.committer().open()).toBe(false);
    expect(existsSync(room.file)).toBe(false);
  });

  it('is seen by the account commands, which make no second ledger', async () => {
    await room.close();
    removeLedger();
    for (const create of [true, false])
      expect(() => openLedger({ file: room.file, keyFile: room.keyFile, create })).toThrow(unavailable);
    expect(() => checkLedger(room.file)).toThrow(unavailable);
    expect(() => backupLedger(room.file, join(room.dir, 'second'))).toThrow(unavailable);
    expect(existsSync(room.file)).toBe(false);
  });
});

describe('a ledger that is replaced by another one', () => {
  /** Another ledger, whose account 1 has used nothing. */
  async function putOther(): Promise<string> {
    const other = new TestRoom();
    try {
      other.ledger().createAccount('beta');
      const its = other.ledger().subscribe('beta', 'custom', 'INV-2', 1000).issued!.key;
      await other.close();
      removeLedger();
      copyFileSync(other.file, room.file);
      return its;
    } finally {
      await other.remove();
    }
  }

  it('serves neither ledger, keeps the counters, and writes nothing into the other', async () => {
    const its = await putOther();
    for (let i = 0; i < 3; i += 1) {
      committer.tick();
      expect(committer.commit(true)).toBe(false);
    }
    expect(committer.counters.word(1)).toBe(35n);
    expect(meter.health().reason).toMatch(/is another ledger: expected [0-9a-f]{32}.* got [0-9a-f]{32}/);
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual(UNAVAILABLE);
    const fresh = await freshMeter();
    for (const one of [key, its]) {
      expect(() => fresh.authenticate(one)).toThrow(unavailable);
      expect(() => fresh.authenticate(one)).toThrow(unavailable);
    }
    for (const create of [true, false])
      expect(() => openLedger({ file: room.file, keyFile: room.keyFile, create })).toThrow(unavailable);
  });

  it('is not mixed with the log that the earlier one left behind', async () => {
    for (let i = 0; i < 40; i += 1) ledger.createAccount(`later-${i}`);
    committer.tick();
    const logs = ['-wal', '-shm'].map((end) => `${room.file}${end}`);
    for (const log of logs) renameSync(log, `${log}.kept`);
    await putOther();
    for (const log of logs) renameSync(`${log}.kept`, log);
    committer.tick();
    committer.tick();
    expect(meter.health().reason).toMatch(/is another ledger: expected [0-9a-f]{32}.* got [0-9a-f]{32}/);
    expect(checkLedger(room.file)).toEqual({ ok: true, problems: [] });
    expect(readdirSync(dirname(room.file)).filter((name) => name.includes('.replaced-'))).toHaveLength(1);
  });

  it('is accepted where it is a copy of the same one, with the usage since', async () => {
    for (let i = 0; i < 40; i += 1) ledger.createAccount(`later-${i}`);
    committer.tick();
    copyFileSync(backup(), `${room.file}.new`);
    renameSync(`${room.file}.new`, room.file);
    committer.tick();
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual({ charged: true, remaining: 964 });
    await room.close();
    expect(checkLedger(room.file)).toEqual({ ok: true, problems: [] });
    expect(room.ledger().list()).toHaveLength(1);
  });

  it('is not restored over by a backup that forgets the counters', async () => {
    await putOther();
    await room.close();
    rmSync(backup());
    backupLedger(room.file, backup());
    expect(() => restore()).toThrow(expect.objectContaining({ code: 'restore_refused' }));
    rmSync(room.file);
    expect(() => restore()).toThrow(expect.objectContaining({ code: 'restore_refused' }));
  });
});

it('a log that a lost ledger left behind is not played into the restored one', async () => {
  ledger.createAccount('later');
  for (let i = 0; i < 40; i += 1) ledger.createAccount(`later-${i}`);
  copyFileSync(`${room.file}-wal`, join(room.dir, 'wal'));
  await room.close();
  removeLedger();
  copyFileSync(join(room.dir, 'wal'), `${room.file}-wal`);
  expect(restore().replaced).toBe(null);
  expect(checkLedger(room.file)).toEqual({ ok: true, problems: [] });
  expect(
    room
      .ledger()
      .list()
      .map(({ account }) => account.name),
  ).toEqual(['acme']);
  expect(readdirSync(dirname(room.file)).filter((name) => name.includes('.replaced-'))).toHaveLength(1);
});

describe("the ledger writer's process", () => {
  it('reports a removed ledger, again after its own death, and recovers with the file', async () => {
    await room.close();
    const ledgerWriter: LedgerWriter = await startLedgerWriter({ file: room.file });
    try {
      expect(ledgerWriter.health.ready).toBe(true);
      renameSync(room.file, `${room.file}.away`);
      await expect.poll(() => ledgerWriter.health.ready).toBe(false);
      const { pid } = ledgerWriter;
      process.kill(pid!, 'SIGKILL');
      await expect.poll(() => ledgerWriter.pid !== pid && ledgerWriter.pid !== undefined).toBe(true);
      await expect
        .poll(() => ledgerWriter.health)
        .toMatchObject({
          ready: false,
          reason: expect.stringContaining('is gone or empty'),
        });
      expect(existsSync(room.file)).toBe(false);
      renameSync(`${room.file}.away`, room.file);
      await expect.poll(() => ledgerWriter.health.ready).toBe(true);
    } finally {
      await ledgerWriter.close();
    }
    expect(room.ledger().view('acme').quota.quota_used).toBe(35);
  });
});
