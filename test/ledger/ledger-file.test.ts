/** The life cycle of the ledger file: earlier versions, backup, restore, check. */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
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
import { backupLedger } from '../../src/ledger/backup.ts';
import { checkLedger, refuseNetworkFileSystem } from '../../src/ledger/check.ts';
import { createCounters } from '../../src/ledger/counters/location.ts';
import { restoreLedger } from '../../src/ledger/restore.ts';
import { APPLICATION_ID, openDatabase } from '../../src/ledger/store/database.ts';
import { openWriterLock } from '../../src/ledger/store/identity.ts';
import { LEDGER_VERSION, MIGRATIONS, migrate } from '../../src/ledger/store/migrations.ts';
import { usageByDay } from '../../src/ledger/usage.ts';
import { lockFile } from '../../src/platform/libc.ts';
import { accountOf, chargeOnce, DAY_MS, LedgerFolder } from './support.ts';

let folder: LedgerFolder;
beforeEach(() => {
  folder = new LedgerFolder();
});
afterEach(() => folder.remove());

const expectCode = (task: () => unknown, code: ErrorCode): void => {
  expect(task).toThrow(expect.objectContaining({ code }));
};

describe('an earlier version', () => {
  it.each(MIGRATIONS.map((_step, i) => i + 1))('%i opens, keeps its accounts, and works', async (version) => {
    openDatabase(folder.file).close();
    rmSync(folder.file);
    const old = new Sqlite(folder.file);
    old.pragma(`application_id = ${APPLICATION_ID}`);
    migrate(old, folder.file, { isLocked: true, target: version });
    expect(old.pragma('user_version', { simple: true })).toBe(version);
    old.exec(`INSERT INTO accounts (name, state, created_at, plan, quota_limit, cycle_anchor)
      VALUES ('old', 'active', 1767225600, 'pro', 90000, 1767225600);`);
    if (version < 4) old.exec('INSERT INTO meters (account_id, cycle, used) VALUES (1, 0, 1234)');
    else old.exec('UPDATE meters SET reserved = 1234, used = 1234');
    old.close();
    if (version < LEDGER_VERSION) expectCode(() => openDatabase(folder.file, { readonly: true }), 'ledger_version');
    const ledger = folder.ledger();
    expect((await ledger.view('old')).quota).toMatchObject({ plan: 'pro', quota_used: 1234, quota_remaining: 88_766 });
    const { key } = await ledger.issueKey('old');
    const reserver = folder.reserver();
    expect(reserver.open()).toBe(true);
    const meter = await folder.meter(reserver);
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(88_765);
    // The original file is kept next to the new one.
    const kept = folder.names().filter((name) => name.includes('.version-'));
    expect(kept).toEqual(version < LEDGER_VERSION ? [`ledger.sqlite.version-${version}`] : []);
    expect(checkLedger(folder.file)).toEqual({ ok: true, problems: [] });
  });

  /** Creates a file of version 3 with an account, and the counters that its server kept. */
  function earlier(word: bigint, total: bigint): void {
    openDatabase(folder.file).close();
    rmSync(folder.file);
    const old = new Sqlite(folder.file);
    old.pragma(`application_id = ${APPLICATION_ID}`);
    migrate(old, folder.file, { isLocked: true, target: 3 });
    old.exec(`INSERT INTO accounts (name, state, created_at, plan, quota_limit, cycle_anchor)
      VALUES ('old', 'active', 1767225600, 'pro', 90000, 1767225600);
      INSERT INTO meters (account_id, cycle, used, total) VALUES (1, 0, 1234, 1234);`);
    const counters = Buffer.alloc(16_384);
    counters.write(String(old.prepare('SELECT ledger_id FROM ledger').pluck().get()), 8, 'hex');
    counters.writeBigUInt64LE(word, 12_288 + 64);
    counters.writeBigUInt64LE(total, 12_288 + 72);
    writeFileSync(join(dirname(folder.file), 'counters.map'), counters);
    old.close();
  }

  it.each([
    ['what it had charged since', 1240n, 1240n, 1240],
    ['nothing of an older state', 1200n, 1200n, 1234],
    ['nothing of a cycle that no clock has reached', (1_048_576n << 40n) | 5n, 1234n, 1234],
    ['nothing beyond the limit', 274_877_909_944n, 1234n, 1234],
  ])('takes over %s from its counters, which are removed', async (_what, word, total, expected) => {
    earlier(word, total);
    expect((await folder.ledger().view('old')).quota.quota_used).toBe(expected);
    expect(folder.names()).not.toContain('counters.map');
  });

  it('is not upgraded while a server uses it', async () => {
    earlier(0n, 0n);
    const lock = openWriterLock(folder.file);
    expect(lockFile(lock)).toBe(true);
    expectCode(() => folder.ledger(), 'ledger_in_use');
    closeSync(lock);
    expect((await folder.ledger().view('old')).quota.quota_used).toBe(1234);
  });

  it('is refused if it is newer than this program, or of another program', () => {
    const ledger = folder.ledger();
    ledger.database.pragma(`user_version = ${LEDGER_VERSION + 1}`);
    expectCode(() => openDatabase(folder.file), 'ledger_version');
    const other = join(folder.dir, 'other.sqlite');
    const database = new Sqlite(other);
    database.exec('CREATE TABLE x (y)');
    database.close();
    expectCode(() => openDatabase(other), 'ledger_unavailable');
  });
});

