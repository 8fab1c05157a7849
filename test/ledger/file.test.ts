/** The ledger file over its life: earlier versions, backup, restore, check. */
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/errors.ts';
import { readAudit } from '../../src/ledger/audit.ts';
import { backupLedger, checkLedger, restoreLedger } from '../../src/ledger/backup.ts';
import { countersFile, openCounters, packWord } from '../../src/ledger/counters.ts';
import { APPLICATION_ID, openDatabase, refuseNetworkFileSystem } from '../../src/ledger/database.ts';
import { LEDGER_VERSION, MIGRATIONS, migrate } from '../../src/ledger/migrations.ts';
import { usageByDay } from '../../src/ledger/usage.ts';
import { accountOf, chargeOnce, DAY_MS, TestRoom } from './support.ts';

let room: TestRoom;
beforeEach(() => {
  room = new TestRoom();
});
afterEach(() => room.remove());

const expectCode = (task: () => unknown, code: ErrorCode): void => {
  expect(task).toThrow(expect.objectContaining({ code }));
};

describe('an earlier version', () => {
  it.each(MIGRATIONS.map((_step, i) => i + 1))('%i opens, keeps its accounts, and goes on', async (version) => {
    openDatabase(room.file).close();
    rmSync(room.file);
    const old = new Sqlite(room.file);
    old.pragma(`application_id = ${APPLICATION_ID}`);
    migrate(old, room.file, false, version);
    expect(old.pragma('user_version', { simple: true })).toBe(version);
    old.exec(`INSERT INTO accounts (name, state, created_at, plan, quota_limit, cycle_anchor)
      VALUES ('old', 'active', 1767225600, 'pro', 90000, 1767225600);
      INSERT INTO meters (account_id, cycle, used) VALUES (1, 0, 1234);`);
    old.close();
    if (version < LEDGER_VERSION) expectCode(() => openDatabase(room.file, { readonly: true }), 'ledger_version');
    const ledger = room.ledger();
    expect(ledger.view('old').quota).toMatchObject({ plan: 'pro', quota_used: 1234, quota_remaining: 88_766 });
    const { key } = ledger.issueKey('old');
    const committer = room.committer();
    expect(committer.open()).toBe(true);
    const meter = await room.meter(committer);
    expect(await chargeOnce(meter, accountOf(meter, key))).toEqual({ charged: true, remaining: 88_765 });
    expect(checkLedger(room.file)).toEqual({ ok: true, problems: [] });
  });

  it('of a newer program is refused, and one of another program too', () => {
    const ledger = room.ledger();
    ledger.database.pragma(`user_version = ${LEDGER_VERSION + 1}`);
    expectCode(() => openDatabase(room.file), 'ledger_version');
    const other = join(room.dir, 'other.sqlite');
    const database = new Sqlite(other);
    database.exec('CREATE TABLE x (y)');
    database.close();
    expectCode(() => openDatabase(other), 'ledger_unavailable');
  });
});

describe('the file', () => {
  it('is readable by nobody else', () => {
    room.ledger();
    expect(statSync(room.file).mode & 0o007).toBe(0);
    expect(statSync(`${room.file}-wal`).mode & 0o007).toBe(0);
  });

  it('is found damaged by a check', () => {
    const ledger = room.ledger();
    for (let i = 0; i < 200; i += 1) ledger.createAccount(`account-${i}`);
    ledger.close();
    expect(checkLedger(room.file).ok).toBe(true);
    const size = statSync(room.file).size;
    const fd = openSync(room.file, 'r+');
    for (let at = 4096 * 3; at + 4096 < size; at += 8192) writeSync(fd, Buffer.alloc(64, 0xee), 0, 64, at);
    closeSync(fd);
    let found = '';
    try {
      found = checkLedger(room.file).problems.join('\n');
    } catch (error) {
      found = (error as Error).message;
    }
    expect(found).not.toBe('');
  });
});

