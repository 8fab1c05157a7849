/** How the Squid and nginx helpers handle lines and answers. The real proxies are in test/integrations. */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askerOf, isAmbiguous } from '../../tools/integrations/ask-guard.ts';
import { answerLine, parseLine, urlsToJudge } from '../../tools/integrations/squid/pagegate-acl.ts';

const allowOf = (url: string, note = 'n'): string =>
  JSON.stringify({ domain: new URL(url).hostname, verdict: 'allow', matched: { layer: 'rules', id: 'news', note } });

describe('the Squid helper', () => {
  test.each([
    ['7 http://a.example/x%20y?z=%41 GET', { channel: '7', url: 'http://a.example/x%20y?z=%41', method: 'GET' }],
    ['0 http://a.example/ POST -', { channel: '0', url: 'http://a.example/', method: 'POST' }],
    ['http://a.example/ GET', undefined],
    ['7 http://a.example/', undefined],
    ['7 http://a.example/ GET extra', undefined],
    ['7  GET', undefined],
    ['', undefined],
  ])('reads %j', (line, expected) => {
    expect(parseLine(line)).toEqual(expected);
  });

  test('judges a tunnel by its host alone, and only if the operator allows it', () => {
    const question = { channel: '1', url: 'a.example:443', method: 'CONNECT' };
    expect(urlsToJudge(question, 'deny')).toEqual([]);
    expect(urlsToJudge(question, 'judge-host')).toEqual(['https://a.example:443/']);
  });

  test('judges both readings of a number sign, because Squid does not distinguish it from an escaped one', () => {
    const question = { channel: '1', url: 'http://a.example/x?a=%23/../y', method: 'GET' };
    expect(urlsToJudge(question, 'deny')).toEqual(['http://a.example/x?a=%23/../y', 'http://a.example/x?a=']);
  });

  test('writes one line, whatever the note contains', () => {
    const note = 'a "quoted"\nline \\ ü\r\n1 OK';
    const line = answerLine('5', { allowed: false, verdict: 'deny', reason: 'rules/login', note });
    expect(line.split('\n')).toHaveLength(2);
    expect(line).toMatch(/^5 ERR pagegate=deny message="deny \(rules\/login\): [^"\n]*" log="rules\/login"\n$/);
  });
});

