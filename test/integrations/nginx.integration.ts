/** The auth_request adapter and the shipped nginx configuration, with Debian's nginx on loopback. */
import { createConnection } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { get, speak } from './network/client.ts';
import { startNginx } from './proxies.ts';
import { createJudge, createWorld, type Judge, put, stop, through, verdict, type World } from './world.ts';

let world: World;
let judge: Judge;
let gateway: number;
let adapter: number;

beforeAll(async () => {
  world = await createWorld();
  judge = await createJudge((url, method) => {
    if (URL.parse(url)?.hostname === 'allowed.example')
      return verdict(method === 'GET' ? 'allow' : 'deny', 'unclassified_write');
    if (url.startsWith('http://flagged.example/')) return verdict('flag');
    if (url.startsWith('http://broken.example/')) return { status: 503, body: '{"error":"no_index","message":"x"}' };
    if (url.startsWith('http://slow.example/')) return 'silence';
    return verdict('deny', 'login');
  });
  put(world, 'api.key', 'pg_test\n', 0o600);
  const names = ['allowed', 'denied', 'flagged', 'broken', 'slow'].map((name) => `${name}.example`);
  ({ gateway, adapter } = await startNginx(world, `http://127.0.0.1:${judge.port}`, names));
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
  ['deny', 'GET', 'denied.example', 'deny', /^Refused by pagegate: deny \(rules\/login\)\. note of login\n/],
  ['deny by method', 'POST', 'allowed.example', 'deny', /\nThis is decided: a retry will not help\.\n$/],
  ['flag', 'GET', 'flagged.example', 'flag', /\nA person has to approve it first\.\n$/],
  ['503', 'GET', 'broken.example', 'error', /\nThere is no verdict now, .*: try again later\.\n$/],
  ['no answer in time', 'GET', 'slow.example', 'error', /\nThere is no verdict now, .*: try again later\.\n$/],
])('%s does not reach the origin, and the agent gets the reason', async (_name, method, host, expected, text) => {
  const reply = await ask(method, host);
  expect(reply.status).toBe(403);
  expect(reply.headers['x-pagegate-verdict']).toBe(expected);
  expect(reply.body).toMatch(text);
  expect(judge.asked).toEqual([`${method} http://${host}/`]);
  expect(world.reached).toEqual([]);
});

test('a Host header that contradicts the request line has no effect', async () => {
  const reply = await through(gateway, 'GET', 'http://denied.example/x', { host: 'allowed.example' });
  expect(reply.status).toBe(403);
  expect(judge.asked).toEqual(['GET http://denied.example/x']);
  expect(world.reached).toEqual([]);
});

test.each([
  ['bytes beyond ASCII in the path', '/an-ö-page', 'allowed.example'],
  ['bytes beyond ASCII in the host', '/', 'allowed.ex\u00adample'],
  ['a user name', '/', 'allowed.example@denied.example'],
])('%s: refused without a lookup, because servers parse it in different ways', async (_name, path, host) => {
  expect(await speak(gateway, get(path, host))).toMatch(/^HTTP\/1\.1 403 [\s\S]*deny \(guard\/request_target\)/);
  expect(judge.asked).toEqual([]);
  expect(world.reached).toEqual([]);
});

test('the site gets the host of the judged URL, whatever the Host header contains', async () => {
  expect(await speak(gateway, get('/x', 'allowed.example?denied'))).toMatch(/^HTTP\/1\.1 200 /);
  expect(judge.asked).toEqual(['GET http://allowed.example?denied/x']);
  expect(world.reached).toEqual(['GET allowed.example /?denied/x']);
});

test('an agent cannot send its own description of the request, nor reach the adapter', async () => {
  const headers = { host: 'denied.example', 'x-original-url': 'http://allowed.example/', 'x-original-method': 'GET' };
  expect((await through(gateway, 'GET', '/', headers)).status).toBe(403);
  expect(judge.asked).toEqual(['GET http://denied.example/']);
  expect((await through(gateway, 'GET', '/pagegate-auth', { host: 'denied.example' })).status).toBe(404);
  expect(world.reached).toEqual([]);
});

test('the adapter denies a missing or repeated description', async () => {
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

test('a redirect is passed to the agent, whose next request is judged like any other', async () => {
  const path = '/allowed-then-denied?to=http://denied.example/';
  expect((await ask('GET', 'allowed.example', path)).status).toBe(200);
  expect((await through(gateway, 'GET', 'http://denied.example/', { host: 'denied.example' })).status).toBe(403);
  expect(world.reached).toEqual([`GET allowed.example ${path}`]);
});

test('without pagegate nothing passes, and with it again everything works as before', async () => {
  const { port } = judge;
  await judge.close();
  const reply = await ask('GET', 'allowed.example');
  expect(reply.status).toBe(403);
  expect(reply.body).toMatch(/^Refused by pagegate: error \([\s\S]*try again later\.\n$/);
  expect(reply.body).not.toContain('a retry will not help');
  expect(world.reached).toEqual([]);
  judge = await createJudge(() => verdict('allow'), port);
  expect((await ask('GET', 'allowed.example')).status).toBe(200);
});

test('without the adapter nothing passes, and the response does not say that a retry is useless', async () => {
  const lonely = await createWorld();
  try {
    put(lonely, 'api.key', 'pg_test\n', 0o600);
    const ports = await startNginx(lonely, `http://127.0.0.1:${judge.port}`, ['allowed.example']);
    await stop(lonely.children[0]!);
    const reply = await through(ports.gateway, 'GET', '/', { host: 'allowed.example' });
    expect(reply.status).toBe(403);
    expect(reply.body).toBe(
      'Refused by pagegate: error (gateway/no_answer).\nThere is no verdict now, and nothing is fetched without one: try again later.\n',
    );
    expect(lonely.reached).toEqual([]);
  } finally {
    await lonely.close();
  }
});
