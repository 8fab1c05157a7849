/** A console that a proxy serves below a path: the targets of its redirects and links, and values shown once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import { formFields, startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';

let console: TestConsole;
let operator: Visitor;

beforeAll(async () => {
  console = await startTestConsole({ accounts: {}, config: { console: { base_path: '/gate/' } } });
  operator = await console.signIn('operator');
});

afterAll(() => console?.stop());

describe('a sign-in', () => {
  it.each([
    ['/accounts/pro', 'accounts/pro'],
    ['/%0d%0aset-cookie:x', '%0d%0aset-cookie:x'],
    ['/../other/logout', ''],
    ['/x/%2e%2E/../other', ''],
    ['/..%2Fother', ''],
    ['/.//evil.example', ''],
    ['//evil.example', ''],
    ['/\\evil.example', ''],
    ['/\t/evil.example', ''],
    ['https://evil.example', ''],
    ['/decisions?verdict=deny', 'decisions?verdict=deny'],
    ['/x/%2e%2E/../other?a=b', ''],
    ['/accounts#x', ''],
  ])('with the next page %j redirects into the console', async (next, to) => {
    const { link } = console.users.add(`u${Math.random()}`, 'viewer');
    const visitor = console.visitor();
    const page = await visitor.get(`sign-in/link${new URL(link).search}`);
    const reply = await visitor.submit('sign-in/link', { ...formFields(page.text), next });
    expect(new URL(reply.headers.get('location')!, console.url).href).toBe(`${console.url}${to}`);
  });
});

it('no link or form on the pages of users leaves the base path', async () => {
  const reply = await operator.submit(
    'users',
    { name: 'invited', role: 'viewer' },
    { origin: new URL(console.url).origin },
  );
  expect(reply.headers.get('location')).toBe(new URL('users/invited', console.url).pathname);
  const pages = ['users', 'users/invited', 'users/invited/remove', 'you'];
  const texts = await Promise.all(pages.map(async (path) => (await operator.get(path)).text));
  const addresses = texts.join('').matchAll(/ (?:href|action)="([^"#]*)/g);
  const outside = [...addresses].filter(
    ([, to]) => !new URL(to!, console.url).href.startsWith(console.url) && to !== '',
  );
  expect(outside).toEqual([]);
  expect(texts.join('')).toContain(`>${console.url}sign-in/link?token=`);
});

it('a value that is shown once is shown however a proxy writes the address', async () => {
  await operator.submit('accounts', { name: 'ops@example.com' });
  const reply = await operator.submit('accounts/ops%40example.com/issue-key');
  expect(reply.headers.get('location')).toBe('/gate/accounts/ops%40example.com');
  // As Apache forwards it.
  expect((await operator.get('accounts/ops@example.com')).text).toMatch(/class="secret">pg_/);
});

it('a value that is shown once is shown to a reader, not for a HEAD request', async () => {
  await operator.submit('accounts', { name: 'made' });
  await operator.submit('accounts/made/issue-key');
  await fetch(new URL('accounts/made', console.url), {
    method: 'HEAD',
    headers: { cookie: [...operator.cookies].map((pair) => pair.join('=')).join('; ') },
  });
  expect((await operator.get('accounts/made')).text).toMatch(/class="secret">pg_\w+/);
});

it.each(['2026-02-31', '2026-02-29T08:30', '2026-01-31T24:00', '2026-13-01'])(
  '%s is not a valid time',
  async (time) => {
    expect((await operator.get(`decisions?from=${time}`)).status).toBe(400);
    expect((await operator.get(`decisions.csv?to=${time}`)).status).toBe(400);
  },
);

it('pages are answered while entries are being proposed; the number of waiting proposals is limited', async () => {
  const viewer = await console.signIn('viewer');
  let open = 0;
  const proposals = Array.from({ length: 3 * LIMITS.consoleProposals.value }, async (_, i) => {
    open += 1;
    const { status } = await viewer.get(`try?propose=1&url=https://a${i}.example.com/`);
    open -= 1;
    return status;
  });
  expect((await operator.get('you')).status).toBe(200);
  expect(open).toBeGreaterThan(0);
  expect(new Set(await Promise.all(proposals))).toEqual(new Set([200, 503]));
});
