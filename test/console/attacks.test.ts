/** Attacks on the console: each is refused. */
import { once } from 'node:events';
import { request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import type { ConsoleContext } from '../../src/console/context.ts';
import { ROUTES } from '../../src/console/routes.ts';
import type { Redirect, Reply } from '../../src/console/web/route.ts';
import { allowedNames } from '../../src/console/web/security.ts';
import { createWebServer, type Timeouts } from '../../src/console/web/server.ts';
import { LIMITS } from '../../src/limits.ts';
import { formFields, startTestConsole, type TestConsole, Visitor } from '../support/console.ts';

let console: TestConsole;

beforeAll(async () => {
  console = await startTestConsole({
    accounts: { pro: { plan: 'pro' }, spare: { plan: 'pro' } },
    config: { burst: { trusted_proxies: ['127.0.0.1'] } },
  });
});

afterAll(() => console.stop());

const port = (): number => Number(new URL(console.url).port);

/** Sends raw bytes, and returns what is received until the connection closes. */
function raw(text: string, then?: string, to = port()): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(to, '127.0.0.1', () => socket.write(text));
    if (then !== undefined) socket.once('connect', () => setTimeout(() => socket.write(then), 50));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('close', () => resolve(received));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? resolve(received) : reject(error),
    );
  });
}

const head = (path: string, headers: readonly string[] = []): string =>
  `${[`GET ${path} HTTP/1.1`, `host: 127.0.0.1:${port()}`, 'connection: close', ...headers].join('\r\n')}\r\n\r\n`;

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);

it('only the names of this host are accepted by a console that only this host can reach', () => {
  const names = (host: string): string[] => [
    ...allowedNames(loadConfig({ env: {}, flags: { console: { host, names: ['console.example'] } } }), undefined),
  ];
  expect(names('127.0.0.1')).toEqual(['127.0.0.1', 'localhost', '[::1]', 'console.example']);
  expect(names('192.0.2.1')).toEqual(['192.0.2.1', 'console.example']);
});

it('an IPv6 address is accepted as a host name in the spelling of browsers, however the configuration spells it', () => {
  const names = allowedNames(loadConfig({ env: {}, flags: { console: { host: '2001:DB8:0:0:0:0:0:1' } } }), undefined);
  expect([...names]).toEqual(['[2001:db8::1]']);
});

describe('a form', () => {
  it.each([
    ['without its token', { csrf: '' }, {}],
    ['with an invented token', { csrf: 'A'.repeat(43) }, {}],
    ['from another site, according to the browser', {}, { 'sec-fetch-site': 'cross-site' }],
    ['from another port of this host, according to the browser', {}, { 'sec-fetch-site': 'same-site' }],
    ['from another site, by its origin', {}, { origin: 'http://evil.example' }],
    ['from another port of this host, by its origin', {}, { origin: 'http://127.0.0.1:1' }],
    ['of a page without an origin', {}, { origin: 'null' }],
  ])('%s is refused', async (_what, fields, headers) => {
    const operator = await console.signIn('operator');
    const reply = await operator.submit('accounts', { name: 'forged', ...fields }, headers);
    expect(reply.status).toBe(403);
    expect((await operator.get('accounts')).text).not.toContain('forged');
  });

  it("with another session's token is refused", async () => {
    const [one, other] = [await console.signIn('operator'), await console.signIn('operator')];
    await other.get('accounts');
    expect((await one.submit('accounts', { name: 'forged', csrf: other.csrf })).status).toBe(403);
  });

  it.each([
    ['too large', 'x'.repeat(17_000), 'application/x-www-form-urlencoded', 413],
    ['of another type', '{}', 'application/json', 415],
    ['with files', 'x', 'multipart/form-data; boundary=x', 415],
    ['with a field twice', 'name=a&name=b', 'application/x-www-form-urlencoded', 400],
    ['with a NUL', 'name=%00', 'application/x-www-form-urlencoded', 400],
    [
      'with too many fields',
      Array.from({ length: 70 }, (_, i) => `f${i}=1`).join('&'),
      'application/x-www-form-urlencoded',
      400,
    ],
  ])('%s is refused', async (_what, body, type, status) => {
    const response = await fetch(new URL('sign-in', console.url), {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    });
    expect(response.status).toBe(status);
  });

  it('that is too large is refused before all of it has arrived, even in chunks', async () => {
    const answer = await new Promise<number>((resolve, reject) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', 'transfer-encoding': 'chunked' };
      const sent = request(new URL('sign-in', console.url), { method: 'POST', headers }, (res) => {
        resolve(res.statusCode ?? 0);
        sent.destroy();
      });
      sent.on('error', reject);
      sent.write('x'.repeat(20_000));
    });
    expect(answer).toBe(413);
  });
});

