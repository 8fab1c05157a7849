import { readdirSync, readFileSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { askOn, requestText } from '../support/raw-http.ts';
import { read, startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
afterEach(() => server.stop());

describe('index.subdomains', () => {
  const entries = [
    { domain: 'example.com', page_types: { login: 'https://login.example.com/in' } },
    { domain: 'user.github.io' },
    { domain: 'github.io' },
  ];
  const found = async (value: string): Promise<unknown[]> => {
    const { body } = await server.check(`?domain=${value}`);
    return [body.domain, body.found];
  };

  it('exact: each host is its own key', async () => {
    server = await startTestServer({ entries });
    expect(await found('docs.example.com')).toEqual(['docs.example.com', false]);
    expect(await found('a.user.github.io')).toEqual(['a.user.github.io', false]);
    // The verified pages of the parent still count for the verdict.
    const { body } = await server.check('?url=https%3A%2F%2Flogin.example.com%2Fin');
    expect(body).toMatchObject({
      found: false,
      page_types: {},
      verdict: 'deny',
      matched: { layer: 'page_type_db', id: 'login' },
    });
  });

  it('parent: the nearest known parent answers, up to the registrable domain', async () => {
    server = await startTestServer({ entries, config: { index: { subdomains: 'parent' } } });
    expect(await found('a.b.docs.example.com')).toEqual(['example.com', true]);
    expect(await found('a.user.github.io')).toEqual(['user.github.io', true]);
    // A private suffix ends the search: another user's site says nothing about this one.
    expect(await found('other.github.io')).toEqual(['other.github.io', false]);
    expect(await found('unknown.net')).toEqual(['unknown.net', false]);
  });

  it.each([
    ['strict', 'deny'],
    ['default', 'flag'],
    ['open', 'allow'],
  ])('parent, profile %s: a host is not classified because its parent has a record', async (profile, verdict) => {
    server = await startTestServer({
      entries,
      config: { index: { subdomains: 'parent' }, policy: { profile }, decision_log: { enabled: true } },
    });
    const { body } = await server.check('?url=https%3A%2F%2Fevil-user.example.com%2Fabc');
    expect(body).toMatchObject({
      domain: 'example.com',
      found: true,
      verdict,
      matched: { layer: 'default', id: 'unclassified_subdomain' },
    });
    expect((await server.check('?domain=example.com')).body.matched.id).toBe('classified_read');
    const log = join(server.paths.logDir, 'decisions-0.ndjson');
    await expect.poll(() => readFileSync(log, 'utf8').split('\n').length).toBe(3);
    expect(JSON.parse(readFileSync(log, 'utf8').split('\n')[0]!)).toMatchObject({
      host: 'evil-user.example.com',
      domain: 'example.com',
      found: true,
      verdict,
    });
  });
});

describe('decision_log', () => {
  const lines = (): Record<string, unknown>[] =>
    readFileSync(join(server.paths.logDir, 'decisions-0.ndjson'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));

  it('writes one line for each verdict, without the query and the key', async () => {
    server = await startTestServer({
      entries: [{ domain: 'example.com' }],
      config: { decision_log: { enabled: true } },
    });
    await server.check(`?url=${encodeURIComponent('https://www.example.com/a/b?token=SECRET')}`);
    await server.check('?domain=unknown.net&method=POST');
    await server.check('?domain=%zz');
    await server.check('?domain=example.com', { 'x-api-key': 'wrong' });
    await expect.poll(() => lines().length).toBe(2);
    expect(lines()).toMatchObject([
      { method: 'GET', scheme: 'https', host: 'www.example.com', path: '/a/b', domain: 'example.com', found: true },
      { method: 'POST', host: 'unknown.net', domain: 'unknown.net', found: false, verdict: 'deny' },
    ]);
    const text = readFileSync(join(server.paths.logDir, 'decisions-0.ndjson'), 'utf8');
    expect(text).not.toMatch(/SECRET|pg_/);
    expect(statSync(join(server.paths.logDir, 'decisions-0.ndjson')).mode & 0o777).toBe(0o600);
    await expect
      .poll(async () => (await read(await fetch(`${server.adminUrl}/metrics`))).text)
      .toMatch(/^pagegate_decision_log_lines_total 2$/m);
  });

  it('is off by default', async () => {
    server = await startTestServer({ entries: [{ domain: 'example.com' }] });
    await server.check('?domain=example.com');
    expect(() => readdirSync(server.paths.logDir)).toThrow();
  });
});

describe('server.max_connections', () => {
  it('closes a connection above it at once, and accepts one again when another ends', async () => {
    server = await startTestServer({
      entries: [{ domain: 'example.com' }],
      config: { server: { max_connections: 3 } },
    });
    const sockets: Socket[] = [];
    const open = async (): Promise<string> => {
      const socket = connect({ port: server.port, host: '127.0.0.1' });
      sockets.push(socket);
      socket.on('error', () => {});
      const request = requestText('/api/check?domain=example.com', [['x-api-key', server.keys['pro']!]]);
      return askOn(socket, request).then(
        ({ status }) => String(status),
        () => 'closed',
      );
    };
    try {
      expect([await open(), await open(), await open()]).toEqual(['200', '200', '200']);
      expect(await open()).toBe('closed');
      sockets[0]!.destroy();
      await expect.poll(open).toBe('200');
      expect((await read(await fetch(`${server.adminUrl}/metrics`))).text).toMatch(
        /^pagegate_connections_refused_total\{reason="\w+"\} [1-9]/m,
      );
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
});

describe('index.warm', () => {
  it('reads the index before it is served', async () => {
    server = await startTestServer({ entries: [{ domain: 'example.com' }], config: { index: { warm: true } } });
    expect(server.log.findIndex((line) => line.includes('"index_warming"'))).toBeLessThan(
      server.log.findIndex((line) => line.includes('"index_in_use"')),
    );
    expect(server.log.some((line) => line.includes('"percent":100'))).toBe(true);
    expect((await server.check('?domain=example.com')).status).toBe(200);
  });
});
