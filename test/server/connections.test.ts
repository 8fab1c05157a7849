/** Connections that send nothing or half a request: how many a client may have, and for how long. */
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { converse, exchange, requestText } from '../support/raw-http.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const MOST = 5;
const REQUEST = requestText('/api/check');

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    entries: [{ domain: 'example.com' }],
    config: {
      burst: { exempt: ['127.8.0.0/16'], trusted_proxies: ['127.9.0.1'] },
      // The transport checks every four seconds, so a timeout of four seconds could end a connection at any moment.
      server: { max_unanswered_per_address: MOST, idle_seconds: 8, keep_alive_seconds: 8 },
    },
  });
});
afterAll(() => server.stop());

interface Client {
  readonly socket: Socket;
  /** Resolves with the received text when the server has closed the connection. */
  readonly closed: Promise<string>;
  readonly isClosed: () => boolean;
}

async function open(from: string, text: string): Promise<Client> {
  const socket = connect({ port: server.port, host: '127.0.0.1', localAddress: from });
  let received = '';
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  socket.on('error', () => {});
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)));
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(text);
  return { socket, closed, isClosed: () => socket.destroyed };
}

const openMany = async (count: number, from: string, text: string): Promise<Client[]> => {
  const clients: Client[] = [];
  for (let i = 0; i < count; i++) clients.push(await open(from, text));
  return clients;
};

const refused = async (): Promise<number> => {
  const text = await (await fetch(`${server.adminUrl}/metrics`)).text();
  return Number(/^pagegate_connections_refused_total\{reason="address"\} (\d+)$/m.exec(text)?.[1] ?? 0);
};

const statusFrom = async (from: string): Promise<number | undefined> =>
  (await exchange(server.port, [REQUEST], { from })).responses[0]?.status;

describe('connections of one client that have not sent a complete request', () => {
  it('are limited: one more is closed at once, other clients are served, and when they have ended the client is served again', async () => {
    const before = await refused();
    const clients = await openMany(MOST + 3, '127.0.0.2', 'GET / HT');
    await Promise.all(clients.slice(MOST).map(({ closed }) => closed));
    expect(clients.slice(0, MOST).map(({ isClosed }) => isClosed())).toEqual(Array(MOST).fill(false));
    expect((await refused()) - before).toBe(3);
    expect(await statusFrom('127.0.0.3')).toBe(401);
    for (const { socket } of clients) socket.destroy();
    await expect.poll(() => statusFrom('127.0.0.2').catch(() => undefined)).toBe(401);
  });

  it('are no longer counted once they have sent one', async () => {
    const before = await refused();
    for (let i = 0; i < 2 * MOST; i++) {
      const { socket } = await open('127.0.0.4', REQUEST);
      await new Promise((resolve) => socket.once('data', resolve));
    }
    const pipelined = await openMany(MOST, '127.0.0.4', 'GET / HT');
    for (const { socket } of pipelined) socket.end(REQUEST.slice('GET / HT'.length));
    expect(await refused()).toBe(before);
  });

  it.each(['127.8.0.1', '127.9.0.1'])('have no limit for an exempt network or a trusted proxy: %s', async (from) => {
    const before = await refused();
    const clients = await openMany(3 * MOST, from, 'GET / HT');
    expect(await statusFrom(from)).toBe(401);
    expect(await refused()).toBe(before);
    for (const { socket } of clients) socket.destroy();
  });
});

it.each(['127.0.0.8', '127.8.0.2'])('a connection serves any number of requests: %s', async (from) => {
  expect(await converse(server.port, Array(20).fill(REQUEST), from)).toHaveLength(20);
});

describe.concurrent('a connection without a complete request is closed after a time', () => {
  it.each([
    ['nothing at all', ''],
    ['half a request', 'GET /api/check HT'],
    ['an empty line before a request', `\r\n${REQUEST}`],
    ['a bare CR in a header', requestText('/api/check', [['X-Other', 'a\rb']])],
    ['headers without their end', REQUEST.slice(0, -2)],
  ])('without a response: %s', async (_name, text) => {
    expect(await (await open('127.0.0.5', text)).closed).toBe('');
  });

  it('even if bytes trickle in', async () => {
    const { socket, closed } = await open('127.0.0.6', 'G');
    const timer = setInterval(() => socket.write('x'), 500);
    expect(await closed).toBe('');
    clearInterval(timer);
  });

  it.each([
    ['nothing', REQUEST, 1],
    ['nothing after the second one', REQUEST.repeat(2), 2],
    ['half a request', `${REQUEST}GET /api`, 1],
    ['an empty line before the next', `${REQUEST}\r\n${REQUEST}`, 1],
  ])('after an answered request: %s', async (_name, text, answers) => {
    const received = await (await open('127.0.0.7', text)).closed;
    expect(received.match(/HTTP\/1\.1 /g)).toHaveLength(answers);
  });
});