describe('signing in', () => {
  it('creates a new session, whatever cookie was set before', async () => {
    const { link } = console.users.add('fixed', 'operator');
    const visitor = console.visitor();
    const planted = 'A'.repeat(43);
    visitor.session = planted;
    const page = await visitor.get(`sign-in/link${new URL(link).search}`);
    const reply = await visitor.submit('sign-in/link', formFields(page.text));
    expect(reply.status).toBe(303);
    expect(visitor.session).not.toBe(planted);
    expect(reply.headers.getSetCookie().at(-1)).toMatch(
      /^__Host-pagegate-\d+=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
    );
    const other = console.visitor();
    other.session = planted;
    expect((await other.get('')).status).toBe(303);
  });

  it('by a link works once, and is not triggered by a program that opens the link', async () => {
    const { link } = console.users.add('once', 'viewer');
    const search = new URL(link).search;
    for (let i = 0; i < 3; i++) expect((await console.visitor().get(`sign-in/link${search}`)).status).toBe(200);
    const use = async (): Promise<[number, boolean]> => {
      const visitor = console.visitor();
      const page = await visitor.get(`sign-in/link${search}`);
      return [(await visitor.submit('sign-in/link', formFields(page.text))).status, visitor.isSignedIn];
    };
    expect(await use()).toEqual([303, true]);
    expect(await use()).toEqual([403, false]);
  });

  it('redirects only within the console', async () => {
    for (const next of [
      '//evil.example',
      'https://evil.example',
      '/\\evil.example',
      '/%0d%0aset-cookie:x',
      'javascript:alert(1)',
    ]) {
      const { link } = console.users.reset('once');
      const visitor = console.visitor();
      const page = await visitor.get(`sign-in/link${new URL(link).search}`);
      const reply = await visitor.submit('sign-in/link', { ...formFields(page.text), next });
      const location = new URL(reply.headers.get('location') ?? '', console.url);
      expect(location.origin, next).toBe(new URL(console.url).origin);
    }
  });

  it('by guessing is delayed, then even with the right password, and is in the audit', async () => {
    const { link } = console.users.add('guessed', 'operator');
    const owner = console.visitor();
    const page = await owner.get(`sign-in/link${new URL(link).search}`);
    await owner.submit('sign-in/link', formFields(page.text));
    const password = 'correct horse battery';
    await owner.submit('you/password', { password, again: password });
    const guesser = console.visitor();
    await guesser.get('sign-in');
    // All at once: an attempt counts before its outcome is known.
    const guesses = Array.from({ length: 11 }, (_, i) =>
      guesser.submit('sign-in', { name: 'guessed', password: `guess number ${i}` }),
    );
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([...Array.from({ length: 10 }, () => 403), 429]);
    expect((await guesser.submit('sign-in', { name: 'guessed', password })).status).toBe(429);
    expect(guesser.isSignedIn).toBe(false);
    expect((await owner.get('audit')).text).toContain('console sign_in.refused');
    // The failures of others do not lock out a user who has a session or a link.
    expect((await owner.get('')).status).toBe(200);
  });

  it('does not reveal which users exist', async () => {
    const known = await console.visitor().submit('sign-in', { name: 'fixed', password: 'a wrong password' });
    const unknown = await console.visitor().submit('sign-in', { name: 'nobody', password: 'a wrong password' });
    const without = (text: string): string => text.replaceAll(/value="[^"]*"/g, '');
    expect([known.status, without(known.text)]).toEqual([unknown.status, without(unknown.text)]);
  });

  it('keeps a key or a password that was typed as the name out of the audit, which viewers can read', async () => {
    for (const name of [console.server.keys['spare']!, 'correct-horse-battery', '<b>x'])
      expect((await console.visitor().submit('sign-in', { name, password: 'x' })).status).toBe(403);
    const viewer = await console.signIn('viewer');
    for (const path of ['audit', 'audit.csv']) {
      const { text } = await viewer.get(path);
      expect(text).toContain('sign_in.refused');
      expect(text).not.toMatch(/pg_|correct-horse|<b>|&lt;b/);
    }
  });

  it("is counted by the browser's address from a trusted proxy, not by what the browser claims", async () => {
    const headers = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' };
    await console.visitor().submit('sign-in', { name: 'forwarded', password: 'a wrong password' }, headers);
    const operator = await console.signIn('operator');
    expect((await operator.get('audit')).text).toContain('console sign_in.refused from 203.0.113.9');
  });

  /** Tries an invalid link, from an address. */
  const guess = async (from: string): Promise<number> => {
    const reply = await console
      .visitor()
      .submit('sign-in/link', { token: 'A'.repeat(43) }, { 'x-forwarded-for': from });
    return reply.status;
  };

  it('is delayed after failures of its address, even if other users sign in from it meanwhile; a link still works', async () => {
    const from = '203.0.113.77';
    const headers = { 'x-forwarded-for': from };
    for (let i = 1; i < LIMITS.consoleAddressFailures.value; i++) expect(await guess(from)).toBe(403);
    const insider = console.visitor();
    expect((await insider.submit('sign-in/key', { key: console.server.keys['spare']! }, headers)).status).toBe(303);
    expect([await guess(from), await guess(from)]).toEqual([403, 429]);
    const password = await console.visitor().submit('sign-in', { name: 'x', password: 'a wrong password' }, headers);
    expect(password.status).toBe(429);
    const { link } = console.users.add('waiting', 'operator');
    const owner = console.visitor();
    const page = await owner.get(`sign-in/link${new URL(link).search}`, headers);
    expect((await owner.submit('sign-in/link', formFields(page.text), headers)).status).toBe(303);
  });

  it('is counted together for all addresses of one IPv6 network', async () => {
    const most = LIMITS.consoleAddressFailures.value;
    for (let i = 0; i < most; i++) expect(await guess(`2001:db8:0:7::${i.toString(16)}`)).toBe(403);
    expect([await guess('2001:db8:0:7:8::'), await guess('2001:db8:0:8::')]).toEqual([429, 403]);
  });

  it('ends with signing out: the cookie of that session no longer works', async () => {
    const viewer = await console.signIn('viewer');
    const token = viewer.session!;
    expect((await viewer.submit('sign-out')).status).toBe(303);
    const thief = console.visitor();
    thief.session = token;
    expect((await thief.get('')).status).toBe(303);
  });

  it('ends when the user is removed, and for an account when its key ends', async () => {
    const viewer = await console.signIn('viewer');
    const name = /signed in as <strong>([^<]+)/i.exec((await viewer.get('you')).text)![1]!;
    console.users.remove(name);
    expect((await viewer.get('')).status).toBe(303);
    const account = await console.signInWithKey(console.server.keys['pro']!);
    const operator = await console.signIn('operator');
    expect((await account.get('account')).status).toBe(200);
    expect((await operator.submit('accounts/pro/revoke-key', { key: '1' })).status).toBe(303);
    expect((await account.get('account')).status).toBe(303);
  });

  it('with an invalid key is refused', async () => {
    for (const key of ['', 'x', `pg_${'A'.repeat(38)}`, console.server.keys['pro']!]) {
      const visitor = await console.signInWithKey(key);
      expect(visitor.isSignedIn).toBe(false);
    }
  });
});

