import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Log } from '../../src/server/log.ts';
import { startServer } from '../../src/server/server.ts';
import { isAlive } from '../support/processes.ts';
import { converse, requestText } from '../support/raw-http.ts';
import { install, read, startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    entries: [{ domain: 'example.com' }],
    accounts: { pro: { plan: 'business' } },
    workers: 2,
    config: { burst: { exempt: [], limit: 240, trusted_proxies: ['127.0.0.1'] } },
  });
});
afterAll(() => server.stop());

const from = (client: string) => ({ 'x-api-key': server.keys['pro']!, 'x-forwarded-for': client });
const metric = async (name: string): Promise<number> => {
  const { text } = await read(await fetch(`${server.adminUrl}/metrics`));
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`pagegate_${name} `))
      ?.split(' ')[1] ?? Number.NaN,
  );
};

/** Writes requests over and over on one connection without reading. Returns whether the server closed it. */
async function askWithoutReading(port: number, requests: string): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  socket.pause();
  socket.on('error', () => {});
  const closed = new Promise<true>((resolve) => socket.once('close', () => resolve(true)));
  let isClosed = false;
  for (let times = 0; times < 5_000 && !isClosed; times++) {
    const written = new Promise<false>((resolve) => socket.write(requests, () => setTimeout(resolve, 2, false)));
    isClosed = await Promise.race([closed, written]);
  }
  socket.destroy();
  return isClosed;
}

