/** The MCP server with the real client, over both transports. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createGuardedFetch, GuardedAgent } from '../../src/guard/fetch.ts';
import type { Decision } from '../../src/guard/refusal.ts';
import { createHttpServer } from '../../tools/integrations/mcp/http-server.ts';
import { askPerson, createMcpServer } from '../../tools/integrations/mcp/server.ts';
import {
  closeLater,
  createGuard,
  createJudge,
  createSite,
  type Judge,
  KEY,
  names,
  pathsOf,
  type Site,
} from './support.ts';

const MAIN = fileURLToPath(new URL('../../tools/integrations/mcp/main.ts', import.meta.url));
let folder: string;
let keyFile: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-mcp-'));
  keyFile = join(folder, 'agent.key');
  writeFileSync(keyFile, KEY, { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true }));

let judge: Judge;
beforeEach(async () => {
  judge = await createJudge((url) => /^\/(deny|flag)/.exec(new URL(url).pathname)?.[1] ?? 'allow');
});

interface ToolAnswer {
  readonly isError?: boolean;
  readonly content: readonly { readonly text: string }[];
  readonly structuredContent?: Record<string, unknown>;
}
const call = async (client: Client, name: string, args: Record<string, unknown>): Promise<ToolAnswer> =>
  (await client.callTool({ name, arguments: args })) as unknown as ToolAnswer;

/** No server listens there. */
const AWAY = 'http://127.0.0.1:1';
/** A reachable server gets more time, because the machine may be busy. An unreachable one is retried until the timeout. */
const argsFor = (server: string): string[] => {
  const flags = ['--timeout-ms', server === AWAY ? '500' : '10000'];
  return ['--server', server, '--key-file', keyFile, ...flags];
};

async function connect(transport: object, capabilities = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities });
  await client.connect(transport as Transport);
  closeLater(() => client.close());
  return client;
}

const overStdio = (server: string, more: readonly string[] = []): Promise<Client> =>
  connect(new StdioClientTransport({ command: process.execPath, args: [MAIN, ...argsFor(server), ...more] }));

