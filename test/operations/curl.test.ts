/** The shell script for other scripts, with the machine's curl and a real server. */
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../support/server.ts';

const SCRIPT = fileURLToPath(new URL('../../tools/integrations/curl/pagegate-allows.sh', import.meta.url));
const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe.runIf(hasCurl)('pagegate-allows.sh', () => {
  let server: TestServer;
  let folder: string;
  let header: string;
  beforeAll(async () => {
    server = await startTestServer({
      entries: [
        {
          domain: 'shop.example.com',
          page_types: { login: 'https://shop.example.com/members', pricing: 'https://shop.example.com/prices' },
        },
      ],
    });
    folder = mkdtempSync(join(tmpdir(), 'pagegate-curl-'));
    header = join(folder, 'key.header');
    writeFileSync(header, `X-API-Key: ${server.keys['pro']}\n`, { mode: 0o600 });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  // The server runs in this process, so the script must not block it.
  const allows = (args: readonly string[], env: Record<string, string> = {}): Promise<boolean> =>
    new Promise((resolve) => {
      const environment = { PATH: process.env['PATH'], PAGEGATE_SERVER: server.url, PAGEGATE_HEADER: header, ...env };
      execFile(SCRIPT, [...args], { env: environment }, (error) => resolve(error === null));
    });

  test.each([
    ['a read of a classified site', ['https://shop.example.com/news?a=1&b=2'], true],
    ['a write', ['https://shop.example.com/news', 'POST'], false],
    ['a site that is not classified', ['https://unknown.example.org/'], false],
    ['no URL', [], false],
    ['an empty URL', [''], false],
    ['a URL that no parser accepts', ['https://'], false],
  ])('%s', async (_name, args, expected) => {
    // Two seconds without an answer give no verdict. On a busy machine the test tries again.
    if (expected) await expect.poll(() => allows(args)).toBe(true);
    else expect(await allows(args)).toBe(false);
  });

  test('a wrong key, a missing key file and a missing server allow nothing', async () => {
    const good = ['https://shop.example.com/news'];
    const wrong = join(folder, 'wrong.header');
    writeFileSync(wrong, 'X-API-Key: pg_wrong\n');
    expect(await allows(good, { PAGEGATE_HEADER: wrong })).toBe(false);
    expect(await allows(good, { PAGEGATE_HEADER: join(folder, 'none') })).toBe(false);
    const environment = { PATH: process.env['PATH'], PAGEGATE_HEADER: 'X-API-Key: pg_1234' };
    const { stderr } = spawnSync(SCRIPT, good, { env: environment, encoding: 'utf8' });
    expect(stderr).toMatch(/the file that PAGEGATE_HEADER names .* cannot be read; it has the line X-API-Key: pg_…\n$/);
    expect(stderr).not.toContain('1234');
    expect(await allows(good, { PAGEGATE_SERVER: 'http://127.0.0.1:1' })).toBe(false);
    await expect.poll(() => allows(good)).toBe(true);
  });

  test('a status other than 200 allows nothing, whatever the body contains', async () => {
    let status = 200;
    const other = createServer((_request, response) => {
      response.writeHead(status, { location: '/' }).end('{"verdict":"allow","note":"\\n200"}');
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const env = { PAGEGATE_SERVER: `http://127.0.0.1:${(other.address() as AddressInfo).port}` };
    try {
      await expect.poll(() => allows(['https://shop.example.com/news'], env)).toBe(true);
      for (status of [201, 206, 302, 307, 403, 503])
        expect(await allows(['https://shop.example.com/news'], env), `${status}`).toBe(false);
    } finally {
      other.close();
    }
  });

  test('no proxy of the environment or of ~/.curlrc gets the key or decides', async () => {
    let asked = 0;
    const proxy = createServer((_request, response) => {
      asked += 1;
      response.end('{"verdict":"allow"}');
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      for (const name of ['http_proxy', 'https_proxy', 'all_proxy', 'ALL_PROXY']) {
        expect(await allows(['https://unknown.example.org/'], { [name]: address })).toBe(false);
        await expect.poll(() => allows(['https://shop.example.com/news'], { [name]: address })).toBe(true);
      }
      writeFileSync(join(folder, '.curlrc'), `proxy = ${address}\n`);
      for (const name of ['HOME', 'CURL_HOME', 'XDG_CONFIG_HOME']) {
        expect(await allows(['https://unknown.example.org/'], { [name]: folder })).toBe(false);
      }
      expect(asked).toBe(0);
    } finally {
      proxy.close();
    }
  });
});
