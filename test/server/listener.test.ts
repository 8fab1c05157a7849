import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { ConnectionCount } from '../../src/server/process/connections.ts';
import { Listener } from '../../src/server/process/listener.ts';
import { createCertificate } from '../../tools/certificate.ts';

const { tls } = loadConfig({ env: {}, flags: {} });

/** Returns a port that was free a moment ago. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

it.each([0, 1, 2, 3, 4])(
  'TLS: no connection outlives the listener, even if it came %i turns before the end',
  async (turns) => {
    const { certificate: chain, key } = createCertificate('end.test');
    const connections = new ConnectionCount({ most: 1_000 });
    const certificate = { chain, key, expiresMs: 0 };
    const listener = new Listener({ handle: (res) => void res.end(), tls, certificate, connections });
    const port = await freePort();
    await listener.listen('127.0.0.1', port);
    const ends = Array.from({ length: 20 }, () => {
      const socket = connect({ port, host: '127.0.0.1' });
      return new Promise((resolve) => socket.on('error', () => {}).once('close', resolve));
    });
    for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
    await listener.stopListening();
    listener.close();
    const opened = connections.closed;
    await Promise.all(ends);
    expect([connections.open, connections.closed]).toEqual([0, opened]);
  },
);

/** A client in its own thread. It signals its connection through shared memory, sends a request, and posts the start of what it received. */
const CLIENT = `
const { workerData: { port, isConnected }, parentPort } = require('node:worker_threads');
const socket = require('node:net').connect(port, '127.0.0.1');
let read = '';
socket.on('connect', () => {
  socket.write('GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n');
  Atomics.store(isConnected, 0, 1);
  Atomics.notify(isConnected, 0);
});
socket.on('data', (bytes) => { read += bytes; });
socket.on('error', ({ code }) => { read += code; });
socket.on('close', () => parentPort.postMessage(read.slice(0, 15)));
`;

it('every accepted connection is answered, even if the process had no time to accept it before it stopped listening', async () => {
  const connections = new ConnectionCount({ most: 1_000 });
  const listener = new Listener({ handle: (res) => void res.end('x'), connections });
  const port = await freePort();
  await listener.listen('127.0.0.1', port);
  const isConnected = new Int32Array(new SharedArrayBuffer(4));
  const client = new Worker(CLIENT, { eval: true, workerData: { port, isConnected } });
  const read = once(client, 'message');
  await once(client, 'online');
  // From here on this process does not poll its sockets until its timers are long overdue.
  expect(Atomics.wait(isConnected, 0, 0, 10_000)).not.toBe('timed-out');
  const stopped = listener.stopListening();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  await stopped;
  expect(await read).toEqual(['HTTP/1.1 200 OK']);
  listener.close();
});

describe('TLS: values that the library refuses are reported with a code', () => {
  const listen = (commonName: string, ciphers: string = tls.ciphers, key?: string): Listener => {
    const made = createCertificate(commonName);
    const certificate = { chain: made.certificate, key: key ?? made.key, expiresMs: 0 };
    const connections = new ConnectionCount({ most: 1 });
    return new Listener({ handle: () => {}, tls: { ...tls, ciphers }, certificate, connections });
  };

  it('for a list of ciphers', () => {
    listen('ciphers.test', 'ECDHE-ECDSA-AES128-GCM-SHA256').close();
    expect(() => listen('ciphers.test', 'NONSENSE')).toThrow(
      expect.objectContaining({ code: 'tls_unusable', message: expect.stringContaining('tls.ciphers ("NONSENSE")') }),
    );
  });

  it('for a key', () => {
    const { privateKey } = generateKeyPairSync('ed448');
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
    expect(() => listen('key.test', undefined, key.toString())).toThrow(
      expect.objectContaining({ code: 'tls_unusable', message: expect.stringContaining('key of this kind') }),
    );
  });
});

it('a Node.js for which the transport has no binary gets a message that says how to start instead', () => {
  const other = 'data:text/javascript,Object.defineProperty(process.versions, "modules", { value: "999" })';
  const load = `import { loadUws } from ${JSON.stringify(new URL('../../src/server/uws.ts', import.meta.url))}; loadUws();`;
  const { status, stderr } = spawnSync(process.execPath, ['--import', other, '--input-type=module', '-e', load], {
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(/there is no \S+_999\.node; start the program with src\/pagegate, which brings the Node\.js/);
  expect(stderr).not.toContain('make install');
});
