/** A pooler between a node and PostgreSQL. One that keeps a session for each client works like the server itself; any other is refused. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { connectEngine } from '../../src/ledger/postgres/connect.ts';
import { prepareSchema } from '../../src/ledger/postgres/schema.ts';
import { PostgresCluster, type PostgresServer } from '../../tools/fleet/postgres.ts';
import { freePort } from '../../tools/free-port.ts';
import { requireDebian } from '../../tools/install-debian.ts';

const PGBOUNCER = '/usr/sbin/pgbouncer';

let cluster: PostgresCluster;
let server: PostgresServer;
let folder: string;
let pooler: ChildProcess | undefined;
beforeAll(async () => {
  requireDebian(PGBOUNCER, 'pgbouncer');
  folder = mkdtempSync(join(tmpdir(), 'pagegate-pooler-'));
  chmodSync(folder, 0o755);
  cluster = new PostgresCluster();
  server = await cluster.primary(['fsync = off']);
});
afterEach(async () => {
  pooler?.kill('SIGKILL');
  if (pooler?.exitCode === null) await once(pooler, 'exit');
});
afterAll(() => {
  cluster.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a pooler. Returns the URL of the database behind it. */
async function startPooler(settings: readonly string[]): Promise<string> {
  const port = await freePort();
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(join(folder, 'users.txt'), `"pagegate" "${server.password}"\n`);
  const lines = [
    '[databases]',
    `pagegate = host=127.0.0.1 port=${server.port}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = plain',
    `auth_file = ${join(folder, 'users.txt')}`,
    ...settings,
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  // It does not run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'postgres'] : [];
  const child = spawn(PGBOUNCER, [...user, file], { stdio: ['ignore', 'ignore', 'pipe'] });
  pooler = child;
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await expect.poll(() => output, { timeout: 20_000 }).toContain('process up');
  return `postgres://pagegate@127.0.0.1:${port}/pagegate`;
}

it.each([
  ['transactions', ['pool_mode = transaction']],
  ['transactions, in turn', ['pool_mode = transaction', 'server_round_robin = 1', 'min_pool_size = 3']],
  ['statements', ['pool_mode = statement']],
])('one that assigns sessions by %s is refused, and nothing is created', async (_by, settings) => {
  const url = await startPooler(settings);
  await expect(connectEngine({ url, password: server.password })).rejects.toMatchObject({
    code: 'ledger_unavailable',
    message: expect.stringContaining(
      'a pooler that assigns a session for one transaction only. Name PostgreSQL itself',
    ),
  });
  expect(await server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'pagegate'")).toContain('0');
});

it.each([
  ['several sessions', ['pool_mode = session']],
  ['no session but the first', ['pool_mode = session', 'default_pool_size = 1']],
])('one that assigns %s for as long as a client stays is accepted', async (_what, settings) => {
  const url = await startPooler(settings);
  const engine = await connectEngine({ url, password: server.password });
  try {
    await prepareSchema(engine);
    let notifications = 0;
    await engine.listen(() => {
      notifications += 1;
    });
    await engine.script("NOTIFY pagegate, 'own'");
    await server.sql("NOTIFY pagegate, 'of another'");
    await expect.poll(() => notifications).toBe(1);
  } finally {
    await engine.close();
    await server.sql('DROP SCHEMA pagegate CASCADE');
  }
});
