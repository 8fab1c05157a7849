/** A ledger that moves from a host's file to a fleet's database, and back. */
import { existsSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PagegateError } from '../../src/errors.ts';
import { moveToFile, moveToPostgres } from '../../src/ledger/fleet.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open.ts';
import type { Engine } from '../../src/ledger/postgres/engine.ts';
import { tryWriterLock } from '../../src/ledger/store/identity.ts';
import type { LedgerStore } from '../../src/ledger/store/ledger-store.ts';
import { PostgresStore } from '../../src/ledger/store/postgres-store.ts';
import { accountOf, chargeOnce, LedgerFolder } from '../ledger/support.ts';
import { endAtCommit } from './end-at-commit.ts';
import { TestNode } from './node.ts';
import type { EngineHarness } from './suite.ts';

const STALENESS_SECONDS = 60;

/** Returns everything that a move copies unchanged. */
async function contentOf(store: LedgerStore): Promise<unknown> {
  const tables: Record<string, unknown[]> = {};
  const columns: Readonly<Record<string, string>> = {
    accounts: 'id, name, state, created_at, plan, quota_limit, cycle_anchor, next_plan, next_limit, next_from_cycle',
    api_keys: 'id, account_id, hash, sealed, vault_id, created_at, expires_at, revoked_at',
    payments: 'id, account_id, at, plan, quota_limit, reference',
    audit: 'id, at, actor, action, account_id, before, after',
  };
  for (const [table, names] of Object.entries(columns)) {
    const rows = await store.rows<Record<string, unknown>>(`SELECT ${names} FROM ${table} ORDER BY id`);
    tables[table] = rows.map((row) =>
      Object.entries(row).map(([name, value]) => [
        name,
        value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
      ]),
    );
  }
  return tables;
}

/** Returns what the operator sees. */
async function seenIn(ledger: Ledger): Promise<unknown> {
  const views = await ledger.list();
  return {
    accounts: views.map(({ account, quota, cycle, keys }) => ({ account, quota, cycle, keys })),
    days: await ledger.store.usageByDay(0, null),
  };
}