async function listen(server: string): Promise<{ url: URL; child: ChildProcess }> {
  const child = spawn(process.execPath, [MAIN, ...argsFor(server), '--listen', '127.0.0.1:0']);
  closeLater(async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });
  let text = '';
  const url = await new Promise<string>((resolve) => {
    child.stderr.on('data', (chunk) => {
      text += chunk;
      const found = /listens on (\S+)\n/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  return { url: new URL(url), child };
}
const overHttp = async (server: string): Promise<Client> =>
  connect(new StreamableHTTPClientTransport((await listen(server)).url));

describe.each([
  ['stdio', overStdio],
  ['HTTP', overHttp],
])('over %s', (_name, open) => {
  test('both tools are listed as read-only, with the schema of their output', async () => {
    const client = await open(judge.url);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['check_url', 'fetch_page']);
    for (const tool of tools) {
      expect(tool.annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false });
      expect(tool.outputSchema?.type).toBe('object');
      expect(tool.description?.length).toBeGreaterThan(50);
    }
    expect(client.getServerVersion()).toMatchObject({ name: 'pagegate' });
  });

  test('check_url returns the verdict for the URL and the method', async () => {
    const client = await open(judge.url);
    const allowed = await call(client, 'check_url', { url: 'https://a.example/x?y=1', method: 'POST' });
    expect(allowed.structuredContent).toEqual({
      verdict: 'allow',
      allowed: true,
      layer: 'rules',
      id: 'allow_id',
      note: 'Note of allow.',
      domain: 'a.example',
      found: true,
    });
    const denied = await call(client, 'check_url', { url: 'https://a.example/deny' });
    expect(denied.structuredContent).toMatchObject({ verdict: 'deny', allowed: false, id: 'deny_id' });
    expect(denied.content[0]?.text).toContain('pagegate refused GET https://a.example: deny (rules/deny_id)');
    const flagged = await call(client, 'check_url', { url: 'https://a.example/flag' });
    expect(flagged.structuredContent).toMatchObject({ verdict: 'flag', allowed: false });
    expect(judge.asked).toEqual([
      'POST https://a.example/x?y=1',
      'GET https://a.example/deny',
      'GET https://a.example/flag',
    ]);
  });

  test('fetch_page refuses what is denied, flagged or internal, with the reason', async () => {
    const client = await open(judge.url);
    for (const [url, reason] of [
      ['https://a.example/deny', 'deny (rules/deny_id)'],
      ['https://a.example/flag', 'A person has to approve it first.'],
      ['http://localhost/', 'guard/inside_address'],
      ['http://127.0.0.1/', 'guard/inside_address'],
    ]) {
      const answer = await call(client, 'fetch_page', { url });
      expect(answer.isError, url).toBe(true);
      expect(answer.content[0]?.text).toContain(reason);
    }
  });

  test('invalid arguments are errors, and no lookup is made', async () => {
    const client = await open(judge.url);
    for (const args of [
      {},
      { url: 1 },
      { url: '' },
      { url: 'x'.repeat(9_000) },
      { url: 'https://a.example', method: 5 },
    ]) {
      expect((await call(client, 'check_url', args)).isError).toBe(true);
      expect((await call(client, 'fetch_page', { ...args, max_length: 0 })).isError).toBe(true);
    }
    expect(judge.asked).toEqual([]);
  });

  test('without pagegate everything is refused', async () => {
    const client = await open(AWAY);
    const checked = await call(client, 'check_url', { url: 'https://a.example/' });
    expect(checked.structuredContent).toMatchObject({ verdict: 'error', allowed: false, id: 'unreachable' });
    expect((await call(client, 'fetch_page', { url: 'https://a.example/' })).isError).toBe(true);
  });
});

describe('fetch_page', () => {
  async function createScene(
    answer: Parameters<typeof createSite>[0],
  ): Promise<{ client: Client; site: Site; at: (path: string) => string }> {
    const site = await createSite(answer);
    const { guard } = createGuard(judge.url, { exceptions: { 'a.example': '127.0.0.1' } });
    const agent = new GuardedAgent(guard, { connect: { lookup: names({ 'a.example': ['127.0.0.1'] }) } });
    closeLater(() => agent.destroy());
    const server = createMcpServer({
      guard,
      guardedFetch: createGuardedFetch(guard, agent),
      version: '0',
      deadlineMs: 600_000,
    });
    const [own, other] = InMemoryTransport.createLinkedPair();
    await server.connect(own);
    return { client: await connect(other), site, at: (path) => `http://a.example:${site.port}${path}` };
  }

  test('returns the text of an allowed page, decoded from its own charset', async () => {
    const { client, at, site } = await createScene((_request, response) => {
      response.writeHead(200, { 'content-type': 'Text/HTML; Charset=ISO-8859-1' });
      response.end(Buffer.from('<p>caf\xe9</p>', 'latin1'));
    });
    expect(await call(client, 'fetch_page', { url: at('/news#x') })).toMatchObject({
      content: [{ text: '<p>café</p>' }],
      structuredContent: { url: at('/news'), status: 200, text: '<p>café</p>', truncated: false },
    });
    expect(site.headers[0]?.['user-agent']).toBe('pagegate-mcp/0');
  });

  test('follows a redirect to an allowed page, but not to a refused one', async () => {
    const { client, at, site } = await createScene((request, response) => {
      if (request.url === '/to-news') response.writeHead(302, { location: '/news' }).end();
      else if (request.url === '/to-deny') response.writeHead(302, { location: '/deny' }).end();
      else response.writeHead(200, { 'content-type': 'text/plain' }).end(request.url);
    });
    expect((await call(client, 'fetch_page', { url: at('/to-news') })).structuredContent).toMatchObject({
      url: at('/news'),
    });
    expect(await call(client, 'fetch_page', { url: at('/to-deny') })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('deny (rules/deny_id)') }],
    });
    expect(pathsOf(site)).toEqual(['/to-news', '/news', '/to-deny']);
  });

  test.each(['data:text/html,<p>made up', 'DATA:text/plain,x', 'file:///etc/passwd', 'about:blank'])(
    'refuses %s, which is not a page of the web',
    async (url) => {
      const { client } = await createScene((_request, response) => response.end());
      const { isError, content } = await call(client, 'fetch_page', { url });
      expect(isError).toBe(true);
      expect(content[0]?.text).toMatch(
        /^pagegate refused GET this address: deny \(guard\/request_target\)\. Only http/,
      );
      const checked = await call(client, 'check_url', { url });
      expect(checked.structuredContent).toMatchObject({ verdict: 'deny', allowed: false, id: 'request_target' });
      expect(judge.asked).toEqual([]);
    },
  );

  test('truncates long pages, and accepts no images', async () => {
    const { client, at } = await createScene((request, response) => {
      if (request.url === '/picture') response.writeHead(200, { 'content-type': 'image/png' }).end('x');
      else response.writeHead(200, { 'content-type': 'text/plain' }).end('x'.repeat(6 << 20));
    });
    const cut = await call(client, 'fetch_page', { url: at('/long'), max_length: 10 });
    expect(cut.structuredContent).toMatchObject({ text: 'x'.repeat(10), truncated: true });
    const long = await call(client, 'fetch_page', { url: at('/long') });
    expect(long.structuredContent?.['truncated']).toBe(true);
    expect(String(long.structuredContent?.['text'])).toHaveLength(200_000);
    expect(await call(client, 'fetch_page', { url: at('/picture') })).toMatchObject({ isError: true });
  });

  test('splits no character when it truncates', async () => {
    const { client, at } = await createScene((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).end('\u{1f600}'.repeat(3));
    });
    const lengths = [1, 2, 3, 6];
    const cut = await Promise.all(
      lengths.map((max_length) => call(client, 'fetch_page', { url: at('/'), max_length })),
    );
    const texts = cut.map(({ structuredContent }) => structuredContent?.['text']);
    expect(texts).toEqual([0, 1, 1, 3].map((count) => '\u{1f600}'.repeat(count)));
    expect(cut.map(({ structuredContent }) => structuredContent?.['truncated'])).toEqual([true, true, true, false]);
  });

  test('ends its request when it is canceled', async () => {
    const ended = Promise.withResolvers<void>();
    const { client, at, site } = await createScene((_request, response) => {
      response.once('close', ended.resolve).writeHead(200, { 'content-type': 'text/plain' }).write('x');
    });
    const cancelled = new AbortController();
    const called = client.callTool({ name: 'fetch_page', arguments: { url: at('/') } }, undefined, cancelled);
    const outcome = expect(called).rejects.toThrow();
    await vi.waitFor(() => expect(site.reached).toHaveLength(1));
    cancelled.abort();
    await Promise.all([outcome, ended.promise]);
  });

  test('reports the failure of a site as an error with its reason', async () => {
    const { client, at } = await createScene((request, response) => {
      if (request.url === '/gone') response.writeHead(404, { 'content-type': 'text/plain' }).end('gone');
      else response.destroy();
    });
    expect((await call(client, 'fetch_page', { url: at('/gone') })).structuredContent).toMatchObject({ status: 404 });
    const failed = await call(client, 'fetch_page', { url: at('/') });
    expect(failed).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('could not be fetched') }],
    });
  });
});

