import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listeningSockets, refuseNewConnections, sendDatagram, steerConnections } from '../../src/platform/sockets.ts';
import { DatagramSocket } from '../support/datagrams.ts';

describe('sockets that share a port', () => {
  let servers: Server[];
  let counts: number[];
  let port: number;
  let clients: Socket[];

  beforeEach(async () => {
    [servers, counts, clients, port] = [[], [], [], 0];
    for (let i = 0; i < 3; i += 1) {
      counts.push(0);
      const server = createServer(() => {
        counts[i]! += 1;
      });
      server.listen({ port, host: '127.0.0.1', reusePort: true });
      await once(server, 'listening');
      port = (server.address() as AddressInfo).port;
      servers.push(server);
    }
  });
  afterEach(() => {
    for (const client of clients) client.destroy();
    for (const server of servers) server.close();
  });

  async function open(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      const client = connect(port, '127.0.0.1');
      clients.push(client);
      await once(client, 'connect');
    }
    await expect.poll(() => counts.reduce((sum, one) => sum + one, 0)).toBe(clients.length);
  }

  it('are found by their port, and no other descriptor is', () => {
    expect(listeningSockets(port)).toHaveLength(3);
    expect(listeningSockets(1)).toEqual([]);
  });

  it('send all new connections to the named one, even if one before it is closed, until each gets its share again', async () => {
    const [fd = -1] = listeningSockets(port);
    expect(steerConnections(fd, { first: 1, count: 1 })).toBe(true);
    await open(30);
    expect(counts).toEqual([0, 30, 0]);
    servers.shift()?.close();
    // The last one has moved to the place of the first.
    await open(30);
    expect(counts).toEqual([0, 60, 0]);
    expect(steerConnections(listeningSockets(port)[0]!, undefined)).toBe(true);
    await open(60);
    expect(counts[2]).toBeGreaterThan(5);
  });

  it('send no new connections to those that joined later, and share them among the others', async () => {
    expect(steerConnections(listeningSockets(port)[0]!, { first: 0, count: 2 })).toBe(true);
    await open(90);
    expect(counts[2]).toBe(0);
    for (const count of counts.slice(0, 2)) expect(count).toBeGreaterThan(20);
    expect(steerConnections(99_999, { first: 0, count: 2 })).toBe(false);
  });

  it('share all new connections among those that joined last, if these are named', async () => {
    expect(steerConnections(listeningSockets(port)[0]!, { first: 1, count: 2 })).toBe(true);
    await open(90);
    expect(counts[0]).toBe(0);
    for (const count of counts.slice(1)) expect(count).toBeGreaterThan(20);
  });

  it('give each its share if no socket has the named place', async () => {
    expect(steerConnections(listeningSockets(port)[0]!, { first: 3, count: 1 })).toBe(true);
    await open(90);
    for (const count of counts) expect(count).toBeGreaterThan(5);
  });

  it('admit no new socket once they refuse', async () => {
    await open(3);
    for (const fd of listeningSockets(port)) expect(refuseNewConnections(fd)).toBe(true);
    const late = connect(port, '127.0.0.1');
    clients.push(late);
    let isIn = false;
    late.on('connect', () => {
      isIn = true;
    });
    late.on('error', () => {});
    await sleep(300);
    expect(isIn).toBe(false);
    for (const client of clients.slice(0, 3)) expect(client.readyState).toBe('open');
  });

  it('are left alone if the descriptor is not one of them', () => {
    expect(steerConnections(99_999, undefined)).toBe(false);
    expect(refuseNewConnections(99_999)).toBe(false);
  });
});

describe('a datagram', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pagegate-datagram-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it.each(['file', 'name'])('reaches a socket by its %s', (kind) => {
    const path = kind === 'file' ? join(folder, 'notify') : `@pagegate-test-${process.pid}`;
    const socket = new DatagramSocket(path);
    try {
      expect(sendDatagram(path, 'READY=1\nSTATUS=é')).toBe(0);
      expect(socket.take()).toEqual(['READY=1\nSTATUS=é']);
    } finally {
      socket.close();
    }
  });

  it('that cannot be delivered has an error number', () => {
    expect(sendDatagram(join(folder, 'none'), 'READY=1')).toBe(2);
    expect(sendDatagram(join(folder, 'x'.repeat(200)), 'READY=1')).toBe(36);
  });
});
