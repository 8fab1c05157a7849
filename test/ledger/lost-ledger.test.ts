/** A ledger that is removed, emptied, overwritten or replaced while in use: lookups get 503, nothing is lost, and no new ledger is created. */
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readAudit } from '../../src/ledger/audit.ts';
import { backupLedger } from '../../src/ledger/backup.ts';
import { checkLedger } from '../../src/ledger/check.ts';
import type { Meter } from '../../src/ledger/meter.ts';
import { openLedger } from '../../src/ledger/open.ts';
import type { Account } from '../../src/ledger/quota.ts';
import { restoreLedger } from '../../src/ledger/restore.ts';
import { identityFile } from '../../src/ledger/store/identity.ts';
import { type LedgerWriter, startLedgerWriter } from '../../src/ledger/writer.ts';
import { accountOf, chargeOnce, LedgerFolder, type TestLedger, type TestReserver } from './support.ts';

const UNAVAILABLE = 'ledger_unavailable';
const unavailable = expect.objectContaining({ code: 'ledger_unavailable' });

let folder: LedgerFolder;
let ledger: TestLedger;
let reserver: TestReserver;
let meter: Meter;
let key: string;
let account: Account;
const backup = (): string => join(folder.dir, 'backup.sqlite');

/** Prepares 10 lookups, a backup, and 25 more lookups. */
beforeEach(async () => {
  folder = new LedgerFolder();
  // An old heartbeat: commands do not wait for the writer.
  folder.nowMs = Date.now() - 60_000;
  ({ ledger, key, reserver, meter } = await folder.metered(10_000));
  for (let i = 0; i < 10; i += 1) await chargeOnce(meter, accountOf(meter, key));
  folder.nowMs += 1_000;
  reserver.tick();
  backupLedger(folder.file, backup());
  for (let i = 0; i < 25; i += 1) await chargeOnce(meter, accountOf(meter, key));
  account = accountOf(meter, key);
});
afterEach(() => folder.remove());

const removeLedger = (): void => {
  for (const end of ['', '-wal', '-shm']) rmSync(`${folder.file}${end}`, { force: true });
};

const emptyLedger = (): void => {
  removeLedger();
  writeFileSync(folder.file, '');
};

/** A second worker, which has seen no key yet. */
const freshMeter = (): Promise<Meter> => folder.meter(reserver);

/** Runs the checks of the files that happen once a second. */
const look = (): void => {
  folder.nowMs += 1_000;
  reserver.tick();
};

const restore = () => restoreLedger({ backup: backup(), file: folder.file, actor: 'op', now: folder.now });

describe('a ledger that is removed while in use', () => {
  const loss: [string, () => void][] = [
    ['removed', removeLedger],
    ['removed except for its log', () => rmSync(folder.file)],
    ['emptied', emptyLedger],
    ['removed with its directory', () => rmSync(dirname(folder.file), { recursive: true })],
  ];

  it.each(loss)('%s: no new one is created, and no lookup is charged or refused as unknown', async (_how, lose) => {
    lose();
    for (let i = 0; i < 5; i += 1) {
      look();
      expect(reserver.state.ready).toBe(false);
    }
    expect(existsSync(folder.file) ? readFileSync(folder.file).length : 0).toBe(0);
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual(UNAVAILABLE);
    expect(meter.quotaLeft(account).quota_used).toBe(35);
    expect(meter.health()).toMatchObject({ ready: false, reason: expect.stringContaining('account restore') });
    expect(meter.health().reason).toContain(ledger.read.ledgerId());
  });

  it.each(loss.slice(0, 3))('%s: a worker that must query it reports that', async (_how, lose) => {
    const second = (await ledger.rotateKey('acme', 3600)).key;
    lose();
    look();
    expect(() => meter.authenticate(second)).toThrow(unavailable);
    const fresh = await freshMeter();
    expect(() => fresh.authenticate(key)).toThrow(unavailable);
  });

  it('works again without a restart when the file is put back', async () => {
    ledger.close();
    look();
    for (const end of ['', '-wal', '-shm'])
      if (existsSync(`${folder.file}${end}`)) renameSync(`${folder.file}${end}`, `${folder.file}.away${end}`);
    look();
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual(UNAVAILABLE);
    for (const end of ['', '-wal', '-shm'])
      if (existsSync(`${folder.file}.away${end}`)) renameSync(`${folder.file}.away${end}`, `${folder.file}${end}`);
    look();
    look();
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(9_964);
  });

  it('is restored, and lookups used since the backup stay used', async () => {
    removeLedger();
    look();
    await folder.close();
    expect(restore()).toMatchObject({ raised: [{ account: 'acme', lookups: 25 }], knownFrom: ['counters'] });
    reserver = folder.reserver();
    expect(reserver.open()).toBe(true);
    meter = await freshMeter();
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(9_964);
  });
});