describe('the file', () => {
  it('is readable by its owner only', () => {
    folder.ledger();
    expect(statSync(folder.file).mode & 0o007).toBe(0);
    expect(statSync(`${folder.file}-wal`).mode & 0o007).toBe(0);
  });

  it.runIf(process.getuid?.() === 0)('on a full disk is reported as such', async ({ skip }) => {
    const place = dirname(folder.file);
    mkdirSync(place);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=400k', 'tmpfs', place]);
    if (mounted.status !== 0) skip();
    try {
      await folder.ledger().close();
      const fill = openSync(join(place, 'fill'), 'w');
      expect(() => {
        for (;;) writeSync(fill, Buffer.alloc(4096));
      }).toThrow('ENOSPC');
      closeSync(fill);
      expect(() => folder.ledger()).toThrow('the disk is full');
    } finally {
      spawnSync('umount', ['-l', place]);
    }
  });

  it('is found damaged by a check', async () => {
    const ledger = folder.ledger();
    for (let i = 0; i < 200; i += 1) await ledger.createAccount(`account-${i}`);
    ledger.close();
    expect(checkLedger(folder.file).ok).toBe(true);
    const size = statSync(folder.file).size;
    const fd = openSync(folder.file, 'r+');
    for (let at = 4096 * 3; at + 4096 < size; at += 8192) writeSync(fd, Buffer.alloc(64, 0xee), 0, 64, at);
    closeSync(fd);
    let found = '';
    try {
      found = checkLedger(folder.file).problems.join('\n');
    } catch (error) {
      found = (error as Error).message;
    }
    expect(found).not.toBe('');
  });
});

describe('a key without its account', () => {
  it('is found by a check', () => {
    const { database } = folder.ledger();
    database.pragma('foreign_keys = OFF');
    database.exec("INSERT INTO api_keys (account_id, hash, vault_id, created_at) VALUES (7, 'x', 'y', 0)");
    expect(checkLedger(folder.file)).toEqual({ ok: false, problems: ['api_keys, row 1: its account is missing'] });
  });
});

