import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCertificate } from '../../tools/certificate.ts';
import { childrenOf, commandOf } from '../../tools/chaos/leftovers.ts';
import { putPem } from '../support/put-pem.ts';
import { askOn, requestText } from '../support/raw-http.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const dir = mkdtempSync(join(tmpdir(), 'pagegate-tls-'));
const files = { certificate_file: join(dir, 'cert.pem'), key_file: join(dir, 'key.pem') };

function install(commonName: string): void {
  const { certificate, key } = createCertificate(commonName);
  putPem(files.certificate_file, certificate);
  putPem(files.key_file, key);
}

/** Replaces a file by a pipe without a writer. */
function putPipe(file: string): void {
  rmSync(file);
  execFileSync('mkfifo', ['-m', '600', file]);
}

let server: TestServer;
beforeAll(async () => {
  install('first.test');
  server = await startTestServer({
    entries: [{ domain: 'example.com' }],
    workers: 2,
    config: { tls: files, server: { poll_seconds: 3600 } },
  });
});
afterAll(async () => {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});

type Version = 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';

function openWith(ciphers: string): Promise<TLSSocket> {
  return open('TLSv1.2', server, ciphers);
}

async function open(version?: Version, { port } = server, ciphers = 'DEFAULT'): Promise<TLSSocket> {
  const versions =
    version === undefined ? {} : { minVersion: version, maxVersion: version, ciphers: `${ciphers}@SECLEVEL=0` };
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...versions });
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

const nameOf = (socket: TLSSocket): string => String(socket.getPeerCertificate().subject.CN);

const requestTo = ({ keys }: TestServer): string =>
  requestText('/api/check?domain=example.com', [['x-api-key', keys['pro']!]]);

async function ask(socket: TLSSocket): Promise<string> {
  return (await askOn(socket, requestTo(server))).body;
}