describe('a person', () => {
  test.each([
    ['who approves', { action: 'accept', content: { fetch: true } }, true],
    ['who accepts without approving', { action: 'accept', content: { fetch: false } }, false],
    ['who declines', { action: 'decline' }, false],
    ['who cancels', { action: 'cancel' }, false],
  ])('%s is asked about a flagged page, with --ask-person', async (_who, answer, approved) => {
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
    const questions: string[] = [];
    client.setRequestHandler(ElicitRequestSchema, (question) => {
      questions.push(question.params.message);
      return answer as { action: 'accept' };
    });
    const args = [MAIN, ...argsFor(judge.url), '--ask-person'];
    await client.connect(new StdioClientTransport({ command: process.execPath, args }));
    closeLater(() => client.close());
    const { content } = await call(client, 'fetch_page', { url: 'http://localhost/flag' });
    expect(questions).toEqual([expect.stringContaining('http://localhost/flag')]);
    // The approved page still has an internal address, which no person can approve.
    expect(content[0]?.text).toContain(approved ? 'guard/inside_address' : 'flag (rules/flag_id)');
  });

  test.each([
    ['who answers in the last moment', 89_999, true],
    ['who answers later, or never,', 90_000, false],
  ])('%s approves: after %i ms, %s', async (_who, afterMs, approved) => {
    const { guard } = createGuard(judge.url);
    const options = { guard, guardedFetch: createGuardedFetch(guard), version: '0', deadlineMs: 120_000 };
    const server = createMcpServer(options);
    const [own, other] = InMemoryTransport.createLinkedPair();
    await server.connect(own);
    const client = await connect(other, { elicitation: {} });
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<{ action: 'accept'; content: { fetch: boolean } }>();
    client.setRequestHandler(ElicitRequestSchema, () => {
      asked.resolve();
      return answer.promise;
    });
    const decision = await guard.check('http://localhost/flag');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    closeLater(() => void vi.useRealTimers());
    const outcome = askPerson(server, decision, 90_000);
    await asked.promise;
    vi.advanceTimersByTime(afterMs);
    answer.resolve({ action: 'accept', content: { fetch: true } });
    expect(await outcome).toBe(approved);
  });

  test.each(['/flag', '/302'])('is no longer asked if the call for %s is canceled', async (path) => {
    const site = await createSite((_request, response) => void response.writeHead(302, { location: '/flag' }).end());
    const approve: (decision: Decision) => Promise<boolean> = (decision) => askPerson(server, decision, 90_000);
    const { guard, seen } = createGuard(judge.url, { exceptions: { 'a.example': '127.0.0.1' }, approve });
    const agent = new GuardedAgent(guard, { connect: { lookup: names({ 'a.example': ['127.0.0.1'] }) } });
    closeLater(() => agent.destroy());
    const guardedFetch = createGuardedFetch(guard, agent);
    const server = createMcpServer({ guard, guardedFetch, version: '0', deadlineMs: 120_000 });
    const [own, other] = InMemoryTransport.createLinkedPair();
    await server.connect(own);
    const client = await connect(other, { elicitation: {} });
    const asked = Promise.withResolvers<void>();
    const withdrawn = Promise.withResolvers<void>();
    client.setRequestHandler(ElicitRequestSchema, (_question, { signal }) => {
      signal.addEventListener('abort', () => withdrawn.resolve());
      asked.resolve();
      return new Promise(() => {});
    });
    const caller = new AbortController();
    const url = `http://a.example:${site.port}${path}`;
    const called = client.callTool({ name: 'fetch_page', arguments: { url } }, undefined, { signal: caller.signal });
    await asked.promise;
    caller.abort(new Error('enough'));
    await expect(called).rejects.toThrow('enough');
    await withdrawn.promise;
    await expect.poll(() => seen.at(-1)).toMatchObject({ verdict: 'flag', approved: false });
    expect(site.reached).toHaveLength(path === '/flag' ? 0 : 1);
  });

  test('who cannot be asked approves nothing', async () => {
    const client = await overStdio(judge.url, ['--ask-person']);
    expect((await call(client, 'fetch_page', { url: 'http://localhost/flag' })).content[0]?.text).toContain('flag_id');
  });
});