describe('a start without the ledger', () => {
  it('is refused while something shows which ledger belongs there, until a restore or a new start', async () => {
    await folder.close();
    removeLedger();
    reserver = folder.reserver();
    expect(reserver.open()).toBe(false);
    look();
    expect(reserver.state.reason).toMatch(/expected ledger [0-9a-f]{32}.*To start over.*remove .*ledger\.id/);
    expect(existsSync(folder.file)).toBe(false);
    const fresh = await freshMeter();
    expect(() => fresh.authenticate(key)).toThrow(unavailable);
    expect(fresh.charge(account)).toBe(UNAVAILABLE);
    expect(fresh.quotaLeft(account).quota_used).toBe(35);
    await folder.close();
    rmSync(identityFile(folder.file));
    expect(folder.reserver().open()).toBe(true);
    expect(await folder.ledger().list()).toEqual([]);
  });

  it('is refused even if the file that shows it is damaged', async () => {
    await folder.close();
    removeLedger();
    writeFileSync(identityFile(folder.file), '\0'.repeat(40));
    expect(folder.reserver().open()).toBe(false);
    expect(existsSync(folder.file)).toBe(false);
  });

  it('is detected by the account commands, which create no second ledger', async () => {
    await folder.close();
    removeLedger();
    for (const create of [true, false])
      await expect(openLedger({ file: folder.file, keyFile: folder.keyFile, create })).rejects.toThrow(unavailable);
    expect(() => checkLedger(folder.file)).toThrow(unavailable);
    expect(() => backupLedger(folder.file, join(folder.dir, 'second'))).toThrow(unavailable);
    expect(existsSync(folder.file)).toBe(false);
  });
});

describe('a ledger whose files are damaged while in use', () => {
  it('works on if its write-ahead log is removed: the contents are written to the file', async () => {
    await ledger.createAccount('later');
    look();
    rmSync(`${folder.file}-wal`);
    look();
    look();
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(9_964);
    look();
    expect(reserver.state.ready).toBe(true);
    await folder.close();
    expect(checkLedger(folder.file)).toEqual({ ok: true, problems: [] });
    expect((await folder.ledger().view('acme')).quota.quota_used).toBe(36);
    expect((await folder.ledger().view('later')).account.state).toBe('created');
  });

  it('reports an overwritten header within a second, and charges nothing', async () => {
    reserver.close();
    await folder.close();
    reserver = folder.reserver();
    reserver.open();
    meter = await freshMeter();
    await chargeOnce(meter, accountOf(meter, key));
    const fd = openSync(folder.file, 'r+');
    writeSync(fd, Buffer.alloc(100, 0x55), 0, 100, 0);
    closeSync(fd);
    look();
    expect(reserver.state.reason).toMatch(/SQLITE_NOTADB/);
    expect(meter.charge(account)).toBe(UNAVAILABLE);
    expect(meter.health().ready).toBe(false);
    expect(meter.quotaLeft(account).quota_used).toBe(36);
  });

  it('creates its shared counters anew with the exact usage if they are removed', async () => {
    folder.loseCounters();
    look();
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(9_964);
    expect((await folder.ledger().view('acme')).quota.quota_used).toBe(36);
  });

  it('counts everything reserved as used if its shared counters are removed while no ledger writer runs', async () => {
    const { reserved } = ledger.database.prepare('SELECT reserved FROM meters').get() as { reserved: number };
    reserver.end();
    folder.loseCounters();
    expect((await ledger.view('acme')).quota.quota_used).toBe(reserved);
    // A worker that still has the old counters may spend what was reserved in them: it is already counted.
    expect(meter.charge(account)).toBe(9_964);
    reserver = folder.reserver();
    reserver.open();
    meter = await freshMeter();
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(10_000 - reserved - 1);
    expect(ledger.read.allAccounts()[0]?.id).toBe(1);
    const audit = (await readAudit(ledger, 'acme', 1))[0];
    expect(audit).toMatchObject({ actor: 'ledger writer', action: 'ledger.recover' });
  });
});