describe('backup and restore', () => {
  const backup = (): string => join(folder.dir, 'backup.sqlite');
  const restore = (more = {}) =>
    restoreLedger({ backup: backup(), file: folder.file, actor: 'op', now: folder.now, ...more });

  /** Creates an account with 10 lookups in the backup and 5 more since. */
  async function prepare(): Promise<string> {
    const ledger = folder.ledger();
    await ledger.createAccount('acme');
    const { key } = (await ledger.subscribe('acme', 'pro', 'INV-1')).issued!;
    const reserver = folder.reserver();
    reserver.open();
    const meter = await folder.meter(reserver);
    for (let i = 0; i < 10; i += 1) await chargeOnce(meter, accountOf(meter, key));
    folder.nowMs += 1_000;
    reserver.tick();
    backupLedger(folder.file, backup());
    for (let i = 0; i < 5; i += 1) await chargeOnce(meter, accountOf(meter, key));
    return key;
  }

  it('copies while in use, without the encryption key, and never overwrites a file', async () => {
    await prepare();
    expect(checkLedger(backup())).toEqual({ ok: true, problems: [] });
    expect(statSync(backup()).mode & 0o077).toBe(0);
    expect(readFileSync(backup()).includes(readFileSync(folder.keyFile, 'utf8').trim())).toBe(false);
    expectCode(() => backupLedger(folder.file, backup()), 'backup_exists');
    expect(readdirSync(folder.dir).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('keeps usage, revocations, closures and new keys since the backup', async () => {
    const key = await prepare();
    const ledger = folder.ledger();
    const second = await ledger.rotateKey('acme', 3600);
    await ledger.revokeKey('acme', 1);
    await ledger.createAccount('later');
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
    const restored = folder.ledger();
    expect((await restored.view('acme')).quota.quota_used).toBe(15);
    expect((await restored.showKey('acme')).key).toBe(second.key);
    const reserver = folder.reserver();
    reserver.open();
    const meter = await folder.meter(reserver);
    expect(meter.authenticate(key).kind).toBe('unknown');
    expect(await chargeOnce(meter, accountOf(meter, second.key))).toBe(89_984);
    expect((await readAudit(restored, undefined, 10)).map(({ action }) => action)).toContain('ledger.restore');
    expect(checkLedger(folder.file).ok).toBe(true);
  });

  it('loses no change of a concurrent command: a change that it cannot take over is refused', async () => {
    await prepare();
    const [early, late] = [folder.ledger(), folder.ledger()];
    await early.createAccount('early');
    const other = new Sqlite(folder.file, { timeout: 0 });
    const tries: string[] = [];
    const now = (): number => {
      try {
        other.exec('BEGIN IMMEDIATE; ROLLBACK');
        tries.push('possible');
      } catch (error) {
        tries.push((error as { code: string }).code);
      }
      return folder.nowMs;
    };
    const report = restore({ now });
    other.close();
    expect(new Set(tries)).toEqual(new Set(['SQLITE_BUSY']));
    expect(report.missing).toEqual(['early']);
    // This command had opened the file and waits for its lock.
    await expect(late.createAccount('late')).rejects.toMatchObject({
      code: 'ledger_unavailable',
      message: expect.stringContaining('was replaced meanwhile'),
    });
    expect(readdirSync(dirname(folder.file)).filter((name) => /replaced-.*-(?:wal|shm)$/.test(name))).toEqual([]);
    await folder.ledger().createAccount('late');
  });

  it('keeps the latest moment seen, which determines when keys expire', async () => {
    const key = await prepare();
    await folder.ledger().rotateKey('acme', 3600);
    folder.nowMs += 7_200_000;
    const before = folder.reserver();
    before.open();
    before.tick();
    await folder.close();
    restore();
    folder.loseCounters();
    folder.nowMs -= 7_200_000;
    const reserver = folder.reserver();
    reserver.open();
    expect((await folder.meter(reserver)).authenticate(key).kind).toBe('unknown');
  });

  it.each([
    ['the ledger', ['counters'], 5],
    // Everything reserved counts as used, since nothing better is known.
    ['the counters', ['ledger'], 54],
  ] as const)('also finds the usage without %s', async (lost, knownFrom, lookups) => {
    await prepare();
    await folder.close();
    if (lost === 'the ledger') writeFileSync(folder.file, 'damaged'.repeat(1000));
    else folder.loseCounters();
    for (const end of ['-wal', '-shm']) if (lost === 'the ledger') rmSync(`${folder.file}${end}`, { force: true });
    expect(restore()).toMatchObject({ knownFrom, raised: [{ account: 'acme', lookups }] });
    expect((await folder.ledger().view('acme')).quota.quota_used).toBe(10 + lookups);
  });

  it('reduces nothing if the counters are older than the backup', async () => {
    await prepare();
    await folder.close();
    const id = new Sqlite(folder.file, { readonly: true }).prepare('SELECT ledger_id FROM ledger').pluck().get();
    const { counters, close } = createCounters(folder.file, String(id));
    counters.reset(1, { cycle: 0, limit: 90_000, reserved: 3, left: 0 });
    close();
    rmSync(folder.file);
    expect(restore()).toMatchObject({ knownFrom: ['counters'], raised: [{ account: 'acme', lookups: 54 }] });
    expect((await folder.ledger().view('acme')).quota.quota_used).toBe(64);
  });

  it('keeps the usage by day since the backup, of the accounts that it contains', async () => {
    const key = await prepare();
    const later = folder.ledger();
    await later.createAccount('later');
    const others = (await later.subscribe('later', 'pro', 'INV-2')).issued!.key;
    const reserver = folder.reserver();
    reserver.open();
    reserver.tick();
    const meter = await folder.meter(reserver);
    for (let day = 0; day < 2; day += 1) {
      folder.nowMs += DAY_MS;
      for (const one of [key, others]) await chargeOnce(meter, accountOf(meter, one));
      folder.nowMs += 1_000;
      reserver.tick();
    }
    restore();
    expect(await usageByDay(folder.ledger(), undefined, 3, folder.nowMs)).toEqual([
      { account: 'acme', day: '2026-01-01', lookups: 15 },
      { account: 'acme', day: '2026-01-02', lookups: 1 },
      { account: 'acme', day: '2026-01-03', lookups: 1 },
    ]);
    expect(checkLedger(folder.file).ok).toBe(true);
  });

  it('keeps accounts suspended and closed, and keys at their earlier end', async () => {
    const ledger = folder.ledger();
    for (const name of ['closed', 'rotated', 'suspended']) {
      await ledger.createAccount(name);
      await ledger.subscribe(name, 'pro', `INV-${name}`);
    }
    await ledger.rotateKey('rotated', 7200);
    backupLedger(folder.file, backup());
    await ledger.setActive('suspended', false);
    await ledger.closeAccount('closed');
    await ledger.rotateKey('rotated', 3600);
    expect(restore()).toMatchObject({ keptStricter: 4, keptKeys: 1 });
    const restored = folder.ledger();
    expect((await restored.list()).map(({ account }) => account.state)).toEqual(['closed', 'active', 'suspended']);
    const hour = folder.nowMs / 1000 + 3600;
    expect((await restored.view('rotated')).keys.map(({ expiresAt }) => expiresAt)).toEqual([hour, hour, null]);
  });

  it('does not reopen what is closed in the backup, and gives no key a later end', async () => {
    const ledger = folder.ledger();
    await ledger.createAccount('acme');
    await ledger.subscribe('acme', 'pro', 'INV-1');
    await ledger.setActive('acme', false);
    await ledger.rotateKey('acme', 7200);
    await folder.close();
    copyFileSync(folder.file, `${folder.file}.earlier`);
    const later = folder.ledger();
    await later.rotateKey('acme');
    await later.closeAccount('acme');
    backupLedger(folder.file, backup());
    await folder.close();
    renameSync(`${folder.file}.earlier`, folder.file);
    expect(restore()).toMatchObject({ keptStricter: 0, keptKeys: 0 });
    const restored = await folder.ledger().view('acme');
    expect(restored.account.state).toBe('closed');
    expect(restored.keys[0]!.expiresAt).toBe(folder.nowMs / 1000);
  });

  it('takes nothing over from an account that only shares its number with one in the backup', async () => {
    await folder.ledger().createAccount('acme');
    await folder.close();
    copyFileSync(folder.file, `${folder.file}.earlier`);
    const ledger = folder.ledger();
    await ledger.createAccount('one');
    await ledger.subscribe('one', 'pro', 'INV-1');
    backupLedger(folder.file, backup());
    await folder.close();
    renameSync(`${folder.file}.earlier`, folder.file);
    const present = folder.ledger();
    await present.createAccount('two');
    await present.subscribe('two', 'pro', 'INV-2');
    await present.rotateKey('two');
    present.database.exec(
      'UPDATE meters SET used = 9, reserved = 9, total = 9 WHERE account_id = 2; INSERT INTO usage_days VALUES (2, 20453, 9)',
    );
    await present.setActive('two', false);
    await folder.close();
    expect(restore()).toMatchObject({ raised: [], keptKeys: 0, keptStricter: 0, missing: ['two'] });
    const restored = folder.ledger();
    expect(await restored.view('one')).toMatchObject({ account: { id: 2, state: 'active' }, quota: { quota_used: 0 } });
    expect((await restored.view('one')).keys).toHaveLength(1);
    expect(await usageByDay(restored, 'one', 400, folder.nowMs)).toEqual([]);
  });

  it.each(['the replaced ledger', 'the counters'])(
    'lets no new account start with the usage of one that %s contains',
    async (from) => {
      await prepare();
      const ledger = folder.ledger();
      await ledger.createAccount('later');
      const { key } = (await ledger.subscribe('later', 'pro', 'INV-2')).issued!;
      const reserver = folder.reserver();
      reserver.open();
      const meter = await folder.meter(reserver);
      await chargeOnce(meter, accountOf(meter, key));
      await folder.close();
      if (from === 'the counters') rmSync(folder.file);
      restore();
      const restored = folder.ledger();
      await restored.createAccount('new');
      await restored.subscribe('new', 'pro', 'INV-3');
      expect((await restored.view('new')).quota.quota_used).toBe(0);
    },
  );

  it('is refused without both, unless the operator gives up the difference', async () => {
    await prepare();
    await folder.close();
    folder.loseCounters();
    rmSync(folder.file);
    expectCode(() => restore(), 'restore_refused');
    expect(existsSync(folder.file)).toBe(false);
    expect(restore({ acceptUnknownUsage: true }).knownFrom).toEqual([]);
    expect((await folder.ledger().view('acme')).quota.quota_used).toBe(64);
  });

  it.each([
    ['text', () => 'junk'.repeat(3000)],
    ['nothing', () => ''],
    ['a damaged backup', (bytes: Buffer) => bytes.fill(0xff, 4096, 12_288)],
    ['a backup without its schema', (bytes: Buffer) => bytes.fill(0xff, 100, 4096)],
    ['a ledger of another program', (bytes: Buffer) => bytes.fill(0, 68, 72)],
  ])('refuses %s instead of a backup, and leaves the ledger alone', async (_what, make) => {
    await prepare();
    await folder.close();
    writeFileSync(backup(), make(readFileSync(backup())));
    expectCode(() => restore(), 'restore_refused');
    expectCode(() => restore({ backup: folder.dir }), 'restore_refused');
    expect((await folder.ledger().view('acme')).quota.quota_used).toBe(15);
    expect(readdirSync(dirname(folder.file)).filter((name) => name.includes('restore.tmp'))).toEqual([]);
  });

  it('refuses a backup of another ledger, and a missing one', async () => {
    await prepare();
    expectCode(() => restore({ backup: join(folder.dir, 'none') }), 'restore_refused');
    const other = new LedgerFolder();
    try {
      await other.ledger().createAccount('x');
      rmSync(backup());
      backupLedger(other.file, backup());
    } finally {
      await other.remove();
    }
    expectCode(() => restore(), 'restore_refused');
    await folder.close();
    folder.loseCounters();
    expectCode(() => restore({ acceptUnknownUsage: true }), 'restore_refused');
    rmSync(join(dirname(folder.file), 'ledger.id'));
    expect(() => restore({ acceptUnknownUsage: true })).toThrow(`move the folder ${dirname(folder.file)} away first`);
    expect((await folder.ledger().view('acme')).quota.quota_used).toBe(64);
    expect(readdirSync(dirname(folder.file)).filter((name) => name.includes('restore.tmp'))).toEqual([]);
  });
});

describe('a network file system', () => {
  it('is refused by name; a local one is accepted', () => {
    expect(() => refuseNetworkFileSystem('/x', () => 0x6969)).toThrow(/NFS/);
    expect(() => refuseNetworkFileSystem('/x', () => 0xff534d42 | 0)).toThrow(/CIFS/);
    expect(() => refuseNetworkFileSystem('/x', () => 0xef53)).not.toThrow();
    expect(() => refuseNetworkFileSystem(folder.dir)).not.toThrow();
  });
});