describe('TLS in the server', () => {
  it('answers over TLS 1.2 and 1.3', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await open(version);
      expect(socket.getProtocol()).toBe(version);
      expect(await ask(socket)).toContain('"found":true');
      socket.destroy();
    }
  });

  it.each([
    'AES128-GCM-SHA256',
    'AES256-SHA',
    'DHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES128-SHA',
    'ECDHE-ECDSA-AES256-SHA384',
  ])('disables TLS 1.2 without forward secrecy, with CBC or SHA-1 by default: %s', async (ciphers) => {
    await expect(openWith(ciphers)).rejects.toThrow(/handshake failure/);
  });

  it.each(['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305'])(
    'supports TLS 1.2 with %s',
    async (ciphers) => {
      const socket = await openWith(ciphers);
      expect(socket.getCipher().name).toBe(ciphers);
      socket.destroy();
    },
  );

  it.each(['TLSv1', 'TLSv1.1'] as const)('refuses %s', async (version) => {
    await expect(open(version)).rejects.toThrow(/alert protocol version/);
  });

  it('uses a new certificate for new connections; open ones keep the old one', async () => {
    install('first.test');
    await server.server.reload();
    const old = await open();
    expect(nameOf(old)).toBe('first.test');
    expect(await ask(old)).toContain('"found":true');
    install('second.test');
    expect(JSON.stringify(await server.server.reload())).toContain('"certificate":"in use"');
    expect(await ask(old)).toContain('"found":true');
    expect(nameOf(old)).toBe('first.test');
    for (let i = 0; i < 10; i++) {
      const socket = await open();
      expect(nameOf(socket)).toBe('second.test');
      expect(await ask(socket)).toContain('"found":true');
      socket.destroy();
    }
    old.destroy();
  });

  it('accepts a chain of several certificates, with text around them', async () => {
    install('chain.test');
    const { certificate } = createCertificate('other.test');
    putPem(files.certificate_file, `first\n${readFileSync(files.certificate_file)}then\n${certificate}end\n`);
    expect(JSON.stringify(await server.server.reload())).toContain('"certificate":"in use"');
    const socket = await open();
    expect(nameOf(socket)).toBe('chain.test');
    socket.destroy();
  });

  it('loses no connection when certificates are replaced again and again under load', async () => {
    let isDone = false;
    const answered = [0, 0, 0, 0];
    const failures: unknown[] = [];
    const load = answered.map(async (_, client) => {
      while (!isDone) {
        try {
          const socket = await open();
          expect(await ask(socket)).toContain('"found":true');
          socket.destroy();
        } catch (error) {
          failures.push(error);
        }
        answered[client]! += 1;
      }
    });
    for (let i = 0; i < 20; i++) {
      install(`rotation-${i}.test`);
      expect(JSON.stringify(await server.server.reload())).toContain('"certificate":"in use"');
      const before = [...answered];
      while (answered.some((count, client) => count <= before[client]!)) await sleep(5);
    }
    isDone = true;
    await Promise.all(load);
    expect(failures).toEqual([]);
    const socket = await open();
    expect(nameOf(socket)).toBe('rotation-19.test');
    socket.destroy();
  });

  it.each<[string, () => void, RegExp]>([
    ['a key that does not belong to it', () => putPem(files.key_file, createCertificate('x').key), /does not belong/],
    ['no certificate at all', () => putPem(files.certificate_file, 'nonsense'), /refused/],
    ['a key that everybody may read', () => chmodSync(files.key_file, 0o644), /chmod/],
    [
      'a pipe for the certificate',
      () => putPipe(files.certificate_file),
      /cert\.pem: expected a regular file, got a pipe/,
    ],
    ['a pipe for the key', () => putPipe(files.key_file), /key\.pem: expected a regular file, got a pipe/],
    [
      'a certificate without end',
      () => truncateSync(files.certificate_file, 2 ** 40),
      /expected at most 1048576 bytes/,
    ],
    [
      'a chain that is damaged further on',
      () => appendFileSync(files.certificate_file, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'),
      /cert\.pem: /,
    ],
    ['a key that is cut', () => truncateSync(files.key_file, 100), /key\.pem: /],
  ])('refuses %s and keeps the old certificate', async (_, spoil, expected) => {
    install('good.test');
    await server.server.reload();
    spoil();
    expect(JSON.stringify(await server.server.reload())).toMatch(expected);
    const socket = await open();
    expect(nameOf(socket)).toBe('good.test');
    socket.destroy();
    for (const file of Object.values(files)) rmSync(file);
    install('good.test');
  });
});

it('a response that waited for a reservation is sent in one piece', async () => {
  install('pieces.test');
  const other = await startTestServer({ entries: [{ domain: 'example.com' }], config: { tls: files } });
  try {
    const text = requestTo(other);
    const sockets = await Promise.all(Array.from({ length: 4 }, () => open(undefined, other)));
    const [waiting, next] = sockets;
    await askOn(next!, text);
    const ledgerWriter = childrenOf(process.pid).find((pid) => commandOf(pid).includes(other.paths.ledgerFile))!;
    process.kill(ledgerWriter, 'SIGSTOP');
    const inFlight = async (): Promise<number> => (await other.server.status()).workers[0]!.in_flight;
    // Reserved lookups are answered; the next request waits for more.
    let records = 0;
    waiting!.on('data', () => {
      records += 1;
    });
    let answered = 0;
    let answer = askOn(waiting!, text);
    const isWaiting = async (): Promise<boolean> => {
      while ((await inFlight()) === 0) await new Promise((resolve) => setTimeout(resolve, 10));
      return true;
    };
    while (!(await Promise.race([answer.then(() => false), isWaiting()]))) {
      answered += 1;
      answer = askOn(waiting!, text);
    }
    const second = askOn(next!, text);
    await expect.poll(inFlight).toBe(2);
    process.kill(ledgerWriter, 'SIGCONT');
    expect([(await answer).status, (await second).status]).toEqual([200, 200]);
    expect(records).toBe(answered + 1);
    for (const socket of sockets) socket.destroy();
  } finally {
    await other.stop();
  }
});