describe('a ledger that is replaced by another one', () => {
  /** Creates another ledger, whose account 1 has used nothing. */
  async function putOther(): Promise<string> {
    const other = new LedgerFolder();
    try {
      await other.ledger().createAccount('beta');
      const its = (await other.ledger().subscribe('beta', 'custom', 'INV-2', 1000)).issued!.key;
      await other.close();
      removeLedger();
      copyFileSync(other.file, folder.file);
      return its;
    } finally {
      await other.remove();
    }
  }

  it('serves neither ledger, keeps the counters, and writes nothing into the other one', async () => {
    const its = await putOther();
    for (let i = 0; i < 3; i += 1) {
      look();
      expect(reserver.state.ready).toBe(false);
    }
    expect(meter.quotaLeft(account).quota_used).toBe(35);
    expect(meter.health().reason).toMatch(/is another ledger: expected [0-9a-f]{32}.* got [0-9a-f]{32}/);
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual(UNAVAILABLE);
    const fresh = await freshMeter();
    for (const one of [key, its]) {
      expect(() => fresh.authenticate(one)).toThrow(unavailable);
      expect(() => fresh.authenticate(one)).toThrow(unavailable);
    }
    for (const create of [true, false])
      await expect(openLedger({ file: folder.file, keyFile: folder.keyFile, create })).rejects.toThrow(unavailable);
  });

  it('is not mixed with the write-ahead log of the earlier one', async () => {
    for (let i = 0; i < 40; i += 1) await ledger.createAccount(`later-${i}`);
    look();
    const logs = ['-wal', '-shm'].map((end) => `${folder.file}${end}`);
    for (const log of logs) renameSync(log, `${log}.kept`);
    await putOther();
    for (const log of logs) renameSync(`${log}.kept`, log);
    look();
    look();
    expect(meter.health().reason).toMatch(/is another ledger: expected [0-9a-f]{32}.* got [0-9a-f]{32}/);
    expect(checkLedger(folder.file)).toEqual({ ok: true, problems: [] });
    expect(readdirSync(dirname(folder.file)).filter((name) => name.includes('.replaced-'))).toHaveLength(1);
  });

  it('is accepted if it is a copy of the same ledger, with the usage since', async () => {
    for (let i = 0; i < 40; i += 1) await ledger.createAccount(`later-${i}`);
    look();
    copyFileSync(backup(), `${folder.file}.new`);
    renameSync(`${folder.file}.new`, folder.file);
    look();
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(9_964);
    await folder.close();
    expect(checkLedger(folder.file)).toEqual({ ok: true, problems: [] });
    expect(await folder.ledger().list()).toHaveLength(1);
  });

  it('is not overwritten by a backup that forgets the counters', async () => {
    await putOther();
    await folder.close();
    rmSync(backup());
    backupLedger(folder.file, backup());
    expect(() => restore()).toThrow(expect.objectContaining({ code: 'restore_refused' }));
    rmSync(folder.file);
    expect(() => restore()).toThrow(expect.objectContaining({ code: 'restore_refused' }));
  });
});

it('the write-ahead log of a lost ledger is not applied to the restored one', async () => {
  await ledger.createAccount('later');
  for (let i = 0; i < 40; i += 1) await ledger.createAccount(`later-${i}`);
  copyFileSync(`${folder.file}-wal`, join(folder.dir, 'wal'));
  await folder.close();
  removeLedger();
  copyFileSync(join(folder.dir, 'wal'), `${folder.file}-wal`);
  expect(restore().replaced).toBe(null);
  expect(checkLedger(folder.file)).toEqual({ ok: true, problems: [] });
  expect((await folder.ledger().list()).map(({ account }) => account.name)).toEqual(['acme']);
  expect(readdirSync(dirname(folder.file)).filter((name) => name.includes('.replaced-'))).toHaveLength(1);
});

describe("the ledger writer's process", () => {
  it('shares memory with the commands again if that memory was removed, and neither side loses anything', async () => {
    await folder.close();
    const ledgerWriter: LedgerWriter = await startLedgerWriter({ file: folder.file });
    try {
      const shared = `${folder.file}-shm`;
      for (const name of ['one', 'two']) {
        rmSync(shared);
        await expect.poll(() => existsSync(shared)).toBe(true);
        const commands = folder.ledger();
        await commands.createAccount(name);
        await commands.subscribe(name, 'pro', `INV-${name}`);
        await commands.close();
      }
      await expect.poll(() => ledgerWriter.health.ready).toBe(true);
    } finally {
      await ledgerWriter.close();
    }
    expect(checkLedger(folder.file)).toEqual({ ok: true, problems: [] });
    expect((await folder.ledger().list()).map(({ account }) => account.name).sort()).toEqual(['acme', 'one', 'two']);
  });

  it('reports a removed ledger, again after its own death, and recovers with the file', async () => {
    await folder.close();
    const ledgerWriter: LedgerWriter = await startLedgerWriter({ file: folder.file });
    try {
      expect(ledgerWriter.health.ready).toBe(true);
      renameSync(folder.file, `${folder.file}.away`);
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
      expect(existsSync(folder.file)).toBe(false);
      renameSync(`${folder.file}.away`, folder.file);
      await expect.poll(() => ledgerWriter.health.ready).toBe(true);
    } finally {
      await ledgerWriter.close();
    }
    expect((await folder.ledger().view('acme')).quota.quota_used).toBe(35);
  });
});
