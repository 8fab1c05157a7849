/** Ways to reach a page: by a link on another site, after signing in, after the session has ended. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import { formFields, startTestConsole, type TestConsole } from '../support/console.ts';
import { ENTRIES } from './entries.ts';

let console: TestConsole;

beforeAll(async () => {
  console = await startTestConsole({ entries: ENTRIES, accounts: { pro: { plan: 'pro' } } });
});

afterAll(() => console.stop());

/** The headers of a browser that follows a link on another site. */
const ELSEWHERE = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };

/** Sends a request as a browser does. `fetch` would set some of these headers itself. */
async function arrive(
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ status: number; setsCookie: boolean; text: string }> {
  const [response] = (await once(request(new URL(path, console.url), { headers }).end(), 'response')) as [
    IncomingMessage,
  ];
  return {
    status: response.statusCode ?? 0,
    setsCookie: response.headers['set-cookie'] !== undefined,
    text: await text(response),
  };
}

describe('a link on another site', () => {
  it.each(['', 'decisions?verdict=deny', 'sign-in', 'sign-in/link?token=x', 'usage.csv'])(
    'to /%s is opened again from a page of the console, with the cookies that the browser withheld',
    async (path) => {
      const reply = await arrive(path, ELSEWHERE);
      expect(reply.status).toBe(200);
      expect(reply.text).toContain('<meta http-equiv="refresh" content="0">');
      expect(reply.text).toContain(`<a href="/${path}">`);
      // Forms that are open in other tabs stay valid.
      expect(reply.setsCookie).toBe(false);
    },
  );

  it.each([
    ['a link of our own', { ...ELSEWHERE, 'sec-fetch-site': 'same-origin' }],
    ['an address that was typed', { ...ELSEWHERE, 'sec-fetch-site': 'none' }],
    ['a script of another site', { ...ELSEWHERE, 'sec-fetch-mode': 'cors' }],
  ])('is not assumed for %s', async (_what, headers) => {
    expect((await arrive('sign-in', headers)).text).not.toContain('http-equiv');
  });

  it('with an unknown address gets 404', async () => {
    expect((await arrive('nothing', ELSEWHERE)).status).toBe(404);
  });
});

/** Signs in on the page to which a visitor of `path` is redirected. Returns the address of the redirect after that. */
async function onward(path: string): Promise<string> {
  const visitor = console.visitor();
  const { headers } = await visitor.get(path);
  const page = await visitor.get(headers.get('location')!.slice(1));
  expect(page.status).toBe(200);
  const { link } = console.users.add(`onward-${++added}`, 'viewer');
  const next = formFields(page.text)['next']!.replaceAll('&amp;', '&');
  const token = new URL(link).searchParams.get('token')!;
  const reply = await visitor.submit('sign-in/link', { token, next });
  expect(reply.status).toBe(303);
  return reply.headers.get('location')!;
}
let added = 0;

describe('after the sign-in', () => {
  it.each([
    '/decisions?verdict=deny&rule=login',
    '/try?url=https%3A%2F%2Fshop.example.com%2F%3Fa%3Db%26c%3D%252f',
    '/?range=hour',
    '/accounts',
  ])('the console goes on to %s', async (path) => expect(await onward(path.slice(1))).toBe(path));

  it('the console drops a query that is too long to keep', async () => {
    const most = LIMITS.consoleUrlCharacters.value;
    expect(await onward(`try?url=${'%25'.repeat(most / 3 - 10)}`)).toBe('/try');
  });

  it('a sign-in page that is still open works, too', async () => {
    const viewer = await console.signIn('viewer');
    const reply = await viewer.get(`sign-in?${new URLSearchParams({ next: '/decisions?verdict=deny' })}`);
    expect([reply.status, reply.headers.get('location')]).toEqual([303, '/decisions?verdict=deny']);
  });

  it('the query cannot redirect elsewhere', async () => {
    const viewer = await console.signIn('viewer');
    for (const next of ['//evil.example?a=b', '/\\evil.example?', '?//evil.example', '/%2fevil.example?x']) {
      const reply = await viewer.get(`sign-in?${new URLSearchParams({ next })}`);
      expect(reply.headers.get('location'), next).toBe('/');
    }
    const split = await viewer.get(`sign-in?${new URLSearchParams({ next: '/accounts?q=\r\nset-cookie:x' })}`);
    expect(split.headers.get('location')).toBe('/accounts?q=%0D%0Aset-cookie%3Ax');
  });
});

