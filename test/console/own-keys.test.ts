/** What an account can accumulate with changes of its own keys: everything is bounded. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import { Sqlite } from '../../src/platform/sqlite.ts';
import { startTestConsole, type TestConsole } from '../support/console.ts';

let console: TestConsole;

beforeAll(async () => {
  console = await startTestConsole({ accounts: { pro: { plan: 'pro' }, calm: { plan: 'pro' } } });
});

afterAll(() => console.stop());

it('an account that changes its keys too often is delayed, and no other one is', async () => {
  const account = await console.signInWithKey(console.server.keys['pro']!);
  const most = LIMITS.consoleOwnActions.value;
  for (let i = 0; i < most; i++) await account.submit('account/show-key');
  expect((await account.get('account')).text.match(/class="secret"/g)).toHaveLength(most);
  await account.submit('account/rotate-key', { overlap: '0' });
  const page = await account.get('account');
  expect(page.text).toMatch(/Too much was done with the keys of this account\. Try again in 10 minutes/);
  expect(page.text).not.toContain('<td>3</td>');
  const other = await console.signInWithKey(console.server.keys['calm']!);
  await other.submit('account/show-key');
  expect((await other.get('account')).text).toContain('class="secret"');
});

it('the page of an account shows its valid keys and the latest ended ones', async () => {
  const database = new Sqlite(console.server.paths.ledgerFile);
  const { id } = database.prepare<[], { id: number }>("SELECT id FROM accounts WHERE name = 'calm'").get()!;
  const insert = "INSERT INTO api_keys (account_id, hash, vault_id, created_at, revoked_at) VALUES (?, ?, '', 1, 2)";
  for (let i = 0; i < 60; i++) database.prepare(insert).run(id, `ended ${i}`);
  database.close();
  const operator = await console.signIn('operator');
  const { text } = await operator.get('accounts/calm');
  expect([...text.matchAll(/mark bad">revoked/g)]).toHaveLength(50);
  expect(text).toContain('Revoke</a>');
  expect(text).toContain('10 keys that ended earlier');
});
