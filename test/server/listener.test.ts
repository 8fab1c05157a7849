import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { ConnectionCount } from '../../src/server/process/connections.ts';
import { Listener } from '../../src/server/process/listener.ts';
import { createCertificate } from '../../tools/certificate.ts';

const { tls } = loadConfig({ env: {}, flags: {} });

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

it.each([0, 1, 2, 3, 4])(
  'TLS: no connection outlives the listener, also none that came %i turns before its end',
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

describe('TLS: what the library does not take is refused with a code', () => {
  const listen = (commonName: string, ciphers: string = tls.ciphers, key?: string): Listener => {
    const made = createCertificate(commonName);
    const certificate = { chain: made.certificate, key: key ?? made.key, expiresMs: 0 };
    const connections = new ConnectionCount({ most: 1 });
    return new Listener({ handle: () => {}, tls: { ...tls, ciphers }, certificate, connections });
  };

  it('a list of ciphers', () => {
    listen('ciphers.test', 'ECDHE-ECDSA-AES128-GCM-SHA256').close();
    expect(() => listen('ciphers.test', 'NONSENSE')).toThrow(
      expect.objectContaining({ code: 'tls_unusable', message: expect.stringContaining('tls.ciphers ("NONSENSE")') }),
    );
  });

  it('a key', () => {
    const { privateKey } = generateKeyPairSync('ed448');
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
    expect(() => listen('key.test', undefined, key.toString())).toThrow(
      expect.objectContaining({ code: 'tls_unusable', message: expect.stringContaining('key of this kind') }),
    );
  });
});
