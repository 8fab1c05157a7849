/** The client packages as a user gets them: installed offline into an empty folder, on the oldest supported Node.js and on this one. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { closureOf, NPM_PACKAGES, packNpm } from '../../tools/dist/npm-package.ts';
import { allowBut, closeLater, createJudge, createSite, KEY, pathsOf } from './support.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PINNED_NODE = join(ROOT, 'node_modules/.bin/node');
const HOST_NODE = execFileSync('/bin/sh', ['-c', 'command -v node'], { encoding: 'utf8' }).trim();
const NPM = execFileSync('/bin/sh', ['-c', 'readlink -f "$(command -v npm)"'], { encoding: 'utf8' }).trim();

let folder: string;
const tarballs: Record<string, string> = {};
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-package-'));
  for (const spec of NPM_PACKAGES) tarballs[spec.name] = await packNpm(spec, join(folder, 'out'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const filesIn = (tarball: string): string[] =>
  execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n');

describe.each(NPM_PACKAGES)('$name', (spec) => {
  test('is plain JavaScript with types and without native code, and contains its dependencies', () => {
    const files = filesIn(tarballs[spec.name]!);
    expect(files.filter((file) => /\.(?:node|gyp|so|wasm|sqlite|key)$/.test(file))).toEqual([]);
    expect(files.filter((file) => /(?<!\.d)\.[cm]?ts$|\/examples\//.test(file))).toEqual([]);
    // Types of bundled dependencies are of no use.
    const typed = files.some((file) => /\/node_modules\/.*\.d\.[cm]?ts$/.test(file));
    expect(typed).toBe(spec.exports !== undefined);
    const own = files.filter((file) => file.endsWith('.js') && !file.includes('/node_modules/'));
    expect(own.length).toBeGreaterThan(5);
    for (const file of own) expect(files).toContain(file.replace(/\.js$/, '.d.ts'));
    for (const path of closureOf(spec.bundled)) expect(files).toContain(`package/${path}/package.json`);
    for (const file of ['LICENSE', 'README.md', 'package.json']) expect(files).toContain(`package/${file}`);
  });

  test('has the same bytes each time it is packed', async () => {
    const again = await packNpm(spec, join(folder, 'again'));
    expect(readFileSync(again).equals(readFileSync(tarballs[spec.name]!))).toBe(true);
  });
});

/** Creates an empty folder, and installs packages with an npm on the given Node.js and an empty cache. */
function install(node: string, names: readonly string[]): string {
  const place = mkdtempSync(join(folder, 'install-'));
  const bin = join(place, 'bin');
  mkdirSync(bin);
  symlinkSync(node, join(bin, 'node'));
  const flags = ['--offline', '--no-audit', '--no-fund', '--loglevel=error', '--cache', join(place, 'cache')];
  execFileSync(node, [NPM, 'install', '--prefix', place, ...flags, ...names.map((name) => tarballs[name]!)], {
    cwd: place,
    stdio: 'pipe',
    env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` },
  });
  return place;
}

const guardPlaces = new Map<string, string>();

/** Installs the guard, once for each Node.js. */
function installGuard(node: string): string {
  const place = guardPlaces.get(node) ?? install(node, ['pagegate-guard']);
  guardPlaces.set(node, place);
  return place;
}

const USE = `
import http from 'node:http';
import { createGuardedAgents, createGuardedFetch, Guard, GuardedAgent, RefusedError } from 'pagegate-guard';
import { guardContext, startBrowserProxy } from 'pagegate-guard/playwright';
import { guardBrowser } from 'pagegate-guard/puppeteer';
const [server, key, port] = process.argv.slice(2);
const guard = new Guard({ server, key, exceptions: { 'a.example': '127.0.0.1' } });
const lookup = (name, options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]);
const guardedFetch = createGuardedFetch(guard, new GuardedAgent(guard, { connect: { lookup } }));
const at = (path) => 'http://a.example:' + port + path;
const refused = (error) => (error instanceof RefusedError ? error.id : String(error));
const agents = createGuardedAgents(guard, { lookup });
const get = (path) =>
  new Promise((resolve, reject) => {
    http.get(at(path), { agent: agents.http }, (response) => resolve(response.statusCode)).on('error', reject);
  });
const results = [
  (await guard.check(at('/news'))).verdict,
  await guardedFetch(at('/news')).then((response) => response.text()),
  await guardedFetch(new Request(at('/news'), { method: 'POST', body: 'x' })).then((response) => response.text()),
  await guardedFetch(at('/redirect')).catch(refused),
  await guardedFetch(at('/login')).catch(refused),
  await guardedFetch('http://b.example:' + port + '/').catch(refused),
  await get('/news'),
  await get('/login').catch(refused),
  typeof guardContext,
  typeof startBrowserProxy,
  typeof guardBrowser,
];
console.log(JSON.stringify(results));
process.exit(0);
`;

const USE_TYPES = `
import { Agent } from 'node:https';
import { createGuardedAgents, createGuardedFetch, type Decision, Guard, GuardedAgent, RefusedError } from 'pagegate-guard';
const guard = new Guard({ server: 'https://pagegate.example', keyFile: '/etc/pagegate/agent.key' });
const decision: Decision = await guard.check('https://a.example/', { method: 'POST' });
const verdict: 'allow' | 'deny' | 'flag' | 'error' = decision.verdict;
const guardedFetch: typeof fetch = createGuardedFetch(guard, new GuardedAgent(guard, { connections: 4 }));
const agent: Agent = createGuardedAgents(guard, { maxSockets: 4, ca: 'PEM' }).https;
try {
  const response: Response = await guardedFetch('https://a.example/');
  console.log(verdict, response.status, agent.maxSockets);
} catch (error) {
  if (error instanceof RefusedError) console.log(error.layer, error.id, error.note);
}
// The key has to be a text.
new Guard({ server: 'https://pagegate.example', key: 5 });
`;

describe.each([
  ['the host', HOST_NODE],
  ['this project', PINNED_NODE],
])('installed offline on the Node.js of %s', (_name, node) => {
  let place: string;
  beforeAll(() => {
    place = installGuard(node);
  });

  test('it installs only itself', () => {
    expect(readdirSync(join(place, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'pagegate-guard',
    ]);
  });

  test('it checks, fetches, follows and refuses', async () => {
    const site = await createSite((request, response) => {
      if (request.url === '/redirect') response.writeHead(302, { location: '/login' }).end();
      else response.end(`${request.method} ${request.url}`);
    });
    const judge = await createJudge(allowBut('/login'));
    writeFileSync(join(place, 'use.mjs'), USE);
    const stdout = await new Promise<string>((resolve, reject) =>
      execFile(node, [join(place, 'use.mjs'), judge.url, KEY, String(site.port)], (error, out) =>
        error ? reject(error) : resolve(out),
      ),
    );
    expect(JSON.parse(stdout)).toEqual([
      'allow',
      'GET /news',
      'POST /news',
      'deny_id',
      'deny_id',
      'inside_address',
      200,
      'deny_id',
      'function',
      'function',
      'function',
    ]);
    expect(pathsOf(site)).toEqual(['/news', '/news', '/redirect', '/news']);
  });

  test('CommonJS code can require it', () => {
    const names = `const { Guard } = require('pagegate-guard'); process.stdout.write(typeof Guard)`;
    expect(execFileSync(node, ['-e', names], { cwd: place, encoding: 'utf8', stdio: 'pipe' })).toBe('function');
  });

  test('its hook refuses what it cannot judge', () => {
    const hook = join(place, 'node_modules/.bin/pagegate-hook');
    expect(() => execFileSync(hook, ['--key-file', '/nowhere'], { input: '{}', stdio: 'pipe' })).toThrow(
      expect.objectContaining({ status: 2 }),
    );
  });
});

describe('for a program in TypeScript', () => {
  test('its types are found and correct', () => {
    const place = installGuard(PINNED_NODE);
    writeFileSync(join(place, 'use.mts'), USE_TYPES);
    const options = { module: 'nodenext', target: 'es2022', strict: true, noEmit: true, skipLibCheck: false };
    const typeRoots = [join(ROOT, 'node_modules/@types')];
    const config = { compilerOptions: { ...options, types: ['node'], typeRoots }, files: ['use.mts'] };
    writeFileSync(join(place, 'tsconfig.json'), JSON.stringify(config));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    let output = '';
    try {
      execFileSync(PINNED_NODE, [tsc, '-p', place], { stdio: 'pipe', encoding: 'utf8' });
    } catch (error) {
      output = (error as { stdout: string }).stdout;
    }
    // The one deliberate mistake is reported, which shows that the types are checked.
    expect(output.trim().split('\n')).toEqual([expect.stringMatching(/use\.mts\(16,49\): error TS2322/)]);
  });
});

describe('pagegate-mcp, installed offline', () => {
  test('answers an MCP client', async () => {
    const place = install(HOST_NODE, ['pagegate-mcp']);
    const judge = await createJudge(() => 'deny');
    writeFileSync(join(place, 'agent.key'), KEY, { mode: 0o600 });
    const args = ['--server', judge.url, '--key-file', join(place, 'agent.key')];
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(
      new StdioClientTransport({ command: join(place, 'node_modules/.bin/pagegate-mcp'), args }) as never,
    );
    closeLater(() => client.close());
    const answer = await client.callTool({ name: 'check_url', arguments: { url: 'https://a.example/' } });
    expect(answer.structuredContent).toMatchObject({ verdict: 'deny', allowed: false });
  });
});
