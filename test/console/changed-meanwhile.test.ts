/** Changes between viewing a page and acting on it: to the account, by another operator, and to the ledger itself. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Sqlite } from '../../src/platform/sqlite.ts';
import { formFields, startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';
import { ENTRIES } from './entries.ts';

let console: TestConsole;
let visitors: readonly [Visitor, Visitor];

beforeAll(async () => {
  console = await startTestConsole({ entries: ENTRIES, accounts: { pro: { plan: 'pro' } } });
  visitors = [await console.signIn('operator'), await console.signIn('operator')];
});

afterAll(() => console.stop());

it('a ledger that could not be opened is opened as soon as possible', async () => {
  const [one] = visitors;
  const database = new Sqlite(console.server.paths.ledgerFile);
  const version = database.pragma('user_version', { simple: true });
  try {
    database.pragma('user_version = 99');
    expect((await one.get('accounts')).status).toBe(503);
    database.pragma(`user_version = ${version}`);
    expect((await one.get('accounts')).status).toBe(200);
  } finally {
    database.pragma(`user_version = ${version}`);
    database.close();
  }
});

const saidTo = async (visitor: Visitor): Promise<string> =>
  /<div class="notice [^>]*><p>([^<]*)/.exec((await visitor.get('accounts/pro')).text)?.[1] ?? '';

it('a key that one operator has just issued is not ended by a rotation that another one meant for the previous key', async () => {
  const [one, other] = visitors;
  const path = 'accounts/pro/rotate-key';
  const forms = [formFields((await one.get(path)).text), formFields((await other.get(path)).text)];
  await one.submit(path, { ...forms[0], overlap: '86400' });
  expect(await saidTo(one)).toContain('Key 2 of pro is issued.');
  await other.submit(path, { ...forms[1], overlap: '0' });
  expect(await saidTo(other)).toContain('The account was changed since you looked at it, so nothing was done');
  expect((await other.get('accounts/pro')).text).not.toContain('<td>3</td>');
  // After loading the page again, the operator may do it.
  await other.submit(path, { ...formFields((await other.get(path)).text), overlap: '86400' });
  expect(await saidTo(other)).toContain('Key 3 of pro is issued.');
});

it('viewing a key, and usage in the meantime, do not count as changes', async () => {
  const [one, other] = visitors;
  const filled = formFields((await one.get('accounts/pro/suspend')).text);
  await other.submit('accounts/pro/show-key', formFields((await other.get('accounts/pro/show-key')).text));
  const key = /class="secret">(pg_\w+)</.exec((await other.get('accounts/pro')).text)![1]!;
  expect((await console.server.check('?url=example.com', { 'x-api-key': key })).status).toBe(200);
  await one.submit('accounts/pro/suspend', filled);
  expect(await saidTo(one)).toContain('pro is suspended.');
});
