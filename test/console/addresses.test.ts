/** The addresses of the console: on loopback, behind a proxy, and beyond. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { consoleUrl } from '../../src/console/users.ts';
import { createCertificate } from '../../tools/certificate.ts';
import { startTestConsole } from '../support/console.ts';
import { putPem } from '../support/put-pem.ts';

it('on loopback it uses plain HTTP, as a proxy or a tunnel expects, even if lookups use TLS', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'pagegate-console-'));
  const tls = { certificate_file: join(dir, 'cert.pem'), key_file: join(dir, 'key.pem') };
  const { certificate, key } = createCertificate('server.example');
  putPem(tls.certificate_file, certificate);
  putPem(tls.key_file, key);
  const console = await startTestConsole({ accounts: {}, config: { tls } });
  try {
    expect(console.server.url).toMatch(/^https:/);
    expect(console.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    expect((await (await console.signIn('viewer')).get('')).status).toBe(200);
  } finally {
    await console.stop();
    rmSync(dir, { recursive: true });
  }
});

const TLS = { certificate_file: 'c', key_file: 'k' };

it.each([
  [{}, {}, 'http://127.0.0.1:8081/'],
  [{ host: '::1', base_path: '/gate/' }, TLS, 'http://[::1]:8081/gate/'],
  [{ names: ['gate.example', 'b.example'], base_path: '/gate/' }, {}, 'https://gate.example/gate/'],
  [{ names: ['gate.example'] }, TLS, 'https://gate.example/'],
  [{ host: '192.0.2.1' }, TLS, 'https://192.0.2.1:8081/'],
  [{ host: '0.0.0.0' }, { ...TLS, names: ['server.example'] }, 'https://server.example:8081/'],
  [{ host: '0.0.0.0', names: ['gate.example'] }, { ...TLS, names: ['server.example'] }, 'https://gate.example:8081/'],
])('with console %j and tls %j links have its address', (settings, tls, address) => {
  const config = loadConfig({ env: {}, flags: { console: settings, tls } });
  expect(consoleUrl(config, config.console.port)).toBe(address);
});
