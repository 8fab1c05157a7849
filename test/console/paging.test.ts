/** More accounts or users than fit on a page, and values that are computed once for all visitors. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ShortCache } from '../../src/console/short-cache.ts';
import { LIMITS } from '../../src/limits.ts';
import { Sqlite } from '../../src/platform/sqlite.ts';
import { startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';

const PAGE = LIMITS.consoleAccounts.value;
const NAMES = Array.from({ length: 2 * PAGE + 1 }, (_, i) => `a${i}`).concat(['x_1', 'x-1', 'xx1']);
const DAY = Math.floor(Date.now() / 86_400_000) - 1;

let console: TestConsole;
let viewer: Visitor;

beforeAll(async () => {
  console = await startTestConsole({ accounts: {} });
  const database = new Sqlite(console.server.paths.ledgerFile);
  const account = database.prepare("INSERT INTO accounts (name, state, created_at) VALUES (?, 'created', 0)");
  const usage = database.prepare('INSERT INTO usage_days SELECT id, ?, length(name) FROM accounts WHERE name = ?');
  database.transaction(() => {
    for (const name of NAMES) {
      account.run(name);
      usage.run(DAY, name);
    }
  })();
  database.close();
  viewer = await console.signIn('viewer');
});

afterAll(() => console?.stop());

const namesOn = (text: string): string[] =>
  [...text.matchAll(/<a href="\/accounts\/([^"/]+)">/g)].map(([, name]) => name!);
const nextOn = (text: string): string | undefined => /href="\/([^"]+)">Next</.exec(text)?.[1]?.replaceAll('&amp;', '&');

describe('users', () => {
  const USERS = Array.from({ length: PAGE + 1 }, (_, i) => `u${i}`);
  const named = (text: string): string[] =>
    [...text.matchAll(/<a href="\/users\/([^"/]+)">/g)].map(([, name]) => name!);

  it('are listed page by page, by name, and found by a part of the name', async () => {
    const operator = await console.signIn('operator');
    expect((await operator.get('users')).text).not.toContain('Name contains');
    for (const name of USERS) console.users.add(name, 'viewer');
    const first = (await operator.get('users')).text;
    const all = console.users.list().map(({ name }) => name);
    expect(first).toContain(`${all.length} users in all`);
    const second = (await operator.get(nextOn(first)!)).text;
    const table = (text: string): string => text.slice(0, text.indexOf('id="new"'));
    expect([named(table(first)).length, nextOn(second)]).toEqual([PAGE, undefined]);
    expect([...named(table(first)), ...named(table(second))]).toEqual(all);
    expect(named(table((await operator.get('users?q=U99')).text))).toEqual(['u99']);
    expect((await operator.get('users?q=nobody')).text).toContain('No user name contains this');
  });
});

describe('accounts', () => {
  it('are listed page by page, by name, each once', async () => {
    const found: string[] = [];
    const sizes: number[] = [];
    for (let path: string | undefined = 'accounts'; path !== undefined; ) {
      const { text } = await viewer.get(path);
      expect(text).toContain(`${NAMES.length} accounts in all`);
      found.push(...namesOn(text));
      sizes.push(namesOn(text).length);
      path = nextOn(text);
    }
    expect(sizes).toEqual([PAGE, PAGE, 4]);
    expect(found).toEqual(NAMES.toSorted());
  });

  it('are found by a part of the name, without wildcards', async () => {
    expect(namesOn((await viewer.get('accounts?q=X_1')).text)).toEqual(['x_1']);
    expect(namesOn((await viewer.get('accounts?q=a20')).text)).toEqual(['a20', 'a200']);
    for (const q of ['%25', '!', '__'])
      expect((await viewer.get(`accounts?q=${q}`)).text).toContain('No account name contains this');
  });

  it('are in the usage file, one after the other', async () => {
    const [head, ...lines] = (await viewer.get('usage.csv')).text.trimEnd().split('\r\n');
    expect(head).toBe('account,day,lookups');
    const day = new Date(DAY * 86_400_000).toISOString().slice(0, 10);
    expect(lines).toEqual(NAMES.toSorted().map((name) => `${name},${day},${name.length}`));
    expect((await viewer.get('accounts/x_1/usage.csv')).text).toBe(`account,day,lookups\r\nx_1,${day},3\r\n`);
    expect((await viewer.get('accounts/nobody/usage.csv')).status).toBe(404);
  });
});

describe('a cached value', () => {
  it('is computed once until it expires, and again after a failure', async () => {
    let [now, made] = [0, 0];
    const kept = new ShortCache(() => now);
    const get = (): number => kept.get('a', 10, () => ++made);
    expect([get(), get()]).toEqual([1, 1]);
    now = 10;
    expect([get(), get()]).toEqual([2, 2]);
    await expect(kept.get('b', 10, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await kept.get('b', 10, async () => 'yes')).toBe('yes');
  });

  it('is limited in number: the oldest one is removed', () => {
    let made = 0;
    const kept = new ShortCache(() => 0);
    for (let i = 0; i < 100; i++) kept.get(`name ${i}`, 10, () => ++made);
    expect(kept.get('name 99', 10, () => ++made)).toBe(100);
    expect(kept.get('name 0', 10, () => ++made)).toBe(101);
  });
});
