/** A form that is sent twice, for example by a double click, takes effect once. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { formFields, type Reply, startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';

let console: TestConsole;

beforeAll(async () => {
  console = await startTestConsole({ accounts: { pro: { plan: 'pro' } } });
});

afterAll(() => console.stop());

/** Sends the form of a page twice at once, and then once more. */
async function sendThrice(visitor: Visitor, page: string, fields: Record<string, string>): Promise<Reply[]> {
  const filled = { ...formFields((await visitor.get(page)).text), ...fields };
  const atOnce = await Promise.all([visitor.submit(page, filled), visitor.submit(page, filled)]);
  return [...atOnce, await visitor.submit(page, filled)];
}

const keysOf = async (visitor: Visitor): Promise<number> =>
  [...(await visitor.get('accounts/pro')).text.matchAll(/<tr><td>\d+<\/td>/g)].length;

it('a key is rotated once, is shown each time, and rotated again after the page was reloaded', async () => {
  const operator = await console.signIn('operator');
  expect(await keysOf(operator)).toBe(1);
  for (const expected of [2, 3]) {
    const replies = await sendThrice(operator, 'accounts/pro/rotate-key', { overlap: '86400' });
    expect(replies.map(({ status }) => status)).toEqual([303, 303, 303]);
    const { text } = await operator.get('accounts/pro');
    expect(text.match(/class="secret"/g)).toHaveLength(1);
    expect(await keysOf(operator)).toBe(expected);
  }
});

it('an account is created once, and no message says that the name exists already', async () => {
  const operator = await console.signIn('operator');
  const replies = await sendThrice(operator, 'accounts', { name: 'newcomer' });
  expect(replies.map(({ headers }) => headers.get('location'))).toEqual(Array(3).fill('/accounts/newcomer'));
  expect((await operator.get('accounts/newcomer')).text).toContain('newcomer is created.');
});

it('a form with other values is another form', async () => {
  const operator = await console.signIn('operator');
  const csrf = formFields((await operator.get('accounts')).text)['csrf']!;
  for (const name of ['first', 'second']) await operator.submit('accounts', { csrf, name });
  for (const name of ['first', 'second']) expect((await operator.get(`accounts/${name}`)).status).toBe(200);
});

it('a link signs in on each of its clicks, even if the first click already created a session', async () => {
  const { link } = console.users.add('twice', 'viewer');
  const visitor = console.visitor();
  const filled = formFields((await visitor.get(`sign-in/link${new URL(link).search}`)).text);
  const first = await visitor.submit('sign-in/link', filled);
  const session = visitor.session;
  const second = await visitor.submit('sign-in/link', filled);
  expect([first.status, second.status, visitor.session]).toEqual([303, 303, session]);
  expect((await visitor.get('')).status).toBe(200);
});

it("another browser's forms are separate, whatever they contain", async () => {
  const [one, other] = [await console.signIn('operator'), await console.signIn('operator')];
  const csrf = formFields((await one.get('accounts')).text)['csrf']!;
  expect((await one.submit('accounts', { csrf, name: 'third' })).status).toBe(303);
  expect((await other.submit('accounts', { csrf, name: 'third' })).status).toBe(403);
});