describe('a request', () => {
  it.each(['evil.example', '', '127.0.0.1.evil.example', 'localhost.evil.example:80'])(
    'for the host "%s" is refused',
    async (host) => {
      const answer = await raw(`GET /sign-in HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      expect(statusOf(answer)).toBe(421);
    },
  );

  it.each([
    '/assets/../../../etc/passwd',
    '/assets/%2e%2e%2f%2e%2e%2fpackage.json',
    '/..%2f..%2f',
    '/accounts/..%2fpro',
    '//evil.example/%2e%2e',
  ])('for %s gets 404', async (path) => {
    const operator = await console.signIn('operator');
    const cookie = `cookie: ${[...operator.cookies].map((pair) => pair.join('=')).join('; ')}`;
    expect(statusOf(await raw(head(path, [cookie])))).toBe(404);
  });

  it('in a frame is not shown, and may only do what the console itself does', async () => {
    const { headers } = await console.visitor().get('sign-in');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
        "frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
  });

  it.each(['TRACE', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('with the method %s is refused', async (method) => {
    const answer = await raw(head('/sign-in').replace('GET', method));
    expect(statusOf(answer)).toBe(405);
  });

  it('leaves the cookies of consoles at other ports of the host alone, such as those of other tunnels', async () => {
    const operator = await console.signIn('operator');
    const cookie = `cookie: ${[...operator.cookies].map((pair) => pair.join('=')).join('; ')}`;
    const ask = (path: string, host: string): Promise<string> =>
      raw(head(path, [cookie]).replace(/host: .*/, `host: ${host}`));
    expect(statusOf(await ask('/you', `127.0.0.1:${port()}`))).toBe(200);
    expect(statusOf(await ask('/you', '127.0.0.1:1'))).toBe(303);
    expect(await ask('/sign-in', 'localhost:1')).toContain('set-cookie: __Host-pagegate-form-1=');
    expect(await ask('/sign-in', 'localhost')).toContain('set-cookie: __Host-pagegate-form=');
  });

  it('that is too long is refused', async () => {
    expect(statusOf(await raw(head(`/try?url=${'a'.repeat(13_000)}`)))).toBe(414);
    expect(statusOf(await raw(head(`/try?url=${'a'.repeat(30_000)}`)))).toBe(431);
  });
});

describe('a request that arrives too slowly', () => {
  /** A listener with the console's code in this process, with shorter timeouts than a browser gets. */
  function listener(timeouts?: Timeouts, routes = ROUTES): Server {
    const app = { config: console.server.config } as ConsoleContext;
    const options = { app, routes, certificate: undefined, allowedNames: () => new Set(['127.0.0.1']) };
    return createWebServer({
      ...options,
      ...(timeouts && { timeouts }),
      onFailure: (error) => expect.fail(String(error)),
    });
  }

  it.each([
    ['while its headers come', 'GET /sign-in HTTP/1.1\r\nhost: 127.0.0.1\r\n', undefined],
    [
      'while its form comes',
      'POST /sign-in HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 9\r\n\r\n',
      'name=',
    ],
  ])('is ended %s', async (_when, text, then) => {
    const server = listener({ headersMs: 300, requestMs: 600, idleMs: 60_000, checkMs: 50 });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const slow = (server.address() as AddressInfo).port;
    expect(statusOf(await raw(text, then, slow))).toBe(408);
    server.close();
  });

  it.each([LIMITS.consoleRequests.value, LIMITS.consoleConnections.value + 1])(
    'does not block others, even with %d of them at once',
    async (count) => {
      const server = listener();
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port: at } = server.address() as AddressInfo;
      const form = 'POST /sign-in HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-www-form-urlencoded\r\n';
      let begun = 0;
      const all = new Promise<void>((resolve) => {
        server.on('request', () => {
          begun += 1;
          if (begun === count) resolve();
        });
      });
      const slow = Array.from({ length: count }, () => {
        const socket = connect(at, '127.0.0.1', () => socket.write(`${form}content-length: 9\r\n\r\nname=`));
        return socket.on('error', () => {});
      });
      await all;
      expect(statusOf(await raw(head('/sign-in'), undefined, at))).toBe(200);
      for (const socket of slow) socket.destroy();
      server.close();
    },
  );

  it('occupies a slot once it is complete, and is refused if none is free', async () => {
    let begun = 0;
    const { promise: end, resolve: endAll } = Promise.withResolvers<Redirect>();
    const handle = (): Promise<Redirect> => {
      begun += 1;
      return end;
    };
    const server = listener(undefined, [{ method: 'GET', path: '/slow', roles: 'anybody', handle }]);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port: at } = server.address() as AddressInfo;
    const most = LIMITS.consoleRequests.value;
    const slow = Array.from({ length: most }, () => raw(head('/slow'), undefined, at));
    await expect.poll(() => begun).toBe(most);
    expect(statusOf(await raw(head('/slow'), undefined, at))).toBe(503);
    endAll({ kind: 'redirect', to: '/' });
    expect(new Set((await Promise.all(slow)).map(statusOf))).toEqual(new Set([303]));
    expect(statusOf(await raw(head('/slow'), undefined, at))).toBe(303);
    server.close();
  });

  it('is handled between the steps of a long response that never has to wait', async () => {
    let isAnswered = false;
    let other: Promise<string> | undefined;
    async function* body(): AsyncGenerator<string> {
      other = raw(head('/other'), undefined, at);
      for (let i = 0; i < 5_000 && !isAnswered; i++) yield '';
      yield isAnswered ? 'between' : 'behind';
    }
    const short = (): Reply => {
      isAnswered = true;
      return { kind: 'redirect', to: '/' };
    };
    const long = (): Reply => ({ kind: 'download', name: 'x', type: 'text/plain', body: body() });
    const server = listener(undefined, [
      { method: 'GET', path: '/long', roles: 'anybody', handle: long },
      { method: 'GET', path: '/other', roles: 'anybody', handle: short },
    ]);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port: at } = server.address() as AddressInfo;
    expect(await raw(head('/long'), undefined, at)).toContain('between');
    expect(statusOf((await other)!)).toBe(303);
    server.close();
  });

  it('may take as long as the limits say', () => {
    const { headersTimeout, requestTimeout, timeout, maxConnections } = listener();
    expect({ headersTimeout, requestTimeout, timeout, maxConnections }).toEqual({
      headersTimeout: LIMITS.consoleHeadersMs.value,
      requestTimeout: LIMITS.consoleRequestMs.value,
      timeout: LIMITS.consoleIdleMs.value,
      maxConnections: LIMITS.consoleConnections.value,
    });
  });
});

it('a visitor in these tests keeps cookies', async () => {
  const visitor = new Visitor(console.url);
  await visitor.get('sign-in');
  expect([...visitor.cookies.keys()]).toEqual([`__Host-pagegate-form-${port()}`]);
});
