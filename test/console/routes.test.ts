/** Every route of the console, requested by everyone: a visitor, a viewer, an operator, an account about itself and about another. */
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/console/routes.ts';
import type { Route } from '../../src/console/web/route.ts';
import { readAudit } from '../../src/ledger/audit.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';
import { ENTRIES } from './entries.ts';

const VISITORS = ['nobody', 'viewer', 'operator', 'account'] as const;
type Who = (typeof VISITORS)[number];

/** Parameters of addresses: of the signed-in account, and of another one. */
const OWN: Readonly<Record<string, string>> = { name: 'pro', action: 'suspend', generation: '1', id: '1' };
const OTHER: Readonly<Record<string, string>> = { ...OWN, name: 'rival' };
/** Valid values for all forms. */
const FIELDS: Readonly<Record<string, string>> = {
  name: 'newcomer',
  key: '1',
  overlap: '0',
  password: 'a long password',
  again: 'a long password',
};

let console: TestConsole;
let visitors: Readonly<Record<Who, () => Promise<Visitor>>>;

beforeAll(async () => {
  console = await startTestConsole({
    entries: ENTRIES,
    accounts: { pro: { plan: 'pro' }, rival: { plan: 'business' } },
    config: { decision_log: { enabled: true } },
  });
  // Users with the same names, for the addresses of users.
  for (const name of ['pro', 'rival']) console.users.add(name, 'viewer');
  visitors = {
    nobody: async () => console.visitor(),
    viewer: () => console.signIn('viewer'),
    operator: () => console.signIn('operator'),
    account: () => console.signInWithKey(console.server.keys['pro']!),
  };
});

afterAll(() => console.stop());

/** Everything that a change could affect, except sign-ins. */
async function state(): Promise<string> {
  const { ledgerFile: file, ledgerKeyFile: keyFile } = console.server.paths;
  const ledger = await openLedger({ file, keyFile, actor: 'test' });
  try {
    const audit = await readAudit(ledger, undefined, 1_000);
    return JSON.stringify([audit.length, console.users.list().map(({ role, hasPassword }) => [role, hasPassword])]);
  } finally {
    await ledger.close();
  }
}

/** Parameters for addresses of users; those of accounts differ. */
const OF_USERS: Readonly<Record<string, string>> = { action: 'remove' };

const address = (path: string, params: Readonly<Record<string, string>>): string =>
  path
    .slice(1)
    .replace(
      /:(\w+)/g,
      (_, name: string) => (path.startsWith('/users/') ? OF_USERS[name] : undefined) ?? params[name] ?? `no-${name}`,
    );

const isAllowed = ({ roles }: Route, who: Who): boolean =>
  roles === 'anybody' || (who !== 'nobody' && roles.includes(who));

const send = (visitor: Visitor, { method, path }: Route, params: Readonly<Record<string, string>>) =>
  method === 'GET' ? visitor.get(address(path, params)) : visitor.submit(address(path, params), FIELDS);

const rows = ROUTES.flatMap((route) => VISITORS.map((who) => [route.method, route.path, who, route] as const));

it('covers routes of every kind', () => {
  expect(new Set(ROUTES.map(({ method, path }) => `${method} ${path}`)).size).toBe(ROUTES.length);
  expect(rows.length).toBeGreaterThan(80);
});

describe('a visitor without permission is refused, and nothing changes', () => {
  const refused = rows.filter(([, , who, route]) => !isAllowed(route, who));

  it.each(refused)('%s %s: %s', async (method, path, who, route) => {
    const visitor = await visitors[who]();
    for (const params of [OWN, OTHER]) {
      const before = await state();
      const reply = await send(visitor, route, params);
      if (who === 'nobody' && method === 'GET') {
        expect([reply.status, reply.headers.get('location')]).toEqual([303, expect.stringMatching(/^\/sign-in/)]);
      } else if (who === 'account' && path === '/') {
        expect([reply.status, reply.headers.get('location')]).toEqual([303, '/account']);
      } else expect(reply.status).toBe(who === 'nobody' ? 401 : 403);
      expect(reply.text).not.toMatch(/rival|2,000,000/);
      expect(await state()).toBe(before);
    }
  });
});

