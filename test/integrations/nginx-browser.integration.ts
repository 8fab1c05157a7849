/** nginx as shipped, with a browser and with curl: real names, real ports, real certificates, a network of its own. */
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createBrowser } from './network/browser.ts';
import { createInternet, hasNetwork, type Internet, PUBLIC, PUBLIC_TOO } from './network/internet.ts';
import { createNames, type Names } from './network/names.ts';
import {
  atHome,
  createTourJudge,
  JUDGED,
  type Report,
  STATUSES,
  tourPages,
  until,
  wronglyReached,
} from './network/tour.ts';
import { startNginxAsShipped } from './proxies.ts';
import { createWorld, type Judge, put, through, type World } from './world.ts';

describe.runIf(hasNetwork)('nginx', () => {
  let world: World;
  let judge: Judge;
  let names: Names;
  let internet: Internet;
  let gateway: number;
  let report: Report = {};
  beforeAll(async () => {
    world = await createWorld();
    put(world, 'api.key', 'pg_test\n', 0o600);
    names = await createNames({ 'good.example.com': PUBLIC, 'denied.example.com': PUBLIC_TOO });
    const pages = tourPages((seen) => {
      report = seen;
    });
    internet = await createInternet(world.folder, pages);
    judge = await createTourJudge();
    gateway = await startNginxAsShipped(world, `http://127.0.0.1:${judge.port}`, internet.caFile);
  });
  afterAll(async () => {
    await judge?.close();
    await world?.close();
    await internet?.close();
    await names?.close();
  });
  beforeEach(() => {
    internet.reached.length = 0;
    judge.asked.length = 0;
    names.asked.length = 0;
  });

  describe('a browser on its tour of http:// addresses, which the gateway opens by HTTPS', () => {
    let asked: string[];
    let reached: string[];
    // There are no service workers without HTTPS.
    const cells = Object.entries(JUDGED).filter(([cell]) => cell !== 'service worker');
    beforeAll(async () => {
      const browser = createBrowser({ proxy: `http://127.0.0.1:${gateway}` });
      try {
        browser.open('http://good.example.com/tour');
        const everything = cells.flatMap(([, lines]) => lines).map(atHome);
        await until(() => Object.keys(report).length > 0);
        await until(() => everything.every((line) => judge.asked.includes(line)));
      } finally {
        await browser.close();
      }
      asked = [...judge.asked];
      reached = [...internet.reached];
    });

    test.each(cells)('%s: judged', (_cell, lines) => {
      expect(asked).toEqual(expect.arrayContaining(lines.map(atHome)));
      const allowed = lines.filter((line) => !/denied|^POST \/ok|^PUT/.test(line)).map(atHome);
      expect(reached).toEqual(expect.arrayContaining(allowed));
    });

    test('nothing that was refused reached a site', () => {
      expect(reached.length).toBeGreaterThan(20);
      expect(wronglyReached(reached)).toEqual([]);
    });

    test('the page sees 403 and the note', () => {
      for (const name of ['fetch', 'post', 'put', ...STATUSES.map((status) => `redirect ${status}`)]) {
        expect(report[name], name).toBe(
          '403 Refused by pagegate: deny (rules/by_tour). note of by_tour\nThis is decided: a retry will not help.\n',
        );
      }
      expect(report['post allowed']).toMatch(/^200 /);
    });

    test('a header that would make another method of a read is taken out', () => {
      expect(report['override']).toMatch(/^200 /);
      expect(internet.headersOf('/ok-override')).not.toHaveProperty('x-http-method-override');
    });

    test('no WebSocket is opened, and no other service for a host is told of', () => {
      expect(report).toMatchObject({
        socket: 'error',
        'socket read': 'error',
        'socket allowed': 'error',
        'alt-svc': null,
      });
      expect(reached.filter((line) => line.startsWith('OPEN'))).toEqual([]);
    });
  });

  test('HTTPS does not pass: there is no tunnel', () => {
    const words = ['-q', '-s', '--max-time', '5', '-w', '%{http_connect}', '--noproxy', ''];
    const { stdout, status } = spawnSync(
      'curl',
      [...words, '-x', `http://127.0.0.1:${gateway}`, 'https://good.example.com/ok'],
      {
        encoding: 'utf8',
      },
    );
    expect(stdout).toMatch(/^40[05]$/);
    expect(status).not.toBe(0);
    expect(internet.reached).toEqual([]);
  });

  test('a name that is denied is not even looked up', async () => {
    const reply = await through(gateway, 'GET', 'http://secret.denied.example.com/', {
      host: 'secret.denied.example.com',
    });
    expect(reply.status).toBe(403);
    expect(names.asked).toEqual([]);
  });

  test('a site whose certificate is not its own is not reached', async () => {
    names.set('wrong.example.net', PUBLIC);
    const reply = await through(gateway, 'GET', 'http://wrong.example.net/ok', { host: 'wrong.example.net' });
    expect(reply.status).toBe(502);
    expect(internet.reached).toEqual([]);
  });
});
