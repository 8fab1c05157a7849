/** The rules of a fleet: nodes that share one ledger. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AuditFilter, readAudit } from '../../src/ledger/audit.ts';
import { CYCLE_SECONDS, dayOf } from '../../src/ledger/cycle.ts';
import { fleetStatus, retireNode } from '../../src/ledger/fleet.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { Engine } from '../../src/ledger/postgres/engine.ts';
import type { SyncRequest } from '../../src/ledger/postgres/sync.ts';
import { createApiKey } from '../../src/ledger/store/api-key.ts';
import { openDatabase } from '../../src/ledger/store/database.ts';
import { PostgresStore } from '../../src/ledger/store/postgres-store.ts';
import { Random } from '../../tools/random.ts';
import { SEED } from '../support/seed.ts';
import { endAtCommit } from './end-at-commit.ts';
import { TestNode } from './node.ts';

/** An engine that a test can disconnect. */
export interface EngineHarness {
  readonly connect: () => Promise<Engine>;
  /** Returns a connection that {@link cut} does not end. */
  connectAside(): Promise<Engine>;
  /** Deletes all data and makes the engine reachable again. */
  clear(): Promise<void>;
  /** Ends the nodes' connections. New ones are refused until `isDown` is false again. */
  cut(): Promise<void>;
  isDown: boolean;
  run(text: string): Promise<void>;
  stop(): Promise<void>;
}

