/** The Squid helper and the shipped squid.conf, with Debian's Squid on loopback. */

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { OVERRIDES, REWRITES } from '../../src/guard/override-headers.ts';
import { startSquid } from './proxies.ts';
import { createJudge, createWorld, type Judge, put, through, verdict, type World } from './world.ts';

let world: World;
let judge: Judge;
let proxy: number;

beforeAll(async () => {
  world = await createWorld();
  judge = await createJudge((url, method) => {
    if (url.includes('allowed.example')) return verdict(method === 'GET' ? 'allow' : 'deny', 'unclassified_write');
    if (url.includes('flagged.example')) return verdict('flag');
    if (url.includes('broken.example')) return { status: 503, body: '{"error":"no_index","message":"x"}' };
    if (url.includes('slow.example')) return 'silence';
    return verdict('deny', 'login');
  });
  put(world, 'api.key', 'pg_test\n', 0o600);
  const names = ['allowed', 'denied', 'flagged', 'broken', 'slow'].map((name) => [`${name}.example`, '127.0.0.1']);
  proxy = await startSquid(world, `http://127.0.0.1:${judge.port}`, Object.fromEntries(names));
});
afterAll(async () => {
  await judge.close();
  await world.close();
});
beforeEach(() => {
  world.reached.length = 0;
  judge.asked.length = 0;
});

/** Process ids of the helpers that Squid has started for this key file. */
function helpers(): number[] {
  const running = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return running.map(Number).filter((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
      return words.includes(world.keyFile) && words.some((word) => word.endsWith('/pagegate-acl.ts'));
    } catch {
      return false;
    }
  });
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if (await condition().catch(() => false)) return;
    await sleep(100);
  }
  throw new Error('it does not come about');
}

const at = (host: string, path = '/') => `http://${host}:${world.originPort}${path}`;

test('allow passes, and the full URL and method were judged', async () => {
  const reply = await through(proxy, 'GET', at('allowed.example', '/a%20b?q=%41&r=%25'));
  expect(reply).toMatchObject({ status: 200, body: 'origin' });
  expect(judge.asked).toEqual([`GET ${at('allowed.example', '/a%20b?q=%41&r=%25')}`]);
  expect(world.reached).toEqual(['GET allowed.example /a%20b?q=%41&r=%25']);
});

test.each([
  ['deny', 'GET', 'denied.example'],
  ['deny by method', 'POST', 'allowed.example'],
  ['flag', 'GET', 'flagged.example'],
  ['503', 'GET', 'broken.example'],
  ['no answer in time', 'GET', 'slow.example'],
])('%s does not reach the origin', async (_name, method, host) => {
  expect((await through(proxy, method, at(host))).status).toBe(403);
  expect(judge.asked).toEqual([`${method} ${at(host)}`]);
  expect(world.reached).toEqual([]);
});

test('a tunnel is refused without a lookup', async () => {
  expect((await through(proxy, 'CONNECT', 'allowed.example:443')).status).toBe(403);
  expect(judge.asked).toEqual([]);
});

test('headers that could change the request are removed, however they are spelled', async () => {
  const headers = Object.fromEntries(
    [...OVERRIDES, ...REWRITES]
      .flatMap((name) => [name, name.replaceAll('-', '_'), name.replace('-', '_')])
      .map((name) => [name, 'DELETE']),
  );
  const reply = await through(proxy, 'GET', at('allowed.example'), { ...headers, 'x-kept': 'yes' });
  expect(reply.status).toBe(200);
  expect(world.headers.at(-1)).toMatchObject({ 'x-kept': 'yes' });
  expect(Object.values(world.headers.at(-1)!)).not.toContain('DELETE');
});

test('many requests in flight each get their own verdict', async () => {
  const hosts = Array.from({ length: 60 }, (_, i) => (i % 2 === 0 ? 'allowed.example' : 'denied.example'));
  const replies = await Promise.all(hosts.map((host, i) => through(proxy, 'GET', at(host, `/${i}`))));
  expect(replies.map((reply) => reply.status)).toEqual(hosts.map((host) => (host === 'allowed.example' ? 200 : 403)));
});

test('more requests than the helpers can take are refused', async () => {
  const hosts = Array.from({ length: 700 }, (_, i) => (i % 7 === 0 ? 'slow.example' : 'allowed.example'));
  const replies = await Promise.all(
    hosts.map((host, i) => through(proxy, i % 7 === 0 ? 'GET' : 'POST', at(host, `/${i}`)).catch(() => undefined)),
  );
  expect(replies.filter((reply) => reply !== undefined && reply.status < 400)).toEqual([]);
  expect(world.reached).toEqual([]);
  await until(async () => (await through(proxy, 'GET', at('allowed.example'))).status === 200);
});

test('a helper that dies does not affect a request', async () => {
  const before = helpers();
  expect(before.length).toBeGreaterThan(0);
  const replies = Array.from({ length: 20 }, (_, i) =>
    through(proxy, 'GET', at('slow.example', `/${i}`)).catch(() => undefined),
  );
  await until(async () => judge.asked.length > 0);
  for (const pid of before) process.kill(pid, 'SIGKILL');
  for (const reply of await Promise.all(replies)) expect(reply?.status ?? 0).not.toBe(200);
  expect(world.reached).toEqual([]);
  await until(async () => (await through(proxy, 'GET', at('allowed.example'))).status === 200);
});

test('a request that waits for a hung helper does not pass, and is refused once the helper is ended', async () => {
  const hung = helpers();
  for (const pid of hung) process.kill(pid, 'SIGSTOP');
  let answered = 0;
  const replies = Array.from({ length: 20 }, (_, i) =>
    through(proxy, 'GET', at('allowed.example', `/hung${i}`)).finally(() => answered++),
  );
  await sleep(1_500);
  expect([answered, ...world.reached]).toEqual([0]);
  for (const pid of hung) process.kill(pid, 'SIGKILL');
  expect(new Set((await Promise.all(replies)).map(({ status }) => status))).toEqual(new Set([403]));
  await until(async () => (await through(proxy, 'GET', at('allowed.example'))).status === 200);
});

test('without pagegate nothing passes, and with it again everything works as before', async () => {
  const { port } = judge;
  await judge.close();
  expect((await through(proxy, 'GET', at('allowed.example'))).status).toBe(403);
  expect(world.reached).toEqual([]);
  judge = await createJudge(() => verdict('allow'), port);
  expect((await through(proxy, 'GET', at('allowed.example'))).status).toBe(200);
});

test('as shipped, a name with an internal address is refused, whatever the verdict', async () => {
  const inside = await createWorld();
  const hosts = { 'allowed.example': '127.0.0.1', 'rebound.example': '169.254.169.254', 'six.example': '::1' };
  put(inside, 'api.key', 'pg_test\n', 0o600);
  const yes = await createJudge(() => verdict('allow'));
  try {
    const guarded = await startSquid(inside, `http://127.0.0.1:${yes.port}`, hosts, false);
    for (const host of Object.keys(hosts)) {
      expect((await through(guarded, 'GET', `http://${host}:${inside.originPort}/`)).status).toBe(403);
    }
    expect((await through(guarded, 'GET', `http://127.0.0.1:${inside.originPort}/`)).status).toBe(403);
    expect(inside.reached).toEqual([]);
  } finally {
    await yes.close();
    await inside.close();
  }
});
