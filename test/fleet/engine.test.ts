/** Databases that a fleet cannot use: each is refused with a message that says what to do, and left unchanged. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { readFleetDatabase } from '../../src/ledger/fleet.ts';
import { connectEngine } from '../../src/ledger/postgres/connect.ts';
import { parseEngineUrl } from '../../src/ledger/postgres/engine.ts';
import { prepareSchema, SCHEMA_VERSION } from '../../src/ledger/postgres/schema.ts';
import type { SyncReply } from '../../src/ledger/postgres/sync.ts';
import { freePort } from '../../tools/free-port.ts';
import { Pglite } from './pglite.ts';

const outcomeOf = (task: Promise<unknown>): Promise<string> =>
  task.then(
    () => 'done',
    (error: unknown) => (error instanceof PagegateError ? `${error.code}: ${error.message}` : String(error)),
  );

describe('a URL of a database', () => {
  it.each([
    ['postgres://pagegate@db1,db2:5433/pagegate', ['db1:5432', 'db2:5433'], 'verify-full'],
    ['postgresql://pagegate@127.0.0.1/x', ['127.0.0.1:5432'], 'disable'],
    ['postgres://pagegate@[::1]:1/x?sslmode=require', ['::1:1'], 'require'],
    ['postgres://pagegate@localhost,[::1]:1/x', ['localhost:5432', '::1:1'], 'disable'],
    ['postgres://pagegate@127.example.net/x', ['127.example.net:5432'], 'verify-full'],
  ])('%s is accepted', (url, hosts, sslMode) => {
    const address = parseEngineUrl(url);
    expect(address.hosts.map(({ host, port }) => `${host}:${port}`)).toEqual(hosts);
    expect(address.sslMode).toBe(sslMode);
  });

  it.each([
    ['mysql://pagegate@db/x', 'not understood'],
    ['postgres://db/x', 'not understood'],
    ['postgres://u@db', 'not understood'],
    ['postgres://u@/x', 'not understood'],
    ['postgres://u@db/x?sslmode=prefer', 'sslmode "prefer" is not known'],
    ['postgres://u@db/x?options=-c', 'not understood'],
    ['postgres://u@db:0/x', 'port 0 does not exist'],
    ['postgres://u@db:65536/x', 'port 65536 does not exist'],
    ['postgres://u@d b/x', 'host "d b" is not understood'],
    [`postgres://u@${Array(9).fill('h').join()}/x`, 'at most 8 hosts'],
  ])('%s is refused', (url, reason) => {
    expect(() => parseEngineUrl(url)).toThrow(reason);
    expect(() => parseEngineUrl(url)).toThrow('Expected postgres://USER@HOST');
  });

  it('with a password is refused, and the password is not repeated', () => {
    expect(() => parseEngineUrl('postgres://u:hunter2@db/x')).toThrow(/password_file or PAGEGATE_LEDGER_PASSWORD/);
    expect(() => parseEngineUrl('postgres://u:hunter2@db/x')).not.toThrow(/hunter2/);
  });
});

/** As much of a server as a client sees before its first statement is answered. */
async function oldServer(version: string): Promise<Server> {
  const message = (type: string, ...parts: Buffer[]): Buffer => {
    const body = Buffer.concat(parts);
    const head = Buffer.from(`${type}\0\0\0\0`);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const int = (value: number, bytes: number): Buffer => {
    const buffer = Buffer.alloc(bytes);
    buffer.writeIntBE(value, 0, bytes);
    return buffer;
  };
  const field = (name: string, oid: number): Buffer =>
    Buffer.concat([Buffer.from(`${name}\0`), int(0, 4), int(0, 2), int(oid, 4), int(-1, 2), int(-1, 4), int(0, 2)]);
  const value = (text: string): Buffer => Buffer.concat([int(text.length, 4), Buffer.from(text)]);
  const ready = message('Z', Buffer.from('I'));
  const answer = Buffer.concat([
    message('T', int(2, 2), field('standby', 16), field('version', 25)),
    message('D', int(2, 2), value('f'), value(version)),
    message('C', Buffer.from('SELECT 1\0')),
    ready,
  ]);
  const server = createServer((socket: Socket) => {
    let isGreeted = false;
    socket.on('error', () => {});
    socket.on('data', () => {
      socket.write(isGreeted ? answer : Buffer.concat([message('R', int(0, 4)), ready]));
      isGreeted = true;
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describe('a server', () => {
  const urlOf = (port: number): string => `postgres://pagegate@127.0.0.1:${port}/pagegate`;

  it('that does not exist is named, with what to check', async () => {
    const [one, two] = [await freePort(), await freePort()];
    const url = `postgres://pagegate@127.0.0.1:${one},127.0.0.1:${two}/pagegate`;
    const text = await outcomeOf(connectEngine({ url, password: '' }));
    expect(text).toMatch(/^ledger_unavailable/);
    for (const port of [one, two]) expect(text).toContain(`127.0.0.1:${port}`);
    expect(await outcomeOf(connectEngine({ url: `postgres://u@[::1]:${one}/x`, password: '' }))).toContain(
      `u@[::1]:${one}/`,
    );
    expect(text).toContain('Check host and port in ledger.url');
  });

  it('that is too old is refused', async () => {
    const server = await oldServer('120022');
    const { port } = server.address() as { port: number };
    expect(await outcomeOf(connectEngine({ url: urlOf(port), password: 'x' }))).toMatch(
      /^ledger_unavailable.*PostgreSQL 13 or newer is needed, got version number 120022/,
    );
    server.close();
  });
});

describe('a database', () => {
  let home: Pglite;
  beforeAll(async () => {
    home = await Pglite.start();
  }, 120_000);
  afterAll(() => home.stop());

  it('of another program is left alone', async () => {
    await home.run('CREATE SCHEMA pagegate; CREATE TABLE pagegate.orders (id int)');
    const engine = await home.connectAside();
    expect(await outcomeOf(prepareSchema(engine))).toMatch(
      /^ledger_unavailable.*something else \(orders\).*another database/,
    );
    const { rows } = await home.database.query(
      "SELECT table_name FROM information_schema.tables WHERE table_schema = 'pagegate'",
    );
    expect(rows).toEqual([{ table_name: 'orders' }]);
    await home.clear();
  });

  it('without tables is not reported as a ledger, and is refused if its tables are of a newer program', async () => {
    const engine = await home.connectAside();
    expect(await outcomeOf(prepareSchema(engine, { create: false }))).toMatch(/^no_ledger/);
    expect(await readFleetDatabase(engine, undefined, 60)).toMatchObject({ ledger: undefined });
    const id = await prepareSchema(engine);
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(await prepareSchema(engine)).toBe(id);
    await home.run('UPDATE pagegate.ledger SET version = 99');
    expect(await outcomeOf(prepareSchema(engine))).toMatch(/^ledger_version.*expected version \d+, got 99/);
    expect(await readFleetDatabase(engine, undefined, 60)).toMatchObject({
      ledger: { version: 99, expected: SCHEMA_VERSION },
    });
    await home.clear();
  });

  it('of an earlier version is upgraded, and what it did not record does not count as lost', async () => {
    const engine = await home.connectAside();
    const id = await prepareSchema(engine);
    await home.run(
      `SET search_path = pagegate; DROP TABLE revisions; DROP TRIGGER ledger_revision ON ledger;
       DROP FUNCTION next_revision, advance_revision, sync; UPDATE ledger SET version = 1, revision = 7`,
    );
    expect(await prepareSchema(engine)).toBe(id);
    const says = async (node: string, revision: number): Promise<unknown> => {
      const request = { node, name: node, incarnation: 1, session: '1', previous: '0', seq: 1, full: true };
      const rest = { leaves: false, revision, program: '', generation: '', max_staleness: 60, accounts: [], days: [] };
      const [row] = await engine.query<{ reply: SyncReply }>('SELECT sync($1::jsonb) AS reply', [
        JSON.stringify({ ...request, ...rest }),
      ]);
      return row?.reply.history;
    };
    expect([await says('new', 0), await says('behind', 5), await says('current', 7)]).toEqual([0, 0, 0]);
    expect(await says('ahead', 8)).toBe(1);
    await home.clear();
  });
});