/** The rules of a fleet, with any engine. */
export function describeFleet(start: () => Promise<EngineHarness>): void {
  let engine: EngineHarness;
  let ledger: Ledger;
  let keys: string;
  let nodes: TestNode[];
  beforeAll(async () => {
    engine = await start();
  }, 120_000);
  afterAll(() => engine.stop());
  beforeEach(async () => {
    await engine.clear();
    keys = mkdtempSync(join(tmpdir(), 'pagegate-keys-'));
    const store = await PostgresStore.open(await engine.connectAside(), { maxStalenessSeconds: 60 });
    ledger = new Ledger(store, { keyFile: join(keys, 'ledger.key'), actor: 'tester' });
    nodes = [];
  }, 60_000);
  afterEach(async () => {
    for (const node of nodes) {
      await node.crash();
      node.remove();
    }
    await ledger.close();
    rmSync(keys, { recursive: true, force: true });
  }, 60_000);

  async function addNode(
    name: string,
    options: { maxStalenessSeconds?: number; timeoutMs?: number } = {},
  ): Promise<TestNode> {
    const node = new TestNode(name, { connect: engine.connect, ...options });
    nodes.push(node);
    await node.start();
    return node;
  }

  async function subscribe(name: string, limit: number): Promise<string> {
    await ledger.createAccount(name);
    return (await ledger.subscribe(name, 'custom', `PAY-${name}`, limit)).issued!.key;
  }

  /** Checks the invariants: nothing granted beyond the limit, nothing spent beyond the grants, no answer uncounted. */
  async function expectConservation(limit: number, account = 'acme'): Promise<void> {
    const rows = await ledger.store.rows<{ granted: number; spent: number }>(
      'SELECT granted, spent FROM grants JOIN accounts ON accounts.id = account_id WHERE accounts.name = ?',
      account,
    );
    for (const { granted, spent } of rows) expect(spent).toBeLessThanOrEqual(granted);
    expect(rows.reduce((sum, { granted }) => sum + granted, 0)).toBeLessThanOrEqual(limit);
  }

  /** Returns what the fleet's ledger has recorded for all nodes together. */
  async function known(): Promise<{ granted: number; spent: number }> {
    const [row] = await ledger.store.rows<{ granted: number; spent: number }>(
      'SELECT sum(granted)::int8 AS granted, sum(spent)::int8 AS spent FROM grants',
    );
    return row!;
  }

  const served = (): number => nodes.reduce((sum, node) => sum + node.served, 0);

  describe('a fleet', () => {
    it('serves exactly the limit over all nodes, then refuses, and counts what was served', async () => {
      const limit = 700;
      const key = await subscribe('acme', limit);
      const fleet = [await addNode('one'), await addNode('two'), await addNode('three')];
      const outcomes = await Promise.all(
        fleet.map(async (node) => {
          for (;;) {
            const outcome = await node.charge(key);
            if (typeof outcome !== 'number') return outcome;
          }
        }),
      );
      expect(outcomes).toEqual(['quota_exhausted', 'quota_exhausted', 'quota_exhausted']);
      expect(served()).toBe(limit);
      await expectConservation(limit);
      for (const node of fleet) await node.stop();
      const { quota } = await ledger.view('acme');
      expect(quota.quota_used).toBe(limit);
      const days = await ledger.store.usageByDay(0, 'acme');
      expect(days.reduce((sum, { lookups }) => sum + lookups, 0)).toBe(limit);
      expect((await fleetStatus(ledger, 60)).history).toBe(0);
    }, 120_000);

    it('filters its audit by account, by user and action, and by time, like a single host', async () => {
      await subscribe('acme', 100);
      await subscribe('other', 100);
      const now = Math.floor(Date.now() / 1_000);
      const found = async (name: string | undefined, filter: AuditFilter): Promise<number> =>
        (await readAudit(ledger, name, 100, filter)).length;
      expect(await found('acme', { actor: 'test', action: 'subscribe', from: now - 600, to: now + 600 })).toBe(1);
      expect(await found(undefined, { action: 'subscribe pay-' })).toBe(2);
      await ledger.note('Übergabe', null, null);
      expect(await found(undefined, { action: 'Übergabe' })).toBe(1);
      for (const filter of [{ actor: 'test%' }, { action: 'pay_' }, { to: now - 600 }, { from: now + 600 }])
        expect(await found(undefined, filter)).toBe(0);
    });

    it('issues no key on a host with another ledger.key or without one, and creates none there', async () => {
      const key = await subscribe('acme', 100);
      const elsewhere = join(keys, 'elsewhere', 'ledger.key');
      const other = async (): Promise<Ledger> => {
        const store = await PostgresStore.open(await engine.connectAside(), { maxStalenessSeconds: 60 });
        return new Ledger(store, { keyFile: elsewhere });
      };
      const refused = { code: 'bad_key_file', message: expect.stringContaining('Copy the file of another node') };
      const without = await other();
      await expect(without.rotateKey('acme')).rejects.toMatchObject(refused);
      expect(existsSync(elsewhere)).toBe(false);
      await without.close();
      mkdirSync(dirname(elsewhere));
      writeFileSync(elsewhere, 'ab'.repeat(32), { mode: 0o600 });
      const wrong = await other();
      await expect(wrong.rotateKey('acme')).rejects.toMatchObject(refused);
      expect((await ledger.showKey('acme')).key).toBe(key);
      // If the file is lost everywhere, that of one node becomes that of all.
      const made = await wrong.rotateKey('acme', 0, true);
      expect((await wrong.showKey('acme')).key).toBe(made.key);
      await expect(ledger.rotateKey('acme')).rejects.toMatchObject(refused);
      await wrong.close();
    });

    it('gives back what an idle node holds as soon as another one needs it', async () => {
      const key = await subscribe('acme', 10_000);
      const [one, two] = [await addNode('one'), await addNode('two')];
      await one.charge(key);
      await ledger.subscribe('acme', 'custom', 'PAY-2', 10_000);
      const account = await two.account(key);
      // Nearly everything is spent on the second node; what the first one holds is recalled for the rest.
      // A charge may time out while that takes too long; then it is repeated.
      let count = 0;
      for (let outcome = await two.charge(key); outcome !== 'quota_exhausted'; outcome = await two.charge(key)) {
        if (typeof outcome === 'number') count += 1;
        else expect(outcome).toBe('ledger_unavailable');
      }
      expect(count + 1).toBe(10_000);
      expect(account.name).toBe('acme');
    }, 240_000);

    it('serves from its block when cut off from its ledger, then refuses, and recovers afterwards', async () => {
      const key = await subscribe('acme', 100_000);
      const node = await addNode('one', { timeoutMs: 300, maxStalenessSeconds: 5 });
      expect(await node.charge(key)).toBe(99_999);
      await engine.cut();
      let count = 0;
      while (typeof (await node.charge(key)) === 'number') count += 1;
      expect(count).toBeGreaterThan(10);
      expect(count).toBeLessThanOrEqual(1_000);
      // A key that is missing in the copy may be new.
      await expect.poll(() => node.meter.health().ready).toBe(false);
      expect(() => node.meter.authenticate(createApiKey())).toThrow(/not heard|fleet/);
      engine.isDown = false;
      await expect.poll(() => node.meter.health().ready).toBe(true);
      await expect.poll(() => node.charge(key)).toEqual(expect.any(Number));
      await expectConservation(100_000);
    }, 120_000);

    it('continues after the death of its ledger writer, even while the fleet’s ledger is unavailable', async () => {
      const key = await subscribe('acme', 100_000);
      const node = await addNode('one', { timeoutMs: 300 });
      for (let i = 0; i < 20; i += 1) expect(await node.charge(key)).toEqual(expect.any(Number));
      await engine.cut();
      await node.crash();
      await node.start();
      // Reserved lookups are spent at once, without a message from the engine.
      const account = node.meter.authenticate(key);
      expect(account.kind).toBe('account');
      expect(await node.charge(key)).toEqual(expect.any(Number));
      engine.isDown = false;
      // The engine accepts it as the successor, and does not wait for another session to end.
      const problems = new Set<string>();
      await expect
        .poll(
          () => {
            problems.add(node.grants.problem);
            return node.grants.problem;
          },
          { interval: 5 },
        )
        .toBe('');
      expect([...problems].join()).not.toMatch(/earlier session/);
      await node.stop();
      expect((await ledger.view('acme')).quota.quota_used).toBe(node.served);
    }, 120_000);

    it('reports and gives back everything on an orderly stop, even if its connection was cut before', async () => {
      const key = await subscribe('acme', 100_000);
      const node = await addNode('one');
      for (let i = 0; i < 50; i += 1) await node.charge(key);
      await engine.cut();
      engine.isDown = false;
      await node.stop();
      expect(node.served).toBe(50);
      expect(await known()).toEqual({ granted: 50, spent: 50 });
    }, 120_000);

    it('stops in time while its ledger is unavailable; its usage stays granted, and its next session reports it', async () => {
      const limit = 100_000;
      const key = await subscribe('acme', limit);
      const node = await addNode('one');
      for (let i = 0; i < 50; i += 1) await node.charge(key);
      await engine.cut();
      await node.stop({ limitMs: 300 });
      const before = await known();
      expect(before.spent).toBeLessThanOrEqual(node.served);
      expect(before.granted).toBeGreaterThanOrEqual(node.served);
      // The final report was given up.
      engine.isDown = false;
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(await known()).toEqual(before);
      await node.start();
      await expect.poll(async () => (await known()).spent).toBe(node.served);
      await node.stop();
      expect(await known()).toEqual({ granted: node.served, spent: node.served });
    }, 120_000);

    it('gives back everything if it stops before its first message was accepted', async () => {
      const key = await subscribe('acme', 3_000);
      const node = await addNode('one');
      for (let i = 0; i < 50; i += 1) await node.charge(key);
      // Without its memory it does not know the session that the engine considers alive.
      await node.crash({ power: true });
      await node.start();
      await node.stop();
      const { granted, spent } = await known();
      expect(granted).toBe(spent);
      expect(spent).toBeGreaterThanOrEqual(node.served);
      expect(spent - node.served).toBeLessThanOrEqual(30);
    }, 120_000);

    it('is not reported as current while it cannot take over a change', async () => {
      const key = await subscribe('acme', 1_000);
      const [name, options] = ['one', { maxStalenessSeconds: 1 }];
      let isBroken = false;
      const connect = async (): Promise<Engine> => {
        const inner = await engine.connect();
        const query = inner.query.bind(inner);
        inner.query = async (text, values) => {
          if (isBroken && text.includes('FROM api_keys')) throw new Error('the connection is gone');
          return query(text, values);
        };
        return inner;
      };
      const node = new TestNode(name, { connect, ...options });
      nodes.push(node);
      await node.start();
      expect(await node.charge(key)).toEqual(expect.any(Number));
      isBroken = true;
      void ledger.revokeKey('acme', 1).catch(() => {});
      await expect.poll(() => node.meter.health().ready).toBe(false);
      isBroken = false;
      await expect.poll(() => node.meter.health().ready).toBe(true);
      expect(node.meter.authenticate(key).kind).toBe('unknown');
    }, 120_000);

    it('counts each lookup once across the end of a cycle, in its own cycle', async () => {
      // More than a process can request in two seconds.
      const key = await subscribe('acme', 100_000_000);
      const end = Math.floor(Date.now() / 1_000) + 2;
      await ledger.store.transaction(async (sql) => {
        await sql.run('UPDATE accounts SET cycle_anchor = ?', end - CYCLE_SECONDS);
        await sql.run('UPDATE ledger SET revision = revision + 1');
      });
      const node = await addNode('one');
      const served = [0, 0];
      while (Date.now() < end * 1_000 + 700) {
        const isNext = Date.now() >= end * 1_000 + 100;
        expect(await node.charge(key), node.meter.health().reason).toEqual(expect.any(Number));
        if (isNext) served[1]! += 1;
        if (Date.now() < end * 1_000 - 100) served[0]! += 1;
      }
      await node.stop();
      const rows = await ledger.store.rows<{ cycle: number; spent: number; granted: number }>(
        'SELECT cycle, spent, granted FROM grants ORDER BY cycle',
      );
      expect(rows.map(({ cycle }) => cycle)).toEqual([0, 1]);
      for (const [i, { spent, granted }] of rows.entries()) {
        expect(spent).toBeGreaterThanOrEqual(served[i]!);
        expect(granted).toBe(spent);
      }
      expect(rows.reduce((sum, { spent }) => sum + spent, 0)).toBe(node.served);
      expect((await fleetStatus(ledger, 60)).history).toBe(0);
    }, 120_000);

    it('does not take a cycle that was deleted long ago for lost commits', async () => {
      const key = await subscribe('acme', 1_000);
      const node = await addNode('one');
      await node.charge(key);
      await node.stop();
      await engine.run(
        `UPDATE pagegate.accounts SET cycle_anchor = cycle_anchor - 10 * ${CYCLE_SECONDS}; DELETE FROM pagegate.cycles;
         UPDATE pagegate.ledger SET revision = revision + 1`,
      );
      await node.start();
      await expect.poll(() => node.meter.health().ready).toBe(true);
      expect((await fleetStatus(ledger, 60)).history).toBe(0);
      expect(await node.charge(key)).toEqual(expect.any(Number));
    }, 120_000);

    it('reports many accounts and their days in messages that a slow engine can answer', async () => {
      const count = 700;
      const anchor = Math.floor(Date.now() / 1_000);
      await engine.run(
        `SET search_path = pagegate; INSERT INTO accounts (name, state, created_at, plan, quota_limit, cycle_anchor)
           SELECT 'many-' || n, 'active', ${anchor}, 'custom', 1000, ${anchor} FROM generate_series(1, ${count}) n;
         UPDATE ledger SET revision = revision + 1`,
      );
      const reports: SyncRequest[] = [];
      const connect = async (): Promise<Engine> => {
        const inner = await engine.connect();
        const query = inner.query.bind(inner);
        inner.query = async (text, values = []) => {
          if (text.includes('sync(')) reports.push(JSON.parse(String(values[0])) as SyncRequest);
          return query(text, values);
        };
        return inner;
      };
      const node = new TestNode('one', { connect });
      nodes.push(node);
      await node.start();
      await expect.poll(() => node.meter.health().ready).toBe(true);
      await node.stop();
      const copy = openDatabase(node.file);
      const today = dayOf(anchor);
      copy.exec(`UPDATE meters SET used = 5, reserved = 5, total = 205, day = ${today}, day_used = 5;
        INSERT INTO usage_days WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 40)
          SELECT id, ${today} - n, 5 FROM accounts, n`);
      copy.close();
      reports.length = 0;
      await node.start();
      await expect.poll(async () => (await known()).spent).toBe(5 * count);
      await expect.poll(() => reports.some(({ full }) => full)).toBe(true);
      for (const { days } of reports) expect(days.length).toBeLessThanOrEqual(10_250);
      const days = await ledger.store.usageByDay(0, null);
      expect(days.reduce((sum, { lookups }) => sum + lookups, 0)).toBe(205 * count);
    }, 120_000);

    it('continues over a new connection after a newer program upgraded the tables; an older program does not start', async () => {
      const key = await subscribe('acme', 100_000);
      const node = await addNode('one');
      await node.charge(key);
      await engine.run('UPDATE pagegate.ledger SET version = 99');
      const { heardMs } = node.grants;
      await engine.cut();
      engine.isDown = false;
      await expect.poll(() => node.grants.heardMs).toBeGreaterThan(heardMs + 2_000);
      const late = await addNode('two');
      await expect.poll(() => late.grants.problem).toMatch(/expected version \d+, got 99/);
      for (let i = 0; i < 300; i += 1) expect(await node.charge(key)).toEqual(expect.any(Number));
      await node.stop();
      expect(await known()).toEqual({ granted: 301, spent: 301 });
    }, 120_000);

    it('gives back a grant whose answer never arrived', async () => {
      const limit = 120;
      const key = await subscribe('acme', limit);
      const [one, two] = [await addNode('one'), await addNode('two')];
      await expect.poll(async () => (await fleetStatus(ledger, 60)).nodes.length).toBe(2);
      await one.account(key);
      const [{ id: account } = { id: 0 }] = await ledger.store.rows<{ id: number }>('SELECT id FROM accounts');
      const [{ id } = { id: '' }] = await ledger.store.rows<{ id: string }>("SELECT id FROM nodes WHERE name = 'one'");
      await ledger.store.run('INSERT INTO cycles (account_id, cycle) VALUES (?, 0)', account);
      await ledger.store.run(
        'INSERT INTO grants (account_id, cycle, node, granted, spent) VALUES (?, 0, ?, 100, 0)',
        account,
        id,
      );
      for (;;) if ((await two.charge(key)) === 'quota_exhausted') break;
      expect(two.served).toBe(limit);
    }, 120_000);

    it('has every change on every live node when the command ends', async () => {
      const key = await subscribe('acme', 1_000);
      const [one, two] = [await addNode('one'), await addNode('two')];
      await one.account(key);
      await two.account(key);
      await ledger.revokeKey('acme', 1);
      expect(ledger.lag).toBeUndefined();
      await expect
        .poll(() => [one, two].map((node) => node.meter.authenticate(key).kind))
        .toEqual(['unknown', 'unknown']);
    }, 120_000);

    it('reports that a change may have been made if its commit got no answer', async () => {
      for (const when of ['before', 'after'] as const) {
        const store = await PostgresStore.open(endAtCommit(await engine.connectAside(), when), {
          maxStalenessSeconds: 60,
        });
        const cut = new Ledger(store, { keyFile: join(keys, 'ledger.key') });
        await expect(cut.createAccount(when)).rejects.toThrow(/is gone\. The change may have been made: look/);
        await cut.close();
      }
      expect((await ledger.list()).map(({ account }) => account.name)).toEqual(['after']);
    }, 60_000);

    it('names the nodes that do not follow a change', async () => {
      const key = await subscribe('acme', 1_000);
      const [, two] = [await addNode('one'), await addNode('two')];
      await two.account(key);
      await two.crash();
      await ledger.revokeKey('acme', 1);
      expect(ledger.lag).toMatch(/^These servers do not follow yet: two\. /);
      const behind = async (): Promise<unknown> => (await fleetStatus(ledger, 60)).nodes.map((node) => node.behind);
      expect(await behind()).toEqual([0, 1]);
      await ledger.createAccount('other');
      expect(await behind()).toEqual([0, 2]);
    }, 120_000);

    it('counts a dead node’s block as used until the node returns or is retired', async () => {
      const key = await subscribe('acme', 6_400);
      const one = await addNode('one', { maxStalenessSeconds: 5 });
      for (let i = 0; i < 10; i += 1) await one.charge(key);
      await expect.poll(async () => (await fleetStatus(ledger, 60)).nodes[0]?.held).toBeGreaterThan(0);
      await one.crash({ power: true });
      await expect.poll(async () => (await fleetStatus(ledger, 1)).stranded).toHaveLength(1);
      const [stranded] = (await fleetStatus(ledger, 1)).stranded;
      expect(stranded).toMatchObject({ account: 'acme', node: 'one' });
      const { lookups } = await retireNode(ledger, 'one', { actor: 'tester', giveBack: true, maxStalenessSeconds: 1 });
      expect(lookups).toBe(stranded!.lookups);
      // A retired node starts from zero when it returns.
      await one.start();
      await expect.poll(() => one.fenced).toMatch(/was retired by/);
    }, 120_000);

    it('treats a copied folder as another node', async () => {
      const key = await subscribe('acme', 100_000);
      const one = await addNode('one');
      for (let i = 0; i < 5; i += 1) await one.charge(key);
      const twin = new TestNode('twin', { connect: engine.connect });
      nodes.push(twin);
      cpSync(join(one.folder, 'fleet'), join(twin.folder, 'fleet'), { recursive: true });
      await twin.start();
      await twin.charge(key);
      const { nodes: seen } = await fleetStatus(ledger, 60);
      expect(seen.filter(({ state }) => state === 'live').map(({ name }) => name)).toEqual(['one', 'twin']);
      await one.charge(key);
      await one.stop();
      await twin.stop();
      expect((await ledger.view('acme')).quota.quota_used).toBe(served());
    }, 120_000);

    it('grants nothing while commits may be lost, and never sells again what a node remembers', async () => {
      const limit = 640;
      const key = await subscribe('acme', limit);
      const [one, two] = [
        await addNode('one', { maxStalenessSeconds: 5, timeoutMs: 300 }),
        await addNode('two', { maxStalenessSeconds: 5, timeoutMs: 300 }),
      ];
      for (let i = 0; i < 50; i += 1) await one.charge(key);
      for (let i = 0; i < 50; i += 1) await two.charge(key);
      // The engine loses all its grants.
      await engine.run('DELETE FROM pagegate.grants');
      await engine.cut();
      engine.isDown = false;
      await expect.poll(async () => (await fleetStatus(ledger, 60)).history).toBeGreaterThan(0);
      await expect.poll(async () => (await fleetStatus(ledger, 60)).learning).toBe(false);
      const outcomes = await Promise.all(
        [one, two].map(async (node) => {
          for (;;) {
            const outcome = await node.charge(key);
            if (outcome === 'quota_exhausted') return outcome;
          }
        }),
      );
      expect(outcomes).toEqual(['quota_exhausted', 'quota_exhausted']);
      expect(served()).toBe(limit);
      const audit = await ledger.store.rows<{ action: string }>(
        "SELECT action FROM audit WHERE action LIKE 'fleet.l%' ORDER BY id",
      );
      expect(audit.map(({ action }) => action).slice(0, 1)).toEqual(['fleet.lost_commits']);
    }, 180_000);
  });

  describe('an account at its limit', () => {
    it('is given back at most what was used, not what nodes only held', async () => {
      const key = await subscribe('acme', 2_000);
      const node = await addNode('one');
      for (let i = 0; i < 10; i += 1) await node.charge(key);
      await expect.poll(async () => (await known()).spent).toBe(10);
      expect((await known()).granted).toBeGreaterThan(10);
      await ledger.correct('acme', { credit: 1_000 }, 'a test');
      for (;;) if ((await node.charge(key)) === 'quota_exhausted') break;
      expect(node.served).toBe(2_010);
    }, 120_000);

    const now = performance.now.bind(performance);
    let laterMs = 0;
    beforeEach(() => {
      laterMs = 0;
      vi.spyOn(performance, 'now').mockImplementation(() => now() + laterMs);
    });
    afterEach(() => {
      vi.restoreAllMocks();
    });

    /** Simulates that a minute has passed on all nodes and that they have sent their reports. */
    async function passMinute(node: TestNode): Promise<void> {
      laterMs += 60_000;
      const { heardMs } = node.grants;
      await expect.poll(() => node.grants.heardMs).toBeGreaterThan(heardMs + 2_000);
    }

    const useUp = async (node: TestNode, key: string): Promise<void> => {
      for (;;) if ((await node.charge(key)) === 'quota_exhausted') break;
    };

    it('is served again after lookups are given back to it, however long it was not served', async () => {
      const key = await subscribe('acme', 100);
      const [one, two] = [
        await addNode('one', { maxStalenessSeconds: 300 }),
        await addNode('two', { maxStalenessSeconds: 300 }),
      ];
      await two.charge(key);
      await useUp(one, key);
      await useUp(two, key);
      expect(served()).toBe(100);
      await passMinute(one);
      await ledger.correct('acme', { credit: 10 }, 'a test');
      await expect.poll(() => one.charge(key)).toEqual(expect.any(Number));
      await useUp(one, key);
      await useUp(two, key);
      expect(served()).toBe(110);
      // As if another node gave something back: no message reports it.
      await passMinute(one);
      await engine.run('UPDATE pagegate.cycles SET credit = credit + 5');
      await passMinute(one);
      await useUp(one, key);
      await useUp(two, key);
      expect(served()).toBe(115);
    }, 120_000);

    it('is served again with the unspent lookups of a node that is retired', async () => {
      const key = await subscribe('acme', 2_000);
      const [one, two] = [
        await addNode('one', { maxStalenessSeconds: 300 }),
        await addNode('two', { maxStalenessSeconds: 1 }),
      ];
      await one.charge(key);
      await expect.poll(async () => (await known()).spent).toBe(1);
      const { granted } = await known();
      await one.crash({ power: true });
      await useUp(two, key);
      expect(two.served).toBe(2_000 - granted);
      await passMinute(two);
      await retireNode(ledger, 'one', { actor: 'tester', giveBack: true, maxStalenessSeconds: 1 });
      await expect.poll(() => two.charge(key)).toEqual(expect.any(Number));
      await useUp(two, key);
      expect(served()).toBe(2_000);
    }, 120_000);
  });

  describe('a database that has lost its latest changes', () => {
    /** Deletes everything of an account, and the record that its number was used. */
    const forget = (id: number): Promise<void> =>
      engine.run(
        `SET search_path = pagegate; ${['grants', 'cycles', 'node_totals', 'usage_days', 'api_keys', 'payments'].map((table) => `DELETE FROM ${table} WHERE account_id = ${id};`).join(' ')}
         DELETE FROM accounts WHERE id = ${id}; SELECT setval('accounts_id_seq', ${id}, false)`,
      );
    const reconnect = async (): Promise<void> => {
      await engine.cut();
      engine.isDown = false;
    };

    it('knows a lost account again once a node reports it, and gives its number to no other account', async () => {
      await subscribe('acme', 1_000);
      const key = await subscribe('lost', 1_000);
      const node = await addNode('one', { maxStalenessSeconds: 3, timeoutMs: 300 });
      for (let i = 0; i < 5; i += 1) expect(await node.charge(key)).toEqual(expect.any(Number));
      const { id } = await node.account(key);
      await forget(id);
      await reconnect();
      const learned = async (): Promise<unknown> => {
        const { history, learning } = await fleetStatus(ledger, 60);
        return [history, learning];
      };
      await expect.poll(learned).toEqual([1, false]);
      const presented = async (): Promise<number> =>
        (await ledger.store.row<{ at: number }>('SELECT presented_at AS at FROM nodes'))!.at;
      for (let i = 0; i < 2; i += 1) {
        const before = await presented();
        await reconnect();
        await expect.poll(presented).toBeGreaterThan(before);
      }
      expect(await learned()).toEqual([1, false]);
      const { id: next } = await ledger.createAccount('next');
      expect(next).toBeGreaterThan(id);
      await node.stop();
      const days = await ledger.store.usageByDay(0, `-${id}`);
      expect(days.map(({ lookups }) => lookups)).toEqual([5]);
      expect((await ledger.view(`-${id}`)).account.state).toBe('closed');
    }, 120_000);

    it('gets reports of everything that nodes hold as soon as one of them shows that it lost something', async () => {
      const key = await subscribe('acme', 10_000);
      const [one, two] = [await addNode('one'), await addNode('two')];
      for (const node of [one, two]) await node.charge(key);
      const presented = (): Promise<readonly { name: string; since: number; at: number }[]> =>
        ledger.store.rows('SELECT name, learning_since AS since, presented_at AS at FROM nodes, ledger ORDER BY name');
      await expect.poll(async () => (await presented()).map(({ at }) => at > 0)).toEqual([true, true]);
      await engine.run("DELETE FROM pagegate.grants WHERE node = (SELECT id FROM pagegate.nodes WHERE name = 'two')");
      await expect.poll(async () => (await presented()).map(({ since }) => since === null)).toEqual([false, false]);
      await expect.poll(async () => (await presented()).map(({ since, at }) => at >= since)).toEqual([true, true]);
      await expect.poll(async () => (await fleetStatus(ledger, 60)).learning).toBe(false);
    }, 120_000);

    it('is copied again by a node that hears of the loss while it takes over a change, and workers see that', async () => {
      const key = await subscribe('acme', 1_000);
      let [isLost, isAsked] = [false, false];
      const connect = async (): Promise<Engine> => {
        const inner = await engine.connect();
        const query = inner.query.bind(inner);
        inner.query = async (text, values) => {
          if (isLost && /^SELECT revision.* FROM ledger$/.test(text)) {
            isLost = false;
            await engine.run(
              `SET search_path = pagegate; ALTER TABLE accounts DISABLE TRIGGER USER; UPDATE accounts SET state = 'active', revision = 1;
               ALTER TABLE accounts ENABLE TRIGGER USER; UPDATE ledger SET revision = revision + 1, history = history + 1`,
            );
          }
          // A worker that looks up an account keeps the result until a change is reported.
          if (isAsked) node.meter.authenticate(key);
          return query(text, values);
        };
        return inner;
      };
      const node = new TestNode('one', { connect });
      nodes.push(node);
      await node.start();
      await node.account(key);
      await ledger.setActive('acme', false);
      await expect.poll(() => node.meter.authenticate(key)).toMatchObject({ activated: false });
      [isLost, isAsked] = [true, true];
      await ledger.createAccount('next');
      await expect.poll(() => node.meter.authenticate(key)).toMatchObject({ activated: true });
    }, 120_000);

    it('has every later change on every node, even on those that know of the lost ones', async () => {
      const [key, other] = [await subscribe('acme', 1_000), await subscribe('other', 1_000)];
      const pair = [await addNode('one'), await addNode('two')];
      for (const node of pair) for (const each of [key, other]) await node.account(each);
      const [{ revision } = { revision: 0 }] = await ledger.store.rows<{ revision: number }>(
        'SELECT revision FROM ledger',
      );
      await ledger.setActive('acme', false);
      for (const node of pair)
        await expect.poll(() => node.meter.authenticate(key)).toMatchObject({ activated: false });
      await engine.cut();
      // The promoted standby never received the change. The next one is made before the node is back.
      await engine.run(
        `SET search_path = pagegate; ALTER TABLE ledger DISABLE TRIGGER USER; ALTER TABLE accounts DISABLE TRIGGER USER;
         UPDATE ledger SET revision = ${revision}; UPDATE accounts SET state = 'active';
         DELETE FROM revisions WHERE revision > ${revision};
         ALTER TABLE ledger ENABLE TRIGGER USER; ALTER TABLE accounts ENABLE TRIGGER USER`,
      );
      await ledger.setActive('other', false);
      engine.isDown = false;
      for (const node of pair) {
        await expect.poll(() => node.grants.problem).toBe('');
        await expect.poll(() => node.meter.authenticate(other)).toMatchObject({ activated: false });
        await expect.poll(() => node.meter.authenticate(key)).toMatchObject({ activated: true });
      }
      // It was lost once, however many nodes report it.
      expect((await fleetStatus(ledger, 60)).history).toBe(1);
    }, 120_000);
  });

  describe('any order of events', () => {
    it(`keeps the counts, seed ${SEED}`, async () => {
      const random = new Random(SEED);
      const limit = 3_000;
      const key = await subscribe('acme', limit);
      const fleet = [await addNode('one'), await addNode('two'), await addNode('three')];
      let surplus = 0;
      for (let step = 0; step < 60; step += 1) {
        const node = fleet[random.below(3)]!;
        const dice = random.below(20);
        if (dice < 14) {
          const count = 1 + random.below(60);
          for (let i = 0; i < count; i += 1) await node.charge(key);
        } else if (dice < 16) {
          await node.crash();
          await node.start();
        } else if (dice < 17) {
          await node.crash({ power: true });
          surplus += limit / 100;
          await node.start();
        } else if (dice < 18) {
          await node.stop();
          await node.start();
        } else {
          await engine.cut();
          engine.isDown = false;
        }
      }
      for (const node of fleet) await node.stop();
      const { spent, granted } = await known();
      expect(granted).toBeLessThanOrEqual(limit);
      expect(spent).toBeGreaterThanOrEqual(served());
      expect(spent - served()).toBeLessThanOrEqual(surplus);
    }, 240_000);
  });
}
