/** The browser's proxy without a browser: raw requests to it, and a site with arbitrary responses. */
import { once } from 'node:events';
import { connect, createServer, type LookupFunction, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BrowserProxy, startBrowserProxy } from '../../tools/integrations/browser/browser-proxy.ts';
import { closeLater, createGuard, createJudge, names } from './support.ts';

let proxy: BrowserProxy;
/** The site's response to any request, and the requests it received. */
let answer: string;
let asked: string;
let sitePort: number;

beforeEach(async () => {
  const sockets = new Set<Socket>();
  const site = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.on('data', (data) => {
      asked += data.toString('latin1');
      if (asked.includes('\r\n\r\n')) socket.end(answer);
    });
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  closeLater(() => {
    site.close();
    for (const socket of sockets) socket.destroy();
  });
  sitePort = (site.address() as { port: number }).port;
  asked = '';
  answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  const judge = await createJudge(() => 'allow');
  const { guard } = createGuard(judge.url, { exceptions: { 'site.example': '127.0.0.1' } });
  proxy = await startBrowserProxy(guard, { lookup: names({ 'site.example': ['127.0.0.1'] }) });
});
afterEach(() => proxy.close());

/** Sends text to a port. Resolves with the response at its end, or when `isEnough` returns true. */
function exchange(server: string, text: string, isEnough = (_got: string) => false): Promise<string> {
  return new Promise((resolve) => {
    let got = '';
    const socket = connect(Number(new URL(server).port), '127.0.0.1', () => void socket.write(text));
    socket.on('data', (data) => {
      got += data.toString('latin1');
      if (isEnough(got)) socket.destroy();
    });
    socket.on('error', () => {}).on('close', () => resolve(got));
  });
}

const get = (lines = '') =>
  `GET http://site.example:${sitePort}/ HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n${lines}\r\n`;
const statusOf = (text: string) => text.split('\r\n', 1)[0];

describe('plain HTTP', () => {
  test.each([
    ['a Trailer and a length', 'HTTP/1.1 200 OK\r\nTrailer: X\r\nContent-Length: 2\r\n\r\nok', '200 OK'],
    ['the status 000', 'HTTP/1.1 000 X\r\nContent-Length: 2\r\n\r\nok', '502 Bad Gateway'],
    ['the status 099', 'HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok', '502 Bad Gateway'],
    [
      'another protocol',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      '502 Bad Gateway',
    ],
    ['no HTTP', 'hello\r\n\r\n', '502 Bad Gateway'],
    ['nothing', '', '502 Bad Gateway'],
  ])('a site that answers %s does not end the program', async (_name, text, status) => {
    answer = text;
    expect(statusOf(await exchange(proxy.server, get()))).toBe(`HTTP/1.1 ${status}`);
  });

  test('neither does a client that sends a Trailer header with a content-length', async () => {
    const request = get('Trailer: X\r\nContent-Length: 1\r\n').replace('GET', 'POST');
    expect(statusOf(await exchange(proxy.server, `${request}x`))).toBe('HTTP/1.1 200 OK');
    expect(asked.toLowerCase()).not.toContain('trailer');
    expect(asked).toMatch(/\r\n\r\nx$/);
  });
});

describe('a client that disconnects', () => {
  test.each(['GET', 'POST', 'CONNECT'])(
    'while its %s waits leaves no connection to the site behind',
    async (method) => {
      let connections = 0;
      const open = new Set<Socket>();
      const site = createServer((socket) => {
        connections += 1;
        open.add(socket.on('error', () => {}).resume());
        socket.on('close', () => open.delete(socket));
      });
      await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
      const { port } = site.address() as { port: number };
      const judge = await createJudge(() => 'allow');
      const { guard } = createGuard(judge.url, { exceptions: { 'site.example': '127.0.0.1' } });
      let answer: (() => void) | undefined;
      const lookup: LookupFunction = (_name, _options, found) => {
        answer = () => found(null, [{ address: '127.0.0.1', family: 4 }]);
      };
      const slow = await startBrowserProxy(guard, { lookup });
      closeLater(() => {
        slow.close();
        site.close();
        for (const socket of open) socket.destroy();
      });
      slow.admit(`https://site.example:${port}/`, 'GET');
      const target = method === 'CONNECT' ? `site.example:${port}` : `http://site.example:${port}/`;
      const length = method === 'POST' ? 'Content-Length: 9\r\n' : '';
      const client = connect(Number(new URL(slow.server).port), '127.0.0.1');
      client.write(`${method} ${target} HTTP/1.1\r\nHost: site.example\r\n${length}\r\n`);
      await expect.poll(() => answer).toBeDefined();
      client.resetAndDestroy();
      await once(client, 'close');
      answer!();
      await expect.poll(() => [connections, open.size]).toEqual([1, 0]);
    },
  );

  test('ends a tunnel, although the site keeps its side open', async () => {
    const open = new Set<Socket>();
    const site = createServer({ allowHalfOpen: true }, (socket) => open.add(socket.on('error', () => {}).resume()));
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
    closeLater(() => {
      site.close();
      for (const socket of open) socket.destroy();
    });
    const place = `site.example:${(site.address() as { port: number }).port}`;
    proxy.admit(`https://${place}/`, 'GET');
    const client = connect({ port: Number(new URL(proxy.server).port), host: '127.0.0.1', allowHalfOpen: true });
    client.write(`CONNECT ${place} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await once(client, 'data');
    const closed = once(
      client.on('error', () => {}),
      'close',
    );
    client.end('bye');
    await closed;
  });
});

describe('tunnels', () => {
  /** The proxy address for WebSockets in Chromium's arguments. */
  const webSocketServer = () => /socks=(\S+)/.exec(proxy.args[0]!)![1]!;
  const open = (server: string, port: number) =>
    exchange(server, `CONNECT site.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`, (got) => got.includes('\r\n\r\n'));
  const [OPENED, REFUSED] = ['HTTP/1.1 200 Connection Established', 'HTTP/1.1 403 Forbidden'];

  test('for requests: only to an origin that a request was allowed to, not one that only a WebSocket was allowed to', async () => {
    const place = `site.example:${sitePort}`;
    proxy.admitWebSocket(`wss://${place}/chat`);
    proxy.admit(`http://${place}/`, 'GET');
    expect(statusOf(await open(proxy.server, sitePort))).toBe(REFUSED);
    proxy.admit(`https://${place}/`, 'GET');
    expect(statusOf(await open(proxy.server, sitePort))).toBe(OPENED);
  });

  test.each(['ws', 'wss'])('for WebSockets: only to an origin that one was allowed to, %s', async (scheme) => {
    const place = `site.example:${sitePort}`;
    proxy.admit(`https://${place}/`, 'GET');
    proxy.admit(`http://${place}/`, 'POST');
    expect(statusOf(await open(webSocketServer(), sitePort))).toBe(REFUSED);
    proxy.admitWebSocket(`${scheme}://${place}/chat`);
    expect(statusOf(await open(webSocketServer(), sitePort))).toBe(OPENED);
  });

  test('the port for WebSockets accepts nothing else', async () => {
    proxy.admit(`http://site.example:${sitePort}/`, 'GET');
    expect(statusOf(await exchange(webSocketServer(), get()))).toBe('HTTP/1.1 502 Bad Gateway');
    expect(asked).toBe('');
  });
});