test('over stdio a message that is too long, or invalid, is reported to the host in one line', async () => {
  const child = spawn(process.execPath, [MAIN, ...argsFor(judge.url)]);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  child.stdin.on('error', () => {});
  child.stdin.write('nothing\n');
  await vi.waitFor(() => expect(stderr).toMatch(/^pagegate-mcp: .*nothing.*\n$/), 20_000);
  child.stdin.write('x'.repeat(11 << 20));
  await ended;
  expect(stderr).toMatch(/\npagegate-mcp: .*maximum size.*\n$/);
});

describe('the HTTP server', () => {
  test('keeps one connection to a site, however many calls it serves', async () => {
    const site = await createSite((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).end('x');
    });
    const { guard } = createGuard(judge.url, { exceptions: { 'a.example': '127.0.0.1' } });
    const opened = vi.fn(names({ 'a.example': ['127.0.0.1'] }));
    const guardedFetch = createGuardedFetch(guard, new GuardedAgent(guard, { connect: { lookup: opened } }));
    const server = createHttpServer({ guard, guardedFetch, version: '0', deadlineMs: 30_000 });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closeLater(() => {
      server.close();
      server.closeAllConnections();
    });
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
    const client = await connect(new StreamableHTTPClientTransport(url));
    for (let i = 0; i < 3; i++) await call(client, 'fetch_page', { url: `http://a.example:${site.port}/${i}` });
    expect(site.reached).toHaveLength(3);
    expect(opened).toHaveBeenCalledTimes(1);
  });

  const send = (url: URL, method: string, path: string, headers: Record<string, string>): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request({ host: url.hostname, port: url.port, method, path, headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.on('error', reject).end(method === 'POST' ? '{"jsonrpc":"2.0","id":1,"method":"ping"}' : undefined);
    });

  test('does not serve a page in a browser, another host name or another path', async () => {
    const { url } = await listen(judge.url);
    const types = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    expect(await send(url, 'POST', '/mcp', types)).toBe(200);
    expect(await send(url, 'POST', '/mcp', { ...types, origin: 'https://evil.example' })).toBe(403);
    expect(await send(url, 'POST', '/mcp', { ...types, host: `evil.example:${url.port}` })).toBe(403);
    expect(await send(url, 'POST', '/', types)).toBe(404);
    expect(await send(url, 'GET', '/mcp', types)).toBe(405);
  });

  test('reports in one line that another program uses the port, and what to do', () => {
    const place = `127.0.0.1:${judge.port}`;
    const args = [MAIN, ...argsFor(AWAY), '--listen', place];
    expect(spawnSync(process.execPath, args, { encoding: 'utf8' })).toMatchObject({
      status: 2,
      stderr: `pagegate-mcp: cannot listen on ${place}: another program listens there; end it, or name another port with --listen\n`,
    });
  });

  test('listens on loopback only', async () => {
    const child = spawn(process.execPath, [MAIN, ...argsFor(judge.url), '--listen', '0.0.0.0:0']);
    let text = '';
    child.stderr.on('data', (chunk) => {
      text += chunk;
    });
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(2);
    expect(text).toContain('only loopback is allowed');
  });
});

test('prints its options on request, and ends with one line on a wrong one', () => {
  const start = (...words: string[]) => spawnSync(process.execPath, [MAIN, ...words], { encoding: 'utf8' });
  const help = start('--help');
  expect([help.status, help.stderr]).toEqual([0, '']);
  expect(help.stdout).toMatch(
    /^Usage: pagegate-mcp --key-file FILE .*\n.*--ask-person[\s\S]*Example:\n {2}\$ pagegate-mcp /,
  );
  expect(start('--bogus')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: "pagegate-mcp: Unknown option '--bogus'. --help tells what there is.\n",
  });
});
