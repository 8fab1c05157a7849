import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import { askServer, listenControl } from '../../src/server/control-socket.ts';
import { METRICS } from '../../src/server/metric-definitions.ts';
import type { ServerStatus } from '../../src/server/status.ts';
import { read, startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    entries: [{ domain: 'example.com' }],
    config: { admin: { names: ['pagegate.internal'] } },
  });
});
afterAll(() => server.stop());

const admin = async (path: string, init: RequestInit = {}) => read(await fetch(`${server.adminUrl}${path}`, init));

describe('the admin listener', () => {
  it('answers /livez and /readyz', async () => {
    expect((await admin('/livez')).body).toEqual({ alive: true });
    expect(await admin('/readyz')).toMatchObject({ status: 200, body: { ready: true, reasons: [] } });
  });

  it('reports in /status what is served', async () => {
    const { body } = await admin('/status');
    expect(body).toMatchObject({ ready: true, tls: false, worker_restarts: 0 });
    expect(body.workers[0]).toMatchObject({
      generation: 1,
      dataset: 'test',
      records: 1,
      page_types_complete: true,
      unicode_agrees: true,
    });
  });

  it('serves Prometheus text at /metrics: every sample has a type, and no label contains a domain, a key or an address', async () => {
    await server.check('?domain=example.com');
    await server.check('?domain=secret-project.net');
    await server.check('?domain=%zz');
    const { text, headers } = await admin('/metrics');
    expect(headers.get('content-type')).toContain('version=0.0.4');
    const types = new Map<string, string>();
    const samples = new Map<string, number>();
    for (const line of text.trimEnd().split('\n')) {
      const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
      if (type !== null) types.set(type[1]!, type[2]!);
      if (line.startsWith('#')) continue;
      const sample = /^([a-z_]+)(\{[a-z_]+="[^"\\]*"(?:,[a-z_]+="[^"\\]*")*\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(
        line,
      );
      expect(sample, line).not.toBeNull();
      const name = sample![1]!;
      const family = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
      expect(types.get(family), line).toBeDefined();
      if (types.get(name) === 'counter') expect(name).toMatch(/_total$/);
      samples.set(`${name}${sample![2] ?? ''}`, Number(sample![3]));
    }
    for (const name of [...types.keys()]) expect(METRICS).toHaveProperty(name.replace('pagegate_', ''));
    // Absent here: the server has no TLS, no account near its limit, and belongs to no fleet.
    const absent = Object.keys(METRICS).filter((name) => !types.has(`pagegate_${name}`));
    expect(absent).toEqual([
      'certificate_expiry_seconds',
      'account_quota_used_ratio',
      'fleet_staleness_seconds',
      'fleet_held_lookups',
      'fleet_learning',
    ]);
    expect(samples.get('pagegate_ready')).toBe(1);
    expect(samples.get('pagegate_connections_refused_total{reason="all"}')).toBe(0);
    expect(samples.get('pagegate_requests_total{status="200",code="ok"}')).toBeGreaterThanOrEqual(2);
    expect(samples.get('pagegate_requests_total{status="400",code="bad_encoding"}')).toBeGreaterThanOrEqual(1);
    expect(samples.get('pagegate_verdicts_total{verdict="allow",layer="default"}')).toBeGreaterThanOrEqual(1);
    expect(samples.get('pagegate_index_generation')).toBe(1);
    // Loading the first index is not a swap. Each series exists before its first count.
    for (const part of ['index', 'policy', 'certificate'])
      for (const outcome of ['done', 'refused'])
        expect(samples.get(`pagegate_swaps_total{part="${part}",outcome="${outcome}"}`)).toBe(0);
    expect(samples.get('pagegate_lookup_seconds_bucket{le="+Inf"}')).toBe(samples.get('pagegate_lookup_seconds_count'));
    expect(text).not.toMatch(/example|secret|127\.0\.0\.1|pg_/);
  });

  it.each([
    ['127.0.0.1:9090', 200],
    ['[::1]:9090', 200],
    ['localhost', 200],
    ['LOCALHOST:1', 200],
    ['pagegate.internal:9090', 200],
    ['Pagegate.Internal', 200],
    ['evil.example', 421],
    ['evil.example:9090', 421],
    ['127.0.0.1.evil.example', 421],
    ['localhost.evil.example', 421],
    ['pagegate.internal.evil.example', 421],
  ])(
    'may be called by an address, as localhost, or by a name of the configuration: Host %j is %i',
    async (host, status) => {
      for (const path of ['/livez', '/readyz', '/metrics', '/status', '/x']) {
        const answer = await new Promise<number>((resolve, reject) => {
          get({ port: new URL(server.adminUrl).port, host: '127.0.0.1', path, headers: { host } }, (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          }).on('error', reject);
        });
        expect(answer).toBe(path === '/x' && status === 200 ? 404 : status);
      }
    },
  );

  it('accepts only reads', async () => {
    for (const path of ['/livez', '/reload', '/status']) {
      const { status, headers } = await admin(path, { method: 'POST' });
      expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
    expect((await admin('/reload')).status).toBe(404);
    expect((await admin('/api/check')).status).toBe(404);
    expect((await admin('/livez', { method: 'HEAD' })).text).toBe('');
  });
});

describe('the control socket', () => {
  it('has mode 0660', () => {
    expect(statSync(server.paths.socket).mode & 0o777).toBe(0o660);
  });

  it('answers status and reload', async () => {
    const status = (await askServer(server.paths.socket, 'status')) as ServerStatus;
    expect(status.ready).toBe(true);
    const reply = (await askServer(server.paths.socket, 'reload')) as { workers: { index: string }[] };
    expect(reply.workers.map((worker) => worker.index)).toEqual(['generation 1']);
  });

  /** Sends bytes and waits for the reply. */
  async function send(bytes: string): Promise<unknown> {
    const socket = connect(server.paths.socket, () => socket.write(bytes));
    return JSON.parse(await text(socket));
  }

  it.each(['', 'x', '{}', '{"command":"stop"}', '{"command":"toString"}'])('refuses %j and goes on', async (line) => {
    expect(await send(`${line}\n`)).toMatchObject({ ok: false, error: 'usage' });
    expect(((await askServer(server.paths.socket, 'status')) as ServerStatus).ready).toBe(true);
  });

  it('accepts a line of 256 bytes and refuses longer ones, with or without a line feed', async () => {
    const line = (sizeBytes: number): string => '{"command":"status"}'.padEnd(sizeBytes);
    expect(await send(`${line(256)}\n`)).toMatchObject({ ok: true });
    expect(await send(`${line(257)}\n`)).toMatchObject({ ok: false, error: 'usage' });
    expect(await send(line(257))).toMatchObject({ ok: false, error: 'usage' });
    expect(await send(`${line(100_000)}\n`)).toMatchObject({ ok: false, error: 'usage' });
  });

  it('refuses a second server on the same state directory, and leaves another file in its place alone', async () => {
    const handlers = { reload: async () => 0, restart: async () => 0, drain: async () => 0, status: async () => 0 };
    await expect(listenControl(server.paths.socket, handlers)).rejects.toMatchObject({ code: 'server_running' });
    const file = `${server.paths.runDir}/file`;
    writeFileSync(file, 'x');
    await expect(listenControl(file, handlers)).rejects.toMatchObject({ code: 'listen_failed' });
    await expect(listenControl(`/tmp/${'x'.repeat(120)}`, handlers)).rejects.toMatchObject({ code: 'listen_failed' });
  });

  it('does not take the socket of a server that hangs for a stale one, even if its backlog is full', async () => {
    const path = join(server.paths.runDir, 'hung.sock');
    const script = `require('node:net').createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log('listening'))`;
    const hung = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    const waiting: Socket[] = [];
    try {
      await once(hung.stdout, 'data');
      hung.kill('SIGSTOP');
      const codes = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const socket = connect(path);
          waiting.push(socket);
          return await new Promise((resolve) => {
            socket.once('connect', () => resolve('connected'));
            socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
          });
        }),
      );
      expect(codes).toContain('EAGAIN');
      const handlers = { reload: async () => 0, restart: async () => 0, drain: async () => 0, status: async () => 0 };
      await expect(listenControl(path, handlers)).rejects.toMatchObject({ code: 'server_running' });
      expect(statSync(path).isSocket()).toBe(true);
    } finally {
      for (const socket of waiting) socket.destroy();
      hung.kill('SIGKILL');
      rmSync(path, { force: true });
    }
  });

  it('replaces the socket that a killed server left behind', async () => {
    await expect(askServer(`${server.paths.runDir}/none.sock`, 'status')).rejects.toMatchObject({
      code: 'server_not_running',
    });
    await expect(askServer(`/tmp/${'x'.repeat(120)}`, 'status')).rejects.toMatchObject({ code: 'server_not_running' });
  });

  it('may have a path longer than a socket address allows', async () => {
    const folder = join(server.paths.runDir, 'a'.repeat(100), 'ä'.repeat(100));
    const path = join(folder, 'pagegate.sock');
    await expect(askServer(path, 'status')).rejects.toMatchObject({ code: 'server_not_running' });
    const handlers = { reload: async () => 0, restart: async () => 0, drain: async () => 0, status: async () => 7 };
    const socket = await listenControl(path, handlers);
    try {
      expect(await askServer(path, 'status')).toBe(7);
      await expect(listenControl(path, handlers)).rejects.toMatchObject({ code: 'server_running' });
      expect(readdirSync(folder)).toEqual(['pagegate.sock']);
    } finally {
      socket.close();
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is reported as busy, not as missing, when it has the maximum of connections', async () => {
    const idle = await Promise.all(
      Array.from({ length: LIMITS.socketConnections.value }, async () => {
        const socket = connect(server.paths.socket);
        await once(socket, 'connect');
        return socket;
      }),
    );
    try {
      await expect(askServer(server.paths.socket, 'status')).rejects.toMatchObject({ code: 'server_busy' });
    } finally {
      for (const socket of idle) socket.destroy();
    }
  });

  /** Queries a server that sends its reply in these pieces, with a pause between them. */
  async function askPieces(pieces: readonly Buffer[]): Promise<unknown> {
    const path = `${server.paths.runDir}/pieces.sock`;
    const answering = createServer((socket) => {
      socket.once('data', async () => {
        for (const piece of pieces) {
          socket.write(piece);
          await sleep(20);
        }
        socket.end();
      });
    }).listen(path);
    try {
      await once(answering, 'listening');
      return await askServer(path, 'status');
    } finally {
      answering.close();
    }
  }

  it('may split its reply within a character', async () => {
    const answer = Buffer.from('{"ok":true,"result":"Prüfung"}');
    const inside = answer.indexOf('ü') + 1;
    expect(await askPieces([answer.subarray(0, inside), answer.subarray(inside)])).toBe('Prüfung');
  });

  it.each([
    ['nothing', [], 'The server ended.'],
    ['half an answer', [Buffer.from('{"ok":tr')], 'The server ended in the middle of its answer.'],
  ])('reports a reply that ends after %s', async (_what, pieces, text) => {
    await expect(askPieces(pieces)).rejects.toMatchObject({
      code: 'server_refused',
      message: expect.stringContaining(text),
    });
  });
});