export function describeMove(start: () => Promise<EngineHarness>): void {
  let engine: EngineHarness;
  let folder: LedgerFolder;
  const connect = (): Promise<Engine> => engine.connectAside();
  const codeOf = (task: Promise<unknown>): Promise<string> =>
    task.then(
      () => 'done',
      (error: PagegateError) => error.code ?? error.message,
    );
  beforeAll(async () => {
    engine = await start();
  }, 120_000);
  afterAll(() => engine.stop());
  beforeEach(async () => {
    await engine.clear();
    folder = new LedgerFolder();
    folder.nowMs = Date.now();
  }, 60_000);
  afterEach(() => folder.remove());

  const inFleet = async (): Promise<Ledger> =>
    new Ledger(await PostgresStore.open(await connect(), { maxStalenessSeconds: STALENESS_SECONDS }), {
      keyFile: folder.keyFile,
    });

  /** Creates a ledger with accounts of all kinds that has served and was stopped. Returns a valid key. */
  async function fill(): Promise<string> {
    const ledger = folder.ledger();
    for (const name of ['acme', 'empty', 'gone']) await ledger.createAccount(name);
    await ledger.subscribe('acme', 'custom', 'INV-1', 10_000);
    await ledger.subscribe('gone', 'custom', 'INV-2', 500);
    await ledger.revokeKey('gone', 2);
    await ledger.closeAccount('gone');
    await ledger.subscribe('acme', 'custom', 'INV-3', 5_000);
    const { key } = await ledger.rotateKey('acme', 3_600);
    const reserver = folder.reserver();
    expect(reserver.open()).toBe(true);
    const meter = await folder.meter(reserver);
    for (let i = 0; i < 25; i += 1) await chargeOnce(meter, accountOf(meter, key));
    folder.nowMs -= 86_400_000;
    reserver.tick();
    folder.nowMs += 86_400_000;
    for (let i = 0; i < 17; i += 1) await chargeOnce(meter, accountOf(meter, key));
    await meter.close();
    expect(reserver.close()).toBe(true);
    await folder.close();
    return key;
  }

  describe('a move', () => {
    it('carries accounts, keys, plans, usage and audit to the database and back, and refuses the source', async () => {
      const key = await fill();
      const local = folder.ledger();
      const [content, seen] = [await contentOf(local.store), await seenIn(local)];
      const report = await moveToPostgres(folder.file, connect);
      expect(report).toMatchObject({ accounts: 3, keys: 3, used: 42 });
      // A command that had opened the file before and waited for the lock: its change would never be read.
      expect(await codeOf(local.createAccount('late'))).toBe('ledger_moved');
      await local.close();
      const fleet = await inFleet();
      expect(await contentOf(fleet.store)).toEqual(content);
      expect(await seenIn(fleet)).toEqual(seen);
      expect((await fleet.showKey('acme')).key).toMatch(/^pg_/);
      expect(() => folder.ledger()).toThrow(/was moved to postgres/);
      const node = new TestNode('one', { connect });
      await node.start();
      for (let i = 0; i < 8; i += 1) expect(await node.charge(key)).toEqual(expect.any(Number));
      expect(await codeOf(moveToFile(connect, folder.file, STALENESS_SECONDS))).toBe('ledger_in_use');
      await node.stop();
      const after = await seenIn(fleet);
      const moved = await contentOf(fleet.store);
      const back = await moveToFile(connect, folder.file, STALENESS_SECONDS);
      expect(back).toEqual({ accounts: 3, keys: 3, used: 50, to: folder.file });
      await fleet.close();
      expect(await codeOf(inFleet())).toBe('ledger_moved');
      const again = folder.ledger();
      expect(await contentOf(again.store)).toEqual(moved);
      expect(await seenIn(again)).toEqual(after);
      await node.start();
      await expect.poll(() => node.reserver.counters?.reason).toMatch(/moved/);
      // The database gets no more messages there.
      await node.stop({ limitMs: 300 });
      node.remove();
    });

    it('continues the usage of the day in both directions', async () => {
      const key = await fill();
      await moveToPostgres(folder.file, connect);
      await moveToFile(connect, folder.file, STALENESS_SECONDS);
      const reserver = folder.reserver();
      expect(reserver.open()).toBe(true);
      const meter = await folder.meter(reserver);
      for (let i = 0; i < 5; i += 1) await chargeOnce(meter, accountOf(meter, key));
      reserver.tick();
      folder.nowMs += 86_400_000;
      await chargeOnce(meter, accountOf(meter, key));
      reserver.tick();
      await meter.close();
      reserver.close();
      const days = await folder.ledger().store.usageByDay(0, 'acme');
      expect(days.map(({ lookups }) => lookups)).toEqual([25, 22, 1]);
    });

    it('is refused while a server runs, and if the destination already has accounts', async () => {
      await fill();
      const release = tryWriterLock(folder.file)!;
      expect(await codeOf(moveToPostgres(folder.file, connect))).toBe('ledger_in_use');
      release();
      const fleet = await inFleet();
      await fleet.createAccount('other');
      expect(await codeOf(moveToPostgres(folder.file, connect))).toBe('move_refused');
      expect(await codeOf(moveToFile(connect, folder.file, STALENESS_SECONDS))).toBe('move_refused');
      await fleet.close();
      // It is served as before.
      expect((await folder.ledger().view('acme')).quota.quota_used).toBe(42);
      expect(await codeOf(Promise.resolve().then(() => moveToPostgres(`${folder.file}-none`, connect)))).toBe(
        'no_ledger',
      );
    });

    it('that ends before its commit loses nothing, and can be run again', async () => {
      await fill();
      const interrupted = async (): Promise<Engine> => endAtCommit(await connect(), 'before');
      expect(await codeOf(moveToPostgres(folder.file, interrupted))).toBe('ledger_unavailable');
      // It is unknown whether the commit arrived: neither ledger is served until the move is run again.
      await expect(openLedger({ file: folder.file, keyFile: folder.keyFile })).rejects.toThrow(/was moved to/);
      expect(await moveToPostgres(folder.file, connect)).toMatchObject({ accounts: 3, used: 42 });
      expect(await codeOf(moveToFile(interrupted, folder.file, STALENESS_SECONDS))).toBe('ledger_unavailable');
      await (await inFleet()).close();
      expect(await moveToFile(connect, folder.file, STALENESS_SECONDS)).toMatchObject({ accounts: 3, used: 42 });
      expect(await folder.ledger().list()).toHaveLength(3);
    });

    it('that ends after its commit has taken effect, and is finished when it is run again', async () => {
      await fill();
      const interrupted = async (): Promise<Engine> => endAtCommit(await connect(), 'after');
      expect(await codeOf(moveToPostgres(folder.file, interrupted))).toBe('ledger_unavailable');
      expect(await codeOf(moveToPostgres(folder.file, connect))).toBe('ledger_moved');
      const fleet = await inFleet();
      expect((await fleet.view('acme')).quota.quota_used).toBe(42);
      await fleet.close();
      expect(await codeOf(moveToFile(interrupted, folder.file, STALENESS_SECONDS))).toBe('ledger_unavailable');
      expect(await codeOf(inFleet())).toBe('ledger_moved');
      expect(await moveToFile(connect, folder.file, STALENESS_SECONDS)).toMatchObject({ accounts: 3, used: 42 });
      expect((await folder.ledger().view('acme')).quota.quota_used).toBe(42);
      expect(readdirSync(dirname(folder.file)).filter((name) => name.includes('moving'))).toEqual([]);
      expect(existsSync(folder.file)).toBe(true);
      expect(await codeOf(moveToFile(connect, folder.file, STALENESS_SECONDS))).toBe('move_refused');
    });
  });
}