describe('a key without its account', () => {
  it('is found by a check', () => {
    const { database } = room.ledger();
    database.pragma('foreign_keys = OFF');
    database.exec("INSERT INTO api_keys (account_id, hash, vault_id, created_at) VALUES (7, 'x', 'y', 0)");
    expect(checkLedger(room.file)).toEqual({ ok: false, problems: ['api_keys, row 1: its account is missing'] });
  });
});

describe('backup and restore', () => {
  const backup = (): string => join(room.dir, 'backup.sqlite');
  const restore = (more = {}) =>
    restoreLedger({ backup: backup(), file: room.file, actor: 'op', now: room.now, ...more });

  /** An account with 10 lookups in the backup and 5 more since. */
  async function prepare(): Promise<string> {
    const ledger = room.ledger();
    ledger.createAccount('acme');
    const { key } = ledger.subscribe('acme', 'pro', 'INV-1').issued!;
    const committer = room.committer();
    committer.open();
    const meter = await room.meter(committer);
    for (let i = 0; i < 10; i += 1) await chargeOnce(meter, accountOf(meter, key));
    backupLedger(room.file, backup());
    for (let i = 0; i < 5; i += 1) await chargeOnce(meter, accountOf(meter, key));
    return key;
  }

  it('copies while in use, without the encryption key, and never over a file', async () => {
    await prepare();
    expect(checkLedger(backup())).toEqual({ ok: true, problems: [] });
    expect(statSync(backup()).mode & 0o077).toBe(0);
    expect(readFileSync(backup()).includes(readFileSync(room.keyFile, 'utf8').trim())).toBe(false);
    expectCode(() => backupLedger(room.file, backup()), 'backup_exists');
    expect(readdirSync(room.dir).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('keeps what was used, revoked, closed and issued since', async () => {
    const key = await prepare();
    const ledger = room.ledger();
    const second = ledger.rotateKey('acme', 3600);
    ledger.revokeKey('acme', 1);
    ledger.createAccount('later');
    const report = restore();
    expect(report).toMatchObject({
      accounts: 1,
      raised: [{ account: 'acme', lookups: 5 }],
      keptKeys: 1,
      keptStricter: 1,
      missing: ['later'],
      knownFrom: ['ledger', 'counters'],
    });
    expect(existsSync(report.replaced!)).toBe(true);
    const restored = room.ledger();
    expect(restored.view('acme').quota.quota_used).toBe(15);
    expect(restored.showKey('acme').key).toBe(second.key);
    const committer = room.committer();
    committer.open();
    const meter = await room.meter(committer);
    expect(meter.authenticate(key).kind).toBe('unknown');
    expect(await chargeOnce(meter, accountOf(meter, second.key))).toEqual({ charged: true, remaining: 89_984 });
    expect(readAudit(restored, undefined, 10).map(({ action }) => action)).toContain('ledger.restore');
    expect(checkLedger(room.file).ok).toBe(true);
  });

  it('keeps the latest moment seen, by which keys expire', async () => {
    const key = await prepare();
    room.ledger().rotateKey('acme', 3600);
    room.nowMs += 7_200_000;
    const before = room.committer();
    before.open();
    before.tick();
    await room.close();
    restore();
    rmSync(countersFile(room.file));
    room.nowMs -= 7_200_000;
    const committer = room.committer();
    committer.open();
    expect((await room.meter(committer)).authenticate(key).kind).toBe('unknown');
  });

  it.each([
    ['the ledger', ['counters']],
    ['the counters', ['ledger']],
  ] as const)('knows it without %s, too', async (lost, knownFrom) => {
    await prepare();
    await room.close();
    if (lost === 'the ledger') writeFileSync(room.file, 'damaged'.repeat(1000));
    else rmSync(countersFile(room.file));
    for (const end of ['-wal', '-shm']) if (lost === 'the ledger') rmSync(`${room.file}${end}`, { force: true });
    expect(restore()).toMatchObject({ knownFrom, raised: [{ account: 'acme', lookups: 5 }] });
    expect(room.ledger().view('acme').quota.quota_used).toBe(15);
  });

  it('takes nothing back where the counters are older than the backup', async () => {
    await prepare();
    await room.close();
    const counters = openCounters(room.file, { create: false });
    counters.replace(1, packWord(0, 3), 3);
    counters.close();
    rmSync(room.file);
    expect(restore()).toMatchObject({ knownFrom: ['counters'], raised: [] });
    expect(room.ledger().view('acme').quota.quota_used).toBe(10);
  });

  it('keeps the usage by day since, of the accounts that it knows', async () => {
    const key = await prepare();
    const later = room.ledger();
    later.createAccount('later');
    const others = later.subscribe('later', 'pro', 'INV-2').issued!.key;
    const committer = room.committer();
    committer.open();
    const meter = await room.meter(committer);
    for (let day = 0; day < 2; day += 1) {
      room.nowMs += DAY_MS;
      for (const one of [key, others]) await chargeOnce(meter, accountOf(meter, one));
    }
    restore();
    expect(usageByDay(room.ledger(), undefined, 3, room.nowMs)).toEqual([
      { account: 'acme', day: '2026-01-01', lookups: 15 },
      { account: 'acme', day: '2026-01-02', lookups: 1 },
      { account: 'acme', day: '2026-01-03', lookups: 1 },
    ]);
    expect(checkLedger(room.file).ok).toBe(true);
  });

  it('keeps accounts suspended and closed, and keys at their earlier end', async () => {
    const ledger = room.ledger();
    for (const name of ['closed', 'rotated', 'suspended']) {
      ledger.createAccount(name);
      ledger.subscribe(name, 'pro', `INV-${name}`);
    }
    ledger.rotateKey('rotated', 7200);
    backupLedger(room.file, backup());
    ledger.setActive('suspended', false);
    ledger.closeAccount('closed');
    ledger.rotateKey('rotated', 3600);
    expect(restore()).toMatchObject({ keptStricter: 4, keptKeys: 1 });
    const restored = room.ledger();
    expect(restored.list().map(({ account }) => account.state)).toEqual(['closed', 'active', 'suspended']);
    const hour = room.nowMs / 1000 + 3600;
    expect(restored.view('rotated').keys.map(({ expiresAt }) => expiresAt)).toEqual([hour, hour, null]);
  });

  it('does not open again what the backup has closed, nor give a key a later end', async () => {
    const ledger = room.ledger();
    ledger.createAccount('acme');
    ledger.subscribe('acme', 'pro', 'INV-1');
    ledger.setActive('acme', false);
    ledger.rotateKey('acme', 7200);
    await room.close();
    copyFileSync(room.file, `${room.file}.earlier`);
    const later = room.ledger();
    later.rotateKey('acme');
    later.closeAccount('acme');
    backupLedger(room.file, backup());
    await room.close();
    renameSync(`${room.file}.earlier`, room.file);
    expect(restore()).toMatchObject({ keptStricter: 0, keptKeys: 0 });
    const restored = room.ledger().view('acme');
    expect(restored.account.state).toBe('closed');
    expect(restored.keys[0]!.expiresAt).toBe(room.nowMs / 1000);
  });

  it('takes nothing over from an account that has only the number of one in the backup', async () => {
    room.ledger().createAccount('acme');
    await room.close();
    copyFileSync(room.file, `${room.file}.earlier`);
    const ledger = room.ledger();
    ledger.createAccount('one');
    ledger.subscribe('one', 'pro', 'INV-1');
    backupLedger(room.file, backup());
    await room.close();
    renameSync(`${room.file}.earlier`, room.file);
    const present = room.ledger();
    present.createAccount('two');
    present.subscribe('two', 'pro', 'INV-2');
    present.rotateKey('two');
    present.database.exec(
      'UPDATE meters SET used = 9, total = 9 WHERE account_id = 2; INSERT INTO usage_days VALUES (2, 20453, 9)',
    );
    present.setActive('two', false);
    await room.close();
    expect(restore()).toMatchObject({ raised: [], keptKeys: 0, keptStricter: 0, missing: ['two'] });
    const restored = room.ledger();
    expect(restored.view('one')).toMatchObject({ account: { id: 2, state: 'active' }, quota: { quota_used: 0 } });
    expect(restored.view('one').keys).toHaveLength(1);
    expect(usageByDay(restored, 'one', 400, room.nowMs)).toEqual([]);
  });

  it.each(['the replaced ledger', 'the counters'])(
    'lets no new account begin with the usage of one that %s knows',
    async (from) => {
      await prepare();
      const ledger = room.ledger();
      ledger.createAccount('later');
      const { key } = ledger.subscribe('later', 'pro', 'INV-2').issued!;
      const committer = room.committer();
      committer.open();
      const meter = await room.meter(committer);
      await chargeOnce(meter, accountOf(meter, key));
      await room.close();
      if (from === 'the counters') rmSync(room.file);
      restore();
      const restored = room.ledger();
      restored.createAccount('new');
      restored.subscribe('new', 'pro', 'INV-3');
      expect(restored.view('new').quota.quota_used).toBe(0);
    },
  );

  it('without both is refused, unless the operator gives the difference away', async () => {
    await prepare();
    await room.close();
    rmSync(countersFile(room.file));
    rmSync(room.file);
    expectCode(() => restore(), 'restore_refused');
    expect(existsSync(room.file)).toBe(false);
    expect(restore({ acceptUnknownUsage: true }).knownFrom).toEqual([]);
    expect(room.ledger().view('acme').quota.quota_used).toBe(10);
  });

  it.each([
    ['text', () => 'junk'.repeat(3000)],
    ['nothing', () => ''],
    ['a damaged backup', (bytes: Buffer) => bytes.fill(0xff, 4096, 12_288)],
    ['a backup without its schema', (bytes: Buffer) => bytes.fill(0xff, 100, 4096)],
    ['a ledger of another program', (bytes: Buffer) => bytes.fill(0, 68, 72)],
  ])('refuses %s in place of a backup, and leaves the ledger', async (_what, make) => {
    await prepare();
    await room.close();
    writeFileSync(backup(), make(readFileSync(backup())));
    expectCode(() => restore(), 'restore_refused');
    expectCode(() => restore({ backup: room.dir }), 'restore_refused');
    expect(room.ledger().view('acme').quota.quota_used).toBe(15);
    expect(readdirSync(dirname(room.file)).filter((name) => name.includes('restore.tmp'))).toEqual([]);
  });

  it('refuses a backup of another ledger, or none', async () => {
    await prepare();
    expectCode(() => restore({ backup: join(room.dir, 'none') }), 'restore_refused');
    const other = new TestRoom();
    try {
      other.ledger().createAccount('x');
      rmSync(backup());
      backupLedger(other.file, backup());
    } finally {
      await other.remove();
    }
    expectCode(() => restore(), 'restore_refused');
    await room.close();
    rmSync(countersFile(room.file));
    expectCode(() => restore({ acceptUnknownUsage: true }), 'restore_refused');
    expect(room.ledger().view('acme').quota.quota_used).toBe(15);
    expect(readdirSync(dirname(room.file)).filter((name) => name.includes('restore.tmp'))).toEqual([]);
  });
});

describe('a network file system', () => {
  it('is refused by name, a local one is not', () => {
    expect(() => refuseNetworkFileSystem('/x', () => 0x6969)).toThrow(/NFS/);
    expect(() => refuseNetworkFileSystem('/x', () => 0xff534d42 | 0)).toThrow(/CIFS/);
    expect(() => refuseNetworkFileSystem('/x', () => 0xef53)).not.toThrow();
    expect(() => refuseNetworkFileSystem(room.dir)).not.toThrow();
  });
});
