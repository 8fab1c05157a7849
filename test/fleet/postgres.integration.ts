/** The rules of a fleet with a PostgreSQL server and its standby, and behavior that only a real server can show. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Ledger } from '../../src/ledger/ledger.ts';
import { connectEngine } from '../../src/ledger/postgres/connect.ts';
import type { Engine } from '../../src/ledger/postgres/engine.ts';
import { PostgresStore } from '../../src/ledger/store/postgres-store.ts';
import { PostgresCluster, type PostgresServer } from '../../tools/fleet/postgres.ts';
import { TestNode } from './node.ts';
import { PostgresHarness } from './postgres-harness.ts';
import { describeFleet } from './suite.ts';

describeFleet(PostgresHarness.start);

describe('a database and its standby', () => {
  let cluster: PostgresCluster;
  let primary: PostgresServer;
  let standby: PostgresServer;
  let keys: string;
  beforeAll(async () => {
    keys = mkdtempSync(join(tmpdir(), 'pagegate-keys-'));
    cluster = new PostgresCluster();
    primary = await cluster.primary();
    standby = await cluster.standby(primary);
    await primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await primary.sql('SELECT pg_reload_conf()');
  });
  afterAll(() => {
    cluster.stop();
    rmSync(keys, { recursive: true, force: true });
  });

  it('may default to another isolation level: each statement sees what others have committed', async () => {
    const { url, password } = primary;
    await primary.sql("ALTER DATABASE pagegate SET default_transaction_isolation = 'repeatable read'");
    const engine = await connectEngine({ url, password });
    const [row] = await engine.query<{ level: string }>("SELECT current_setting('transaction_isolation') AS level");
    expect(row).toEqual({ level: 'read committed' });
    await engine.close();
  });

  it('ends a session that is idle in a transaction: nodes may wait for its locks', async () => {
    const { url, password } = primary;
    const engine = await connectEngine({ url, password });
    const [row] = await engine.query("SELECT current_setting('idle_in_transaction_session_timeout') AS limit");
    expect(row).toEqual({ limit: '30s' });
    await engine.close();
  });

  it('that has become read-only is left for the next host', async () => {
    const other = await cluster.primary();
    const { password } = primary;
    const url = `postgres://pagegate@127.0.0.1:${other.port},127.0.0.1:${primary.port}/pagegate`;
    const engine = await connectEngine({ url, password });
    expect(engine.name).toContain(`:${other.port}/`);
    await other.sql('ALTER SYSTEM SET default_transaction_read_only = on');
    await other.sql('SELECT pg_reload_conf()');
    const write = (): Promise<unknown> => engine.query('CREATE SCHEMA IF NOT EXISTS other').catch(String);
    await expect.poll(write).toMatch(/read-only transaction\. It is set to read only/);
    expect(engine.isOpen).toBe(false);
    const next = await connectEngine({ url, password });
    expect(next.name).toContain(`:${primary.port}/`);
    await next.close();
  });

  it('that is promoted is refused before, takes over after, and no count is lost', async () => {
    const { password } = primary;
    await expect(connectEngine({ url: standby.url, password })).rejects.toThrow(/standby, which takes no writes/);
    const url = `postgres://pagegate@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/pagegate`;
    const connect = (): Promise<Engine> => connectEngine({ url, password });
    const ledger = new Ledger(await PostgresStore.open(await connect(), { maxStalenessSeconds: 60 }), {
      keyFile: join(keys, 'ledger.key'),
    });
    await ledger.createAccount('acme');
    const { key } = (await ledger.subscribe('acme', 'custom', 'P-1', 2_000)).issued!;
    await ledger.close();
    const nodes = [new TestNode('one', { connect }), new TestNode('two', { connect })];
    for (const node of nodes) await node.start();
    for (let i = 0; i < 300; i += 1) for (const node of nodes) await node.charge(key);
    await primary.crash();
    await standby.promote();
    const outcomes = await Promise.all(
      nodes.map(async (node) => {
        for (;;) {
          const outcome = await node.charge(key);
          if (outcome === 'quota_exhausted') return outcome;
        }
      }),
    );
    expect(outcomes).toEqual(['quota_exhausted', 'quota_exhausted']);
    expect(nodes.reduce((sum, { served }) => sum + served, 0)).toBe(2_000);
    for (const node of nodes) await node.stop();
    const after = new Ledger(await PostgresStore.open(await connect(), { maxStalenessSeconds: 60 }), {
      keyFile: join(keys, 'ledger.key'),
    });
    expect((await after.view('acme')).quota.quota_used).toBe(2_000);
    expect(await after.store.rows("SELECT 1 AS one FROM audit WHERE action = 'fleet.lost_commits'")).toEqual([]);
    await after.close();
    for (const node of nodes) node.remove();
  });
});
