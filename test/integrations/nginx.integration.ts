/** The auth_request adapter and the shipped nginx configuration, with Debian's nginx on loopback. */
import { chmodSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  createJudge,
  createWorld,
  freePort,
  type Judge,
  NODE,
  put,
  TOOLS,
  through,
  untilListening,
  verdict,
  type World,
} from './world.ts';

let world: World;
let judge: Judge;
let gateway: number;
let adapter: number;

function writeConfiguration(): string {
  const shipped = readFileSync(`${TOOLS}nginx/pagegate.conf`, 'utf8');
  const server = shipped
    .replace('127.0.0.1:9191', `127.0.0.1:${adapter}`)
    .replace('127.0.0.1:3129', `127.0.0.1:${gateway}`)
    .replace('/var/log/nginx/pagegate-error.log', `${world.folder}/server.log`)
    // The origin of this test speaks plain HTTP and is found by name without a resolver.
    .replace('https://$host', 'http://$host');
  const names = ['allowed', 'denied', 'flagged', 'broken', 'slow'];
  const upstreams = names.map((name) => `upstream ${name}.example { server 127.0.0.1:${world.originPort}; }`);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${world.folder}/${name};`,
  );
  return put(
    world,
    'nginx.conf',
    `daemon off; pid ${world.folder}/nginx.pid; error_log ${world.folder}/error.log; events {}
     http { ${temporary.join(' ')} ${upstreams.join(' ')} ${server} }`,
  );
}

beforeAll(async () => {
  world = await createWorld();
  [gateway, adapter] = [await freePort(), await freePort()];
  judge = await createJudge((url, method) => {
    if (url.startsWith('http://allowed.example/'))
      return verdict(method === 'GET' ? 'allow' : 'deny', 'unclassified_write');
    if (url.startsWith('http://flagged.example/')) return verdict('flag');
    if (url.startsWith('http://broken.example/')) return { status: 503, body: '{"error":"no_index","message":"x"}' };
    if (url.startsWith('http://slow.example/')) return 'silence';
    return verdict('deny', 'login');
  });
  put(world, 'api.key', 'pg_test\n', 0o600);
  chmodSync(world.folder, 0o755);
  const args = ['--server', `http://127.0.0.1:${judge.port}`, '--key-file', world.keyFile, '--timeout-ms', '1000'];
  world.start(NODE, [`${TOOLS}nginx/pagegate-auth.ts`, ...args, '--listen', `127.0.0.1:${adapter}`]);
  world.start('/usr/sbin/nginx', ['-e', `${world.folder}/start.log`, '-c', writeConfiguration()]);
  await untilListening(adapter);
  await untilListening(gateway);
});
afterAll(async () => {
  await judge.close();
  await world.close();
});
beforeEach(() => {
  world.reached.length = 0;
  judge.asked.length = 0;
});

const ask = (method: string, host: string, path = '/') => through(gateway, method, path, { host });

test('allow passes, and the full URL and method were judged', async () => {
  expect(await ask('GET', 'allowed.example', '/a%20b//c?q=%41&r=%25')).toMatchObject({ status: 200, body: 'origin' });
  expect(judge.asked).toEqual(['GET http://allowed.example/a%20b//c?q=%41&r=%25']);
  expect(world.reached).toEqual(['GET allowed.example /a%20b//c?q=%41&r=%25']);
});

test.each([
  ['deny', 'GET', 'denied.example', 'deny'],
  ['deny by method', 'POST', 'allowed.example', 'deny'],
  ['flag', 'GET', 'flagged.example', 'flag'],
  ['503', 'GET', 'broken.example', 'error'],
  ['no answer in time', 'GET', 'slow.example', 'error'],
])('%s does not reach the origin, and the agent is told why', async (_name, method, host, expected) => {
  const reply = await ask(method, host);
  expect(reply.status).toBe(403);
  expect(reply.headers['x-pagegate-verdict']).toBe(expected);
  expect(judge.asked).toEqual([`${method} http://${host}/`]);
  expect(world.reached).toEqual([]);
});

test('a Host header that contradicts the request line changes nothing', async () => {
  const reply = await through(gateway, 'GET', 'http://denied.example/x', { host: 'allowed.example' });
  expect(reply.status).toBe(403);
  expect(judge.asked).toEqual(['GET http://denied.example/x']);
  expect(world.reached).toEqual([]);
});

test('an agent cannot bring its own description of the request, nor reach the adapter', async () => {
  const headers = { host: 'denied.example', 'x-original-url': 'http://allowed.example/', 'x-original-method': 'GET' };
  expect((await through(gateway, 'GET', '/', headers)).status).toBe(403);
  expect(judge.asked).toEqual(['GET http://denied.example/']);
  expect((await through(gateway, 'GET', '/pagegate-auth', { host: 'denied.example' })).status).toBe(404);
  expect(world.reached).toEqual([]);
});

test('the adapter denies a description that is missing or doubled', async () => {
  expect((await through(adapter, 'GET', '/')).status).toBe(403);
  const raw = await new Promise<string>((resolve) => {
    const socket = createConnection(adapter, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('close', () => resolve(text));
    const twice = 'X-Original-URL: http://denied.example/\r\nX-Original-URL: http://allowed.example/\r\n';
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Original-Method: GET\r\n${twice}\r\n`);
  });
  expect(raw).toMatch(/^HTTP\/1\.1 403 /);
  expect(judge.asked).toEqual([]);
});

test('without pagegate nothing passes, and with it again everything is as before', async () => {
  const { port } = judge;
  await judge.close();
  expect((await ask('GET', 'allowed.example')).status).toBe(403);
  expect(world.reached).toEqual([]);
  judge = await createJudge(() => verdict('allow'), port);
  expect((await ask('GET', 'allowed.example')).status).toBe(200);
});
