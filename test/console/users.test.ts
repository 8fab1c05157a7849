/** The pages of users: who can sign in, who is signed in, and every change. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConsoleContext } from '../../src/console/context.ts';
import { withPresentPassword } from '../../src/console/sign-in.ts';
import type { Session } from '../../src/console/store/sessions.ts';
import { SignInLimiter } from '../../src/console/web/sign-in-limiter.ts';
import { LIMITS } from '../../src/limits.ts';
import { formFields, type Reply, startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';

let console: TestConsole;
let operator: Visitor;
let added = 0;

const PASSWORD = 'correct horse battery';

beforeAll(async () => {
  console = await startTestConsole({ accounts: { pro: { plan: 'pro' } } });
  operator = await console.signIn('operator');
});

afterAll(() => console.stop());

const newUser = (role: 'operator' | 'viewer' = 'viewer'): string => {
  added += 1;
  return console.users.add(`user-${added}`, role).user.name;
};
const userOf = (name: string) => console.users.list().find((user) => user.name === name);

async function signInBy(link: string, visitor = console.visitor()): Promise<Visitor> {
  const page = await visitor.get(`sign-in/link${new URL(link).search}`);
  await visitor.submit('sign-in/link', formFields(page.text));
  return visitor;
}

const signInAs = (name: string): Promise<Visitor> => signInBy(console.users.link(name));

const nameOf = async (visitor: Visitor): Promise<string> =>
  /Signed in as <strong>([^<]+)/.exec((await visitor.get('you')).text)?.[1] ?? '';

/** Returns the last message on the page to which a change redirects. */
async function lastNotice(visitor: Visitor, reply: Reply): Promise<string> {
  expect([reply.status, reply.text]).toEqual([303, '']);
  const { text } = await visitor.get(reply.headers.get('location')!.slice(1));
  const notices = [...text.matchAll(/<div class="notice [^"]*"[^>]*>(.*?)<\/div>/gs)];
  return notices.at(-1)?.[1]?.replace(/<[^>]*>/g, ' ') ?? '';
}

const secretOf = (text: string): string => /http\S+token=[\w-]{43}/.exec(text)![0];

async function audit(what: string): Promise<string[]> {
  const { text } = await operator.get(`audit.csv?${new URLSearchParams({ what })}`);
  return text.trim().split(/\r?\n/).slice(1);
}

const sessionsIn = (text: string): string[] =>
  [...text.matchAll(/name="session" value="([\w-]{43})"/g)].map(([, session]) => session!);

describe('the list', () => {
  it('shows who can sign in, when they last did, and who is signed in from where', async () => {
    const name = newUser();
    expect((await operator.get('users')).text).toMatch(new RegExp(`>${name}</a>.*?never</td>`, 's'));
    await signInAs(name);
    await console.signInWithKey(console.server.keys['pro']!);
    const { text } = await operator.get('users');
    const rows = text.split('<tr>').filter((row) => row.includes(`users/${name}"`));
    expect(rows).toHaveLength(2);
    expect(rows[0]).toMatch(/viewer.*no, links only.*<time.*<td class="number">1<\/td>/s);
    expect(rows[1]).toMatch(/<time.*<time.*127\.0\.0\.1.*End/s);
    expect(rows[1]).toContain(`aria-label="End the session of ${name} from 127.0.0.1"`);
    expect(text).toMatch(/accounts\/pro">pro<\/a> <span class="role">account, key \d+</);
    expect(text).toContain('this one');
    expect(text).toContain('pagegate console user add');
    expect(text).toContain('<a href="/users" aria-current="page">Users</a>');
  });

  it('is for operators, and viewers have no link to it', async () => {
    const viewer = await console.signIn('viewer');
    expect((await viewer.get('health')).text).not.toContain('href="/users"');
    expect((await viewer.get('users')).status).toBe(403);
  });

  it('does not show a session of an account whose key has ended', async () => {
    const account = await console.signInWithKey(console.server.keys['pro']!);
    expect(account.isSignedIn).toBe(true);
    await operator.submit('accounts/pro/rotate-key', { overlap: '0' });
    expect((await operator.get('users')).text).not.toContain('account, key');
  });

  it("links to the page of a user, which shows all of the user's sessions", async () => {
    const name = newUser();
    const visitors = await Promise.all(Array.from({ length: 3 }, () => signInAs(name)));
    expect(visitors.every(({ isSignedIn }) => isSignedIn)).toBe(true);
    expect(sessionsIn((await operator.get(`users/${name}`)).text)).toHaveLength(3);
  });
});

describe('a new user', () => {
  it('gets a link that is shown once, and signs in with it', async () => {
    const reply = await operator.submit('users', { name: 'newcomer', role: 'viewer' });
    expect(reply.headers.get('location')).toBe('/users/newcomer');
    const link = secretOf(await lastNotice(operator, reply));
    expect(new URL(link).origin).toBe(new URL(console.url).origin);
    expect((await operator.get('users/newcomer')).text).not.toContain('token=');
    expect(await nameOf(await signInBy(link))).toBe('newcomer');
    expect(userOf('newcomer')?.role).toBe('viewer');
    expect(await audit('user.add newcomer')).toEqual([
      expect.stringMatching(/,operator-1,console user.add newcomer viewer,/),
    ]);
  });

  it('gets a link with the address that the browser uses, behind any proxy', async () => {
    const headers = { 'sec-fetch-site': 'same-origin', origin: 'https://console.example' };
    const reply = await operator.submit('users', { name: 'proxied', role: 'viewer' }, headers);
    expect(secretOf(await lastNotice(operator, reply))).toMatch(/^https:\/\/console\.example\/sign-in\/link\?token=/);
  });

  it.each([
    ['Not A Name', 'viewer', 'Got &quot;Not A Name&quot;'],
    ['fine', 'chief', 'Got the role &quot;chief&quot;'],
    ['operator-1', 'viewer', 'has this name; choose another'],
  ])('named %s with role %s is refused, and the typed values stay', async (name, role, why) => {
    const { status, text } = await operator.submit('users', { name, role });
    expect(status).toBe(400);
    expect(text).toContain(why);
    expect(text).toContain(`name="name" value="${name}"`);
    expect(userOf('fine')).toBeUndefined();
  });
});

describe('an action', () => {
  const act = async (name: string, action: string, fields = {}): Promise<string> => {
    const page = await operator.get(`users/${name}/${action}`);
    expect([page.status, page.text.includes('>Cancel</a>')]).toEqual([200, true]);
    return lastNotice(operator, await operator.submit(`users/${name}/${action}`, fields));
  };

  it('changes the role, and the session with the old role ends', async () => {
    const name = newUser();
    const visitor = await signInAs(name);
    expect(await act(name, 'make-operator')).toContain(`${name} is an operator.`);
    expect(userOf(name)?.role).toBe('operator');
    expect((await visitor.get('')).status).toBe(303);
    expect((await (await signInAs(name)).get('users')).status).toBe(200);
    expect((await operator.get(`users/${name}/make-operator`)).text).toContain('there is nothing to do here');
    expect(await act(name, 'make-viewer')).toContain(`${name} is a viewer.`);
    expect(await audit(`user.role ${name}`)).toHaveLength(2);
  });

  it('creates a link', async () => {
    const name = newUser();
    const link = secretOf(await act(name, 'link'));
    expect(await nameOf(await signInBy(link))).toBe(name);
  });

  it('signs out everywhere: sessions and links end', async () => {
    const name = newUser();
    const link = console.users.link(name);
    const visitor = await signInAs(name);
    expect(await act(name, 'sign-out')).toContain(`1 session of ${name} ended.`);
    expect((await visitor.get('')).status).toBe(303);
    expect((await signInBy(link)).isSignedIn).toBe(false);
    expect(await audit(`user.sign_out ${name}`)).toHaveLength(1);
  });

  it('resets a password, but only that of another user', async () => {
    const name = newUser();
    const visitor = await signInAs(name);
    await visitor.submit('you/password', { password: PASSWORD, again: PASSWORD });
    expect(userOf(name)?.hasPassword).toBe(true);
    const link = secretOf(await act(name, 'reset'));
    expect(userOf(name)?.hasPassword).toBe(false);
    expect((await visitor.get('')).status).toBe(303);
    expect(await nameOf(await signInBy(link))).toBe(name);
    expect((await operator.get('users/operator-1/reset')).text).toContain('there is nothing to do here');
  });

  it('removes a user, and redirects to the list', async () => {
    const name = newUser();
    const visitor = await signInAs(name);
    const reply = await operator.submit(`users/${name}/remove`);
    expect(reply.headers.get('location')).toBe('/users');
    expect(await lastNotice(operator, reply)).toContain(`${name} is removed.`);
    expect(userOf(name)).toBeUndefined();
    expect((await visitor.get('')).status).toBe(303);
    expect((await operator.get(`users/${name}`)).status).toBe(404);
    expect((await operator.submit(`users/${name}/remove`)).status).toBe(404);
  });

  it('ends one session and leaves the others, and says so if it has ended already', async () => {
    const name = newUser();
    const visitors = [await signInAs(name), await signInAs(name)];
    const [session, ...others] = sessionsIn((await operator.get(`users/${name}`)).text);
    expect(others).toHaveLength(1);
    const end = () => operator.submit(`users/${name}/end-session`, { session: session! });
    expect(await lastNotice(operator, await end())).toContain(`The session of ${name} from 127.0.0.1 has ended.`);
    expect(await lastNotice(operator, await end())).toContain('had ended already');
    const statuses = await Promise.all(visitors.map(async (visitor) => (await visitor.get('')).status));
    expect(statuses.toSorted()).toEqual([200, 303]);
    expect(await audit(`session.end ${name}`)).toHaveLength(1);
  });

  it('is refused if no operator would remain', async () => {
    const rest = console.users.list().filter(({ name, role }) => role === 'operator' && name !== 'operator-1');
    for (const { name } of rest) console.users.remove(name);
    for (const action of ['make-viewer', 'remove']) {
      const page = await operator.get(`users/operator-1/${action}`);
      expect(page.text).toMatch(/The console needs at least one operator.*Back to operator-1/s);
      expect(await lastNotice(operator, await operator.submit(`users/operator-1/${action}`))).toContain(
        'at least one operator',
      );
    }
    expect([userOf('operator-1')?.role, (await operator.get('')).status]).toEqual(['operator', 200]);
  });

  it.each(['make-viewer', 'remove'])('%s on oneself signs out, if another operator remains', async (action) => {
    const name = newUser('operator');
    const visitor = await signInAs(name);
    const reply = await visitor.submit(`users/${name}/${action}`);
    expect([reply.status, reply.headers.get('location'), visitor.isSignedIn]).toEqual([303, '/sign-in', false]);
    expect(userOf(name)?.role).toBe(action === 'remove' ? undefined : 'viewer');
  });

  it('sign-out on oneself keeps the session in use', async () => {
    const name = newUser('operator');
    const [visitor, other] = [await signInAs(name), await signInAs(name)];
    await visitor.submit(`users/${name}/sign-out`);
    expect([(await visitor.get('')).status, (await other.get('')).status]).toEqual([200, 303]);
  });
});

it('a name is accepted with capitals and blanks at the sign-in', async () => {
  const name = newUser();
  await (await signInAs(name)).submit('you/password', { password: PASSWORD, again: PASSWORD });
  const visitor = console.visitor();
  await visitor.submit('sign-in', { name: ` ${name.toUpperCase()} `, password: PASSWORD });
  expect(await nameOf(visitor)).toBe(name);
});

describe('an operator who has a password', () => {
  const ACTS = ['make-operator', 'link', 'reset', 'remove'];
  let owner: Visitor;
  let target: string;

  beforeAll(async () => {
    owner = await console.signIn('operator');
    await owner.submit('you/password', { password: PASSWORD, again: PASSWORD });
    target = newUser();
  });

  const state = () => console.users.list().map(({ name, role, hasPassword }) => [name, role, hasPassword]);

  it.each(ACTS)('must give it for %s', async (action) => {
    const before = JSON.stringify(state());
    expect((await owner.get(`users/${target}/${action}`)).text).toContain('name="present"');
    const reply = await owner.submit(`users/${target}/${action}`, { present: 'another password' });
    expect(reply.headers.get('location')).toBe(`/users/${target}/${action}`);
    expect(await lastNotice(owner, reply)).toContain('The current password is wrong. Nothing was changed.');
    expect(JSON.stringify(state())).toBe(before);
  });

  it('must give it for a new user, and the typed values stay', async () => {
    const reply = await owner.submit('users', { name: 'guarded', role: 'operator', present: '' });
    expect([reply.status, userOf('guarded')]).toEqual([403, undefined]);
    expect(reply.text).toMatch(/name="name" value="guarded".*<option value="operator" selected>/s);
    const done = await owner.submit('users', { name: 'guarded', role: 'operator', present: PASSWORD });
    expect([done.status, userOf('guarded')?.role]).toEqual([303, 'operator']);
    expect(await audit('user.password_refused from')).not.toHaveLength(0);
  });

  it('does not need it to end sessions', async () => {
    expect((await owner.get(`users/${target}/sign-out`)).text).not.toContain('name="present"');
    expect(await lastNotice(owner, await owner.submit(`users/${target}/sign-out`))).toContain('ended');
  });
});

it('too many wrong current passwords cause a delay, independent of failures at the sign-in', async () => {
  const most = LIMITS.consoleNameFailures.value;
  const limits = { name: new SignInLimiter(most), present: new SignInLimiter(most) };
  for (let i = 0; i < most; i++) limits.name.note('dana');
  const users = {
    find: () => ({ hasPassword: true }),
    authenticate: async (_: string, given: string, enter: () => unknown) => (given === PASSWORD ? enter() : undefined),
  };
  const app = { limits, store: { users, events: { note: () => {} } } } as unknown as ConsoleContext;
  const session = { name: 'dana' } as Session;
  const change = (password: string): Promise<string> =>
    withPresentPassword(app, session, { password, address: '' }, () => 'done').catch(({ message }: Error) => message);
  for (let i = 1; i < most; i++) expect(await change('x')).toMatch(/is wrong\. Nothing was changed/);
  expect(await change(PASSWORD)).toBe('done');
  for (let i = 0; i < most; i++) await change('x');
  expect(await change(PASSWORD)).toMatch(/^Too many failures\. Try again in/);
});

describe('your own page', () => {
  it('ends one of your sessions, and none of others', async () => {
    const name = newUser();
    const [visitor, other] = [await signInAs(name), await signInAs(name)];
    const own = sessionsIn((await visitor.get('you')).text);
    expect(own).toHaveLength(1);
    expect(await lastNotice(visitor, await visitor.submit('you/end-session', { session: own[0]! }))).toContain(
      'has ended',
    );
    expect((await other.get('')).status).toBe(303);
    const another = newUser();
    await signInAs(another);
    const [foreign] = sessionsIn((await operator.get(`users/${another}`)).text);
    expect(await lastNotice(visitor, await visitor.submit('you/end-session', { session: foreign! }))).toContain(
      'already',
    );
    expect(sessionsIn((await operator.get(`users/${another}`)).text)).toEqual([foreign]);
  });

  it('does not accept a password that is easily guessed', async () => {
    const name = newUser();
    const visitor = await signInAs(name);
    for (const password of ['aaaaaaaaaaaa', `${name}-2026!`])
      expect(await lastNotice(visitor, await visitor.submit('you/password', { password, again: password }))).toContain(
        'is not easily guessed',
      );
    expect(userOf(name)?.hasPassword).toBe(false);
  });
});
