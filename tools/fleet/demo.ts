/**
 * `make demo-fleet`: PostgreSQL with a synchronous standby, three nodes and HAProxy on loopback. It sends requests, kills a node, sends more
 * requests, and shows that the count is exact.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ServerProcess } from '../chaos/server-process.ts';
import { freePort } from '../free-port.ts';
import { requireDebian } from '../install-debian.ts';
import { activate, createInstallation, domainOf, type Installation, PAGEGATE } from '../installation.ts';
import { waitUntil } from '../wait-until.ts';
import { PostgresCluster, type PostgresServer } from './postgres.ts';

const HAPROXY = '/usr/sbin/haproxy';
const HAPROXY_CONFIG = fileURLToPath(new URL('../integrations/haproxy/haproxy.cfg', import.meta.url));
const NODES = ['edge-1', 'edge-2', 'edge-3'] as const;
const LIMIT = 3_000;
/** Short, so that the demo need not wait a minute until a dead node counts as silent. */
const MAX_STALENESS_SECONDS = 10;

const say = (text = ''): void => void process.stdout.write(`${text}\n`);
const heading = (text: string): void => say(process.stdout.isTTY ? `\n\x1b[1m${text}\x1b[0m` : `\n${text}`);

interface Node {
  readonly name: string;
  readonly place: Installation;
  readonly port: number;
  readonly adminPort: number;
  server: ServerProcess;
}

async function serve(place: Installation, port: number, adminPort: number): Promise<ServerProcess> {
  const flags = ['--port', String(port), '--workers', '1', '--admin-port', String(adminPort)];
  const server = new ServerProcess(place.configFile, {}, flags);
  await server.listening();
  return server;
}

/** Starts a node with its own state directory and the ledger key that all nodes share. */
async function startNode(
  name: string,
  { url, password }: { url: string; password: string },
  keyFile?: string,
): Promise<Node> {
  const place = createInstallation({
    config: {
      ledger: { url, password_file: 'ledger.password' },
      fleet: { node_name: name, max_staleness_seconds: MAX_STALENESS_SECONDS },
      burst: { exempt: ['127.0.0.1'] },
      admin: { enabled: true },
    },
  });
  writeFileSync(join(place.root, 'ledger.password'), password, { mode: 0o600 });
  if (keyFile !== undefined) {
    mkdirSync(join(place.state, 'keys'), { recursive: true, mode: 0o700 });
    copyFileSync(keyFile, join(place.state, 'keys/ledger.key'));
  }
  await activate(place, { revision: 1 });
  const [port, adminPort] = [await freePort(), await freePort()];
  return { name, place, port, adminPort, server: await serve(place, port, adminPort) };
}

/** Sends requests through the balancer and counts the answers by status. Requests without an answer are counted as `cut`. */
async function ask(port: number, key: string, count: number): Promise<Map<string, number>> {
  const statuses = new Map<string, number>();
  let left = count;
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const url = `http://127.0.0.1:${port}/api/check?url=${domainOf(left % 200)}`;
      const status = await fetch(url, { headers: { 'X-API-Key': key } }).then(
        async (response) => {
          await response.arrayBuffer();
          return String(response.status);
        },
        () => 'cut',
      );
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  return statuses;
}

const describe = (statuses: ReadonlyMap<string, number>): string =>
  [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');

async function startBalancer(folder: string, nodes: readonly Node[]) {
  const port = await freePort();
  let text = readFileSync(HAPROXY_CONFIG, 'utf8').replace('127.0.0.1:8080', `127.0.0.1:${port}`);
  for (const [i, node] of nodes.entries())
    text = text.replace(`127.0.0.1:808${i + 1} port 908${i + 1}`, `127.0.0.1:${node.port} port ${node.adminPort}`);
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, text);
  const child = spawn(HAPROXY, ['-db', '-f', file], { stdio: 'ignore' });
  return {
    port,
    stop: async () => {
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

async function replicate(cluster: PostgresCluster): Promise<PostgresServer[]> {
  const primary = await cluster.primary();
  const standby = await cluster.standby(primary);
  await primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
  await primary.sql('SELECT pg_reload_conf()');
  return [primary, standby];
}

async function main(): Promise<void> {
  requireDebian(HAPROXY, 'haproxy');
  const cluster = new PostgresCluster();
  const nodes: Node[] = [];
  let balancer: Awaited<ReturnType<typeof startBalancer>> | undefined;
  try {
    heading('1. PostgreSQL: a primary and a synchronous standby');
    const [primary, standby] = await replicate(cluster);
    const url = `postgres://pagegate@127.0.0.1:${primary!.port},127.0.0.1:${standby!.port}/pagegate`;
    say(`   ledger.url = ${url}`);
    heading('2. Three nodes');
    for (const name of NODES) {
      const first = nodes[0]?.place.state;
      nodes.push(await startNode(name, { url, password: primary!.password }, first && join(first, 'keys/ledger.key')));
      if (nodes.length === 1) {
        await nodes[0]!.place.pagegate('account', 'create', 'acme');
        await nodes[0]!.place.pagegate(
          'account',
          'subscribe',
          'acme',
          '--plan',
          'custom',
          '--limit',
          String(LIMIT),
          '--reference',
          'DEMO-1',
        );
      }
      say(`   ${name} on 127.0.0.1:${nodes.at(-1)!.port}`);
    }
    const { key = '' } = (await nodes[0]!.place.pagegate('key', 'show', 'acme')).json;
    balancer = await startBalancer(cluster.folder, nodes);
    await waitUntil('the balancer serves', async () => (await ask(balancer!.port, key, 1)).has('200'));
    heading('3. 900 requests through the balancer');
    const before = await ask(balancer.port, key, 900);
    say(`   answered: ${describe(before)}`);
    heading('4. edge-3 is killed, and 900 more are sent');
    process.kill(nodes[2]!.server.pid, 'SIGKILL');
    const during = await ask(balancer.port, key, 900);
    say(`   answered: ${describe(during)} (a request that was cut may have been charged; clients ask again)`);
    heading('5. edge-3 starts again, and the rest of the quota is used');
    nodes[2]!.server = await serve(nodes[2]!.place, nodes[2]!.port, nodes[2]!.adminPort);
    const after = await ask(balancer.port, key, LIMIT);
    say(`   answered: ${describe(after)}`);
    heading('6. The count');
    const count = (status: string): number =>
      [before, during, after].reduce((sum, statuses) => sum + (statuses.get(status) ?? 0), 0);
    const served = 1 + count('200');
    const cut = count('cut') + count('502');
    const usage = async (): Promise<number> =>
      (await nodes[0]!.place.pagegate('account', 'show', 'acme')).json.quota_used ?? 0;
    await waitUntil('all is reported', async () => (await usage()) >= LIMIT - cut);
    const used = await usage();
    say(`   ${served} answers were read, ${used} lookups are charged, the limit is ${LIMIT}.`);
    const status = (...flags: string[]): string =>
      execFileSync(PAGEGATE, ['fleet', 'status', ...flags, '--config', nodes[0]!.place.configFile], {
        encoding: 'utf8',
      });
    say(status());
    const { history } = JSON.parse(status('--json')) as { history: number };
    if (history > 0) throw new Error('Commits were taken for lost.');
    if (used > LIMIT || used < served || used - served > cut) throw new Error('The count is not exact.');
    say('The count is exact. docs/fleet.md says how to set this up on hosts.');
  } finally {
    await balancer?.stop();
    for (const { server } of nodes) await server.stop();
    for (const { place } of nodes) place.remove();
    cluster.stop();
  }
}

await main();