it('a question mark in a query is part of the query', async () => {
  const viewer = await console.signIn('viewer');
  expect((await viewer.get('try?url=https://shop.example.com/?q=1?2')).text).toContain(
    'GET https://shop.example.com/?q=1?2',
  );
});

describe('a visitor who cannot continue is told what to do', () => {
  it('after sending a form whose session has ended', async () => {
    const operator = await console.signIn('operator');
    await operator.get('accounts');
    console.users.remove(/class="who"><a href="[^"]*">([^ ]+)/.exec((await operator.get('you')).text)![1]!);
    const reply = await operator.submit('accounts', { name: 'late' });
    expect(reply.status).toBe(401);
    expect(reply.text).toMatch(/Nothing was changed: sign in, and do it again\..*>To the sign-in</s);
  });

  it('and returns to the page of the form after signing in, if the browser names it', async () => {
    const operator = await console.signIn('operator');
    await operator.get('accounts');
    operator.session = 'A'.repeat(43);
    operator.csrf = /name="csrf" value="([^"]+)"/.exec((await operator.get('sign-in')).text)![1]!;
    const link = async (referer?: string): Promise<string> => {
      const reply = await operator.submit('generations/1/verify', {}, referer === undefined ? {} : { referer });
      expect(reply.status).toBe(401);
      return /<a href="([^"]*)">To the sign-in/.exec(reply.text)![1]!;
    };
    expect(await link(new URL('generations', console.url).href)).toBe('/sign-in?next=%2Fgenerations');
    expect(await link(new URL('accounts?q=a&after=b', console.url).href)).toBe(
      `/sign-in?${new URLSearchParams({ next: '/accounts?q=a&after=b' })}`,
    );
    for (const elsewhere of [undefined, new URL('', console.url).href, 'about:blank', 'data:text/html,x'])
      expect(await link(elsewhere)).toBe('/sign-in');
  });

  it('at an address that only accepts forms', async () => {
    const operator = await console.signIn('operator');
    const reply = await operator.get('generations/1/verify');
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST']);
    expect(reply.text).toContain('begin at that page');
    const key = await console.visitor().get('sign-in/key');
    expect([key.status, key.headers.get('location')]).toEqual([303, '/sign-in']);
  });

  it('after a refusal while signed in, on a page with the navigation', async () => {
    const viewer = await console.signIn('viewer');
    for (const [path, status, expected] of [
      ['accounts/pro/suspend', 403, 'This is for the role operator; yours is viewer.'],
      ['accounts/nobody', 404, 'No account has this name'],
      ['try?url=a&url=b', 400, 'is there twice'],
    ] as const) {
      const reply = await viewer.get(path);
      expect([path, reply.status]).toEqual([path, status]);
      expect(reply.text).toContain(expected);
      expect(reply.text.includes('<nav aria-label="Pages">')).toBe(status !== 400);
    }
    expect((await console.visitor().get('nothing')).text).not.toContain('<nav');
  });

  it('after a wrong password: the name that was typed stays', async () => {
    const reply = await console.visitor().submit('sign-in', { name: 'dana"', password: 'x' });
    expect([reply.status, reply.text.includes('name="name" value="dana&quot;"')]).toEqual([403, true]);
  });

  it('after a value that is too long to be judged, which is not shown again', async () => {
    const operator = await console.signIn('operator');
    const long = await operator.get(`try?url=${'a'.repeat(LIMITS.valueBytes.value + 1)}`);
    expect(long.text).toContain('longer than 8,192 bytes');
    await operator.submit('accounts/pro/correct', { credit: '0', note: 'nothing' });
    expect((await operator.get('accounts/pro')).text).toContain('expected at least 1 lookup to give back');
  });

  it('after too many failures: how long to wait, for people and for programs', async () => {
    const visitor = console.visitor();
    const fail = () => visitor.submit('sign-in/key', { key: 'x' });
    for (let i = 0; i < LIMITS.consoleAddressFailures.value; i++) await fail();
    const reply = await fail();
    expect(reply.status).toBe(429);
    expect(reply.text).toContain('Try again in 10 minutes.');
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(Number(reply.headers.get('retry-after'))).toBeLessThanOrEqual(LIMITS.consoleSignInSeconds.value);
  });
});
