/** The console on a fleet's ledger in PostgreSQL. Every page works; without the database each says what is missing. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ROUTES } from '../../src/console/routes.ts';
import { PostgresCluster, type PostgresServer } from '../../tools/fleet/postgres.ts';
import { ENTRIES } from '../console/entries.ts';
import { formFields, startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';

const TODAY = Math.floor(Date.now() / 86_400_000);

let folder: string;
let cluster: PostgresCluster;
let database: PostgresServer;
let console: TestConsole;
let operator: Visitor;
let account: Visitor;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-fleet-console-'));
  cluster = new PostgresCluster();
  database = await cluster.primary();
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, database.password, { mode: 0o600 });
  console = await startTestConsole({
    entries: ENTRIES,
    accounts: { pro: { plan: 'pro' }, rival: { plan: 'business' } },
    config: {
      ledger: { url: database.url, password_file: passwordFile },
      fleet: { node_name: 'one' },
      decision_log: { enabled: true },
    },
  });
  await vi.waitFor(async () => expect((await console.server.check('?url=shop.example.com')).status).toBe(200), {
    timeout: 60_000,
  });
  await database.sql(
    `INSERT INTO pagegate.usage_days SELECT accounts.id, day, nodes.id, 1000 + day - ${TODAY}
     FROM pagegate.accounts, pagegate.nodes, generate_series(${TODAY - 399}, ${TODAY - 1}) AS day`,
  );
  // A user with the account's name, for the addresses of users.
  console.users.add('pro', 'viewer');
  operator = await console.signIn('operator');
  account = await console.signInWithKey(console.server.keys['pro']!);
});

afterAll(async () => {
  await console?.stop();
  cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const OWN: Readonly<Record<string, string>> = { name: 'pro', action: 'suspend', generation: '1', id: '1' };
/** Values for the pages of users; those of accounts differ. */
const OF_USERS: Readonly<Record<string, string>> = { action: 'remove' };
const pages = ROUTES.filter(({ method }) => method === 'GET').map(
  ({ path, roles }) => [path, roles !== 'anybody' && roles.includes('account') && !roles.includes('operator')] as const,
);
const visit = (path: string, isAccount: boolean) =>
  (isAccount ? account : operator).get(
    path
      .slice(1)
      .replace(
        /:(\w+)/g,
        (_, name: string) => (path.startsWith('/users/') ? OF_USERS[name] : undefined) ?? OWN[name] ?? `no-${name}`,
      ),
  );

describe('on a ledger in PostgreSQL', () => {
  it.each(pages)('%s answers', async (path, isAccount) => {
    expect([200, 303]).toContain((await visit(path, isAccount)).status);
  });

  it('accounts are listed and found, with usage by day from all nodes', async () => {
    expect((await operator.get('accounts')).text).toMatch(/accounts\/pro".*accounts\/rival"/s);
    expect((await operator.get('accounts?q=RIV')).text).not.toContain('accounts/pro"');
    const page = (await operator.get('accounts/pro?days=400')).text;
    expect(page).toContain('lookups in 400 days');
    const lines = (await operator.get('usage.csv')).text.trimEnd().split('\r\n');
    expect(lines.filter((line) => line.startsWith('rival,'))).toHaveLength(399);
    expect((await account.get('account')).text).toContain('Account pro');
  });

  it('changes are made, followed by the node, and recorded in the audit', async () => {
    await operator.submit('accounts', { name: 'newcomer' });
    await operator.submit('accounts/newcomer/subscribe', { plan: 'pro', reference: 'PAY-newcomer' });
    const key = /<code class="secret">([^<]+)</.exec((await operator.get('accounts/newcomer')).text)![1]!;
    expect((await console.server.check('?url=shop.example.com', { 'x-api-key': key })).status).toBe(200);
    const confirm = await operator.get('accounts/newcomer/suspend');
    await operator.submit('accounts/newcomer/suspend', formFields(confirm.text));
    expect((await console.server.check('?url=shop.example.com', { 'x-api-key': key })).status).toBe(403);
    const credit = await operator.get('accounts/pro/correct');
    expect(credit.status).toBe(200);
    expect((await operator.get('audit')).text).toContain('account.suspend');
  });

  it('without the database, pages that need it say so, the others work, and all recover', async () => {
    await database.crash();
    for (const path of ['', 'decisions', 'try?url=shop.example.com', 'generations', 'health', 'you'])
      expect((await operator.get(path)).status, path).toBe(200);
    for (const path of ['accounts', 'accounts/pro', 'audit']) {
      const { status, text } = await operator.get(path);
      expect([path, status]).toEqual([path, 503]);
      expect(text, path).toMatch(/ledger/i);
    }
    await database.start();
    await expect.poll(async () => (await operator.get('accounts')).status).toBe(200);
    expect((await account.get('account')).status).toBe(200);
  });
});