describe('two worker processes', () => {
  it('share one port', async () => {
    expect(server.server.pids.length).toBe(2);
    expect(new Set(server.server.pids).size).toBe(2);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        server.check('?domain=example.com', { ...from(`10.9.0.${i}`), connection: 'close' }),
      ),
    );
    expect(answers.every((answer) => answer.status === 200)).toBe(true);
    const left = answers.map(({ body }) => body.quota_remaining);
    expect(new Set(left).size).toBe(100);
    const counts = await Promise.all(server.server.pids.map((pid) => readFileSync(`/proc/${pid}/maps`, 'utf8')));
    // Both map the same file, read-only and shared.
    for (const maps of counts) expect(maps).toMatch(/r--s .*index\.pgx/);
  });

  it('keep little memory for finished requests', () => {
    for (const pid of server.server.pids) {
      expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')).toContain('--max-semi-space-size=2');
    }
  });

  it('share an exact burst limit, whatever the status', async () => {
    const paths = ['?domain=example.com', '?domain=%zz', ''];
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        server.check(paths[i % 3]!, { ...from('192.0.2.7'), connection: i % 2 ? 'close' : 'keep-alive' }),
      ),
    );
    const refused = answers.filter((answer) => answer.status === 429);
    expect(refused.length).toBe(60);
    for (const { headers, body } of refused) {
      expect(body.error).toBe('rate_limited');
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(61);
    }
    expect((await server.check('?domain=example.com', from('192.0.2.8'))).status).toBe(200);
    expect((await server.check('?domain=example.com', { ...from('192.0.2.7'), 'x-api-key': 'wrong' })).status).toBe(
      429,
    );
    expect((await read(await fetch(`${server.url}/elsewhere`, { headers: from('192.0.2.7') }))).status).toBe(429);
  });

  it('take the client from the nearest proxy, even if its header comes after one that the client sent', async () => {
    const texts = Array.from({ length: 241 }, (_, i) =>
      requestText('/api/check', [
        ['x-forwarded-for', `203.0.113.${i}`],
        ['x-forwarded-for', '192.0.2.77'],
      ]),
    );
    const statuses = (await converse(server.port, texts, '127.0.0.1')).map(({ status }) => status);
    expect([statuses.slice(0, 240).every((status) => status === 401), statuses[240]]).toEqual([true, 429]);
  });

  it('count IPv6 clients by /64', async () => {
    const answers = await Promise.all(
      Array.from({ length: 241 }, (_, i) => server.check('?domain=%zz', from(`2001:db8::${i.toString(16)}`))),
    );
    expect(answers.filter((answer) => answer.status === 429).length).toBe(1);
  });

  it('are replaced when one is killed, and its counts are not lost', async () => {
    await metric('workers');
    const before = await metric('requests_total{status="200",code="ok"}');
    const spent = from('192.0.2.9');
    await Promise.all(Array.from({ length: 240 }, () => server.check('?domain=%zz', spent)));
    const [victim] = server.server.pids;
    process.kill(victim!, 'SIGKILL');
    await expect.poll(() => server.server.pids.filter((pid) => pid !== victim).length).toBe(2);
    expect(await metric('worker_restarts_total')).toBe(1);
    expect(await metric('requests_total{status="200",code="ok"}')).toBeGreaterThanOrEqual(before);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        server.check('?domain=example.com', { ...from(`10.8.0.${i}`), connection: 'close' }),
      ),
    );
    expect(answers.every((answer) => answer.status === 200)).toBe(true);
    expect(server.log.some((line) => line.includes('"worker_died"'))).toBe(true);
    // What the burst limit counted before the worker died still counts.
    expect((await server.check('?domain=example.com', spent)).status).toBe(429);
  });

  it('disconnect a client that keeps sending requests and never reads, and keep no data for it', async () => {
    const other = await startTestServer({
      entries: [{ domain: 'example.com' }],
      accounts: { pro: { plan: 'business' } },
      workers: 1,
      config: { burst: { exempt: ['127.0.0.0/8'] } },
    });
    try {
      const { pids } = other.server;
      const residentBytes = (): number =>
        Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pids[0]}/status`, 'utf8'))![1]) * 1024;
      const requests = requestText('/api/check?domain=example.com', [['x-api-key', other.keys['pro']!]]).repeat(20);
      expect((await other.check('?domain=example.com')).status).toBe(200);
      const before = residentBytes();
      const cut = await Promise.all(Array.from({ length: 6 }, () => askWithoutReading(other.port, requests)));
      expect(cut).toEqual(Array(6).fill(true));
      expect(residentBytes() - before).toBeLessThan(50_000_000);
      expect((await other.check('?domain=example.com')).status).toBe(200);
      expect(other.server.pids).toEqual(pids);
      expect(other.log.filter((line) => line.includes('"worker_died"'))).toEqual([]);
    } finally {
      await other.stop();
    }
  });

  it('answer every request sent before a stop, then close', async () => {
    const other = await startTestServer({ entries: [{ domain: 'example.com' }], workers: 2 });
    const request = `GET /api/check?domain=example.com HTTP/1.1\r\nHost: x\r\nX-API-Key: ${other.keys['pro']}\r\n\r\n`;
    const clients = Array.from({ length: 320 }, () => {
      const socket = connect(other.port, '127.0.0.1');
      const texts: Buffer[] = [];
      socket.on('data', (data) => texts.push(data));
      socket.on('error', () => {});
      const connected = new Promise((resolve) => socket.once('connect', resolve));
      const closed = new Promise((resolve) => socket.once('close', resolve));
      return { socket, connected, closed, text: () => Buffer.concat(texts).toString() };
    });
    // Half of them are accepted long before; half wait to be accepted when the stop comes.
    await Promise.all(clients.slice(0, 160).map(({ connected }) => connected));
    for (const { socket } of clients) socket.write(request);
    await Promise.all(clients.map(({ connected }) => connected));
    await other.stop();
    await Promise.all(clients.map(({ closed }) => closed));
    const answered = clients.filter(({ text }) => /^HTTP\/1\.1 200 OK\r\n.*\}$/s.test(text()));
    expect(answered.length).toBe(320);
  });

  it('leave no process behind after a stop, and their port does not answer', async () => {
    const other = await startTestServer({ entries: [{ domain: 'example.com' }], workers: 2 });
    const { pids } = other.server;
    expect((await other.check('?domain=example.com')).status).toBe(200);
    expect(pids.filter(isAlive)).toEqual(pids);
    await other.stop();
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
    await expect(fetch(other.url)).rejects.toThrow();
  });
});

describe('the port that the kernel chose for a server', () => {
  /** Returns the ports on which this process listens. */
  function listening(): number[] {
    const sockets = readdirSync('/proc/self/fd').map((name) => {
      try {
        return readlinkSync(`/proc/self/fd/${name}`);
      } catch {
        return '';
      }
    });
    const lines = readFileSync('/proc/self/net/tcp', 'utf8').split('\n');
    return lines.flatMap((line) => {
      const [, local = '', , state, , , , , , inode] = line.trim().split(/ +/);
      return state === '0A' && sockets.includes(`socket:[${inode}]`) ? [Number.parseInt(local.slice(-4), 16)] : [];
    });
  }

  /** Starts and stops a server with a worker process. `onHeld` is called before the worker starts. */
  async function start(onHeld: () => void): Promise<number> {
    const dir = mkdtempSync(join(tmpdir(), 'pagegate-port-'));
    const log: Log = (event) => {
      if (event === 'ledger_ready') onHeld();
    };
    try {
      const { config } = await install(dir, {});
      const other = await startServer(config, { log });
      await other.stop();
      return other.port;
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  }

  it('is held until its workers have it', async () => {
    let early: number[] = [];
    const port = await start(() => {
      early = listening();
    });
    expect(early).toContain(port);
  });

  it('cuts a connection that arrives while it is held, and the start is not delayed', async () => {
    const before = listening();
    const ends: Promise<unknown>[] = [];
    await start(() => {
      for (const port of listening().filter((one) => !before.includes(one))) {
        const socket = connect({ port, host: '127.0.0.1' });
        ends.push(new Promise((resolve) => socket.on('error', () => {}).once('close', resolve)));
      }
    });
    expect(ends.length).toBe(1);
    await Promise.all(ends);
  });
});

describe('a start that cannot work', () => {
  it('says why, and leaves nothing behind', async () => {
    const config = { policy: { file: '/nonexistent/policy.json' } };
    await expect(startTestServer({ config, workers: 2 })).rejects.toMatchObject({ code: 'policy_missing' });
    await expect(startTestServer({ config: { server: { host: '192.0.2.1' } } })).rejects.toMatchObject({
      code: 'plain_http_refused',
    });
    await expect(startTestServer({ config: { server: { host: '0.0.0.0' } } })).rejects.toMatchObject({
      code: 'plain_http_refused',
    });
    await expect(startTestServer({ config: { server: { port: server.port } } })).rejects.toMatchObject({
      code: 'listen_failed',
    });
    await expect(startTestServer({ config: { burst: { exempt: ['nonsense'] } } })).rejects.toMatchObject({
      code: 'config_invalid',
    });
  });
});