describe('a visitor with permission is answered', () => {
  const answered = rows.filter(([method, , who, route]) => method === 'GET' && isAllowed(route, who));

  it.each(answered)('%s %s: %s', async (_method, path, who, route) => {
    const visitor = await visitors[who]();
    const reply = await send(visitor, route, OWN);
    expect([200, 303]).toContain(reply.status);
    expect(reply.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; .*require-trusted-types-for 'script'/,
    );
    expect(reply.headers.get('cache-control')).toBe('no-store');
    // An account only gets data about itself.
    if (who === 'account') expect(reply.text).not.toMatch(/rival|2,000,000/);
    // A visitor who may not make changes sees no form, except to sign out and to end sessions.
    if (who === 'viewer' && !/^\/(?:you|sign-in)/.test(path)) {
      const forms = [...reply.text.matchAll(/<form method="post" action="([^"]*)"/g)].map(([, action]) => action);
      expect(forms.filter((action) => action !== '/sign-out')).toEqual([]);
    }
  });
});

describe("an account's own addresses contain no name", () => {
  it("and cannot revoke, show or rotate another account's key, whatever the form contains", async () => {
    const visitor = await visitors.account();
    const before = await visitor.get('account');
    const ledger = await openLedger({
      file: console.server.paths.ledgerFile,
      keyFile: console.server.paths.ledgerKeyFile,
    });
    const { keys } = await ledger.view('rival');
    const rivalKey = String(keys[0]!.id);
    for (const action of ['revoke-key', 'show-key']) {
      const reply = await visitor.submit(`account/${action}`, { key: rivalKey, name: 'rival', account: 'rival' });
      expect(reply.status).toBe(303);
      const page = await visitor.get('account');
      expect(page.text).toContain('has no key');
      expect(page.text).not.toContain('class="secret"');
    }
    expect((await ledger.view('rival')).keys).toEqual(keys);
    await ledger.close();
    expect(before.status).toBe(200);
  });
});

it('the message of a change is shown once, to the next visitor of the page that it redirects to', async () => {
  const operator = await console.signIn('operator');
  expect((await operator.submit('accounts', { name: 'not a name!' })).headers.get('location')).toBe('/accounts');
  const cookie = [...operator.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  expect((await fetch(new URL('accounts', console.url), { method: 'HEAD', headers: { cookie } })).status).toBe(200);
  const texts = [
    (await operator.get('accounts', { 'x-pagegate-renew': '1' })).text,
    (await operator.get('health')).text,
    (await operator.get('accounts')).text,
    (await operator.get('accounts')).text,
  ];
  expect(texts.map((text) => text.includes('class="notice bad"'))).toEqual([false, false, true, false]);
});

it.each(['accounts', 'decisions', 'usage.csv', 'nothing'])(
  'the headers of %s for HEAD do not state another length',
  async (path) => {
    const operator = await console.signIn('operator');
    const cookie = [...operator.cookies].map((pair) => pair.join('=')).join('; ');
    const lengthOf = async (method: string): Promise<string | null> =>
      (await fetch(new URL(path, console.url), { method, headers: { cookie } })).headers.get('content-length');
    expect(await lengthOf('HEAD')).toEqual(await lengthOf('GET'));
  },
);

it('changes in several tabs each show their own message, in any order', async () => {
  const operator = await console.signIn('operator');
  await operator.get('accounts');
  const show = (name: string) => operator.submit(`accounts/${name}/show-key`);
  await Promise.all([show('pro'), show('rival'), operator.submit('accounts', { name: 'rival' })]);
  for (const name of ['rival', 'pro']) {
    const { text } = await operator.get(`accounts/${name}`);
    expect([...text.matchAll(/class="secret">(pg_\w+)</g)].map(([, key]) => key)).toEqual([console.server.keys[name]]);
  }
  expect((await operator.get('accounts')).text).toContain('class="notice bad"');
});

it('does not read an invalid plan catalog if no plan is chosen', async () => {
  const plans = join(dirname(dirname(console.server.paths.ledgerFile)), 'plans.json');
  writeFileSync(plans, '{');
  try {
    const operator = await visitors.operator();
    expect((await operator.get('accounts/rival/rotate-key')).status).toBe(200);
    expect((await operator.get('accounts/rival/subscribe')).text).toContain(
      'The plan catalog does not match its schema',
    );
    await operator.submit('accounts/rival/rotate-key', { overlap: '0' });
    expect((await operator.get('accounts/rival')).text).toMatch(/Key \d+ of rival is issued/);
  } finally {
    rmSync(plans);
  }
});

it('ignores names that are not in the list of routes', async () => {
  const operator = await visitors.operator();
  for (const path of [
    'nothing',
    'accounts/',
    'accounts/pro/nothing',
    'accounts/nobody-of-this-name',
    'generations/9/nothing',
  ]) {
    expect((await operator.get(path)).status, path).toBe(404);
  }
  expect((await operator.submit('audit')).status).toBe(405);
});