describe('a helper and a server', () => {
  let folder: string;
  let keyFile: string;
  let server: Server;
  let address: string;
  const seen: (string | undefined)[] = [];
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pagegate-helper-'));
    keyFile = join(folder, 'key');
    writeFileSync(keyFile, 'pg_test\n', { mode: 0o600 });
    server = createServer((request, response) => {
      seen.push(`${request.url} ${String(request.headers['x-api-key'])}`);
      const url = new URL(request.url!, 'http://x').searchParams.get('url')!;
      if (url.includes('cut')) {
        response.writeHead(200, { 'content-length': 1_000 }).write(allowOf(url));
        request.socket.destroySoon();
      } else if (url.includes('large')) response.end(allowOf(url, 'x'.repeat(1 << 21)));
      else if (url.includes('moved')) response.writeHead(302, { location: '/api/check?url=http://ok/' }).end();
      else response.end(allowOf(url));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function expectRefusedUnasked(url: string, reason: string): Promise<void> {
    const asker = askerOf({ server: address, 'key-file': keyFile, 'timeout-ms': '60000' });
    const before = seen.length;
    expect(await asker.ask(url, 'GET')).toMatchObject({ allowed: false, verdict: 'deny', reason });
    expect(seen).toHaveLength(before);
    asker.close();
  }

  test('the URL is percent-encoded once, and the key goes into the header', async () => {
    const asker = askerOf({ server: address, 'key-file': keyFile, 'timeout-ms': '60000' });
    expect(await asker.ask('http://a.example/?x=1&y=%2F+', 'POST')).toMatchObject({ allowed: true });
    expect(seen.at(-1)).toBe('/api/check?url=http%3A%2F%2Fa.example%2F%3Fx%3D1%26y%3D%252F%2B&method=POST pg_test');
    asker.close();
  });

  test.each([
    ...[
      '/a/../b',
      '/a/./b',
      '/..',
      '/a/.',
      '/a/%2e%2E/b',
      '/a/.%2e?x',
      '/a/..%2fb',
      '/a%5c..%5cb',
      '/a/..;/b',
      '/a/..;x=1/b',
    ],
    ...['/a\\b', '/a#b', '/a?b#c', '/#'],
  ])('%s, which sites parse in different ways, is refused without a lookup', async (path) => {
    await expectRefusedUnasked(`http://a.example${path}`, 'guard/ambiguous_path');
  });

  test.each([
    ...['http://a.example/\xffx', 'http://a.example/an-\u00f6', 'http://a.ex\u00adample/', 'http://a.example/x y'],
    ...[
      'http://b@a.example/',
      'http://a%2eexample/',
      'http://a.example\\x',
      'a.example',
      '//a.example/',
      'http:a.example',
    ],
    ...['ftp://a.example/', 'http:///x', 'http://a.example:x/', 'http://a.example/\n'],
  ])('%j, which is not parsed alike everywhere, is refused without a lookup', async (url) => {
    await expectRefusedUnasked(url, 'guard/request_target');
  });

  test.each(['http://A.example', 'https://a_b.example:8443/', 'HTTP://[2606:2800:21f::1]/x?y', 'http://a.example?b'])(
    '%s is unambiguous, and looked up',
    async (url) => {
      const asker = askerOf({ server: address, 'key-file': keyFile, 'timeout-ms': '60000' });
      const before = seen.length;
      await asker.ask(url, 'GET');
      expect(seen).toHaveLength(before + 1);
      asker.close();
    },
  );

  test.each(['/.well-known/x', '/..a/b..', '/a...b', '/a/.../b', '/a?b=/../c', '/a?b=\\', '/a;b=..', '/', '', '/%2ea'])(
    '%s is parsed in only one way',
    (path) => {
      expect(isAmbiguous(`http://a.example${path}`)).toBe(false);
    },
  );

  test.each(['cut', 'large', 'moved'])('an answer that is %s allows nothing', async (kind) => {
    const asker = askerOf({ server: address, 'key-file': keyFile, 'timeout-ms': '60000' });
    expect(await asker.ask(`http://${kind}/`, 'GET')).toMatchObject({ allowed: false, verdict: 'error' });
    asker.close();
  });

  test.each([
    ['no key file', { 'key-file': undefined }],
    ['a time that is not a number', { 'timeout-ms': 'soon' }],
    ['plain text over a network', { server: 'http://pagegate.example.net' }],
  ])('is not started with %s', (_name, values) => {
    expect(() => askerOf({ server: address, 'key-file': keyFile, 'timeout-ms': '1', ...values })).toThrow();
  });

  test('a key that others can read is refused at the start', () => {
    chmodSync(keyFile, 0o644);
    expect(() => askerOf({ server: address, 'key-file': keyFile, 'timeout-ms': '1' })).toThrow(/others may access/);
    chmodSync(keyFile, 0o600);
  });

  test('a decision that cannot be logged is a refusal, and the helpers keep running', async () => {
    const values = { server: address, 'key-file': keyFile, 'timeout-ms': '60000', 'decision-log': '/dev/full' };
    const asker = askerOf(values);
    for (const path of ['/', '/a/../b', '/']) {
      const refused = { allowed: false, verdict: 'error', reason: 'guard/internal' };
      expect(await asker.ask(`http://allowed.example${path}`, 'GET')).toMatchObject(refused);
    }
    asker.close();
  });

  test('the Squid helper as a process answers each line, uses no proxy, and ends with its input', async () => {
    const helper = fileURLToPath(new URL('../../tools/integrations/squid/pagegate-acl.ts', import.meta.url));
    const child = spawn(
      process.execPath,
      [helper, '--server', address, '--key-file', keyFile, '--timeout-ms', '60000'],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: {
          ...process.env,
          NODE_USE_ENV_PROXY: '1',
          http_proxy: 'http://127.0.0.1:1',
          HTTP_PROXY: 'http://127.0.0.1:1',
        },
      },
    );
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
    });
    child.stdin.end('7 http://allowed.example/ GET -\n9 one-field\n3 a.example:443 CONNECT\n4 http://cut/ GET\n');
    const code = await new Promise((resolve) => child.on('close', resolve));
    const answers = output
      .trim()
      .split('\n')
      .map((line) => line.split(' ').slice(0, 2).join(' '));
    expect({ code, answers: answers.sort() }).toEqual({ code: 0, answers: ['3 ERR', '4 ERR', '7 OK', '9 BH'] });
  });
});

describe.runIf(spawnSync('openssl', ['version']).status === 0)('a server with TLS', () => {
  let folder: string;
  let server: Server;
  let port: number;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pagegate-helper-tls-'));
    const names = ['-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2', '-nodes'];
    const files = ['-keyout', join(folder, 'tls.key'), '-out', join(folder, 'tls.pem')];
    const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', ...names, ...files]);
    expect(made.status).toBe(0);
    writeFileSync(join(folder, 'key'), 'pg_test\n', { mode: 0o600 });
    const pair = { key: readFileSync(join(folder, 'tls.key')), cert: readFileSync(join(folder, 'tls.pem')) };
    server = createTlsServer(pair, (_request, response) => response.end(allowOf('https://a.example/')));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each([
    ['with a certificate that is trusted', '127.0.0.1', true, true],
    ['with a certificate that is not', '127.0.0.1', false, false],
    ['with a certificate for another name', 'localhost', true, false],
  ])('%s', async (_name, host, trusts, allowed) => {
    const caFile = trusts ? join(folder, 'tls.pem') : undefined;
    const asker = askerOf({
      server: `https://${host}:${port}`,
      'key-file': join(folder, 'key'),
      'ca-file': caFile,
      'timeout-ms': '60000',
    });
    expect((await asker.ask('https://a.example/', 'GET')).allowed).toBe(allowed);
    asker.close();
  });
});
