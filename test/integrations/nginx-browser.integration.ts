/** nginx as shipped, with a browser and with curl: real names, real ports, real certificates, a separate network. */
import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, test } from 'vitest';
import { hasNetwork, PUBLIC } from './network/internet.ts';
import { STATUSES } from './network/tour.ts';
import { testTour, useTourWorld } from './network/tour-tests.ts';
import { startNginxAsShipped } from './proxies.ts';
import { through } from './world.ts';

describe.runIf(hasNetwork)('nginx', () => {
  const context = useTourWorld();
  let gateway: number;
  beforeAll(async () => {
    const { world, judge, internet } = context;
    gateway = await startNginxAsShipped(world, `http://127.0.0.1:${judge.port}`, internet.caFile);
  });

  // The gateway uses HTTPS for requests that arrive as HTTP. Without HTTPS there are no service workers.
  const tour = {
    url: 'http://good.example.com/tour',
    proxy: () => ({ port: gateway }),
    without: ['service worker'],
  };
  testTour(context, tour, (seen, report) => {
    test('the page sees 403 and the note', () => {
      for (const name of ['fetch', 'post', 'put', ...STATUSES.map((status) => `redirect ${status}`)]) {
        expect(report()[name], name).toBe(
          '403 Refused by pagegate: deny (rules/by_tour). note of by_tour\nThis is decided: a retry will not help.\n',
        );
      }
      expect(report()['post allowed']).toMatch(/^200 /);
    });

    test('a header that would change the method of a read is removed', () => {
      expect(report()['override']).toMatch(/^200 /);
      expect(context.internet.headersOf('/ok-override')).not.toHaveProperty('x-http-method-override');
    });

    test('no WebSocket is opened', () => {
      expect(report()).toMatchObject({
        socket: 'error',
        'socket read': 'error',
        'socket allowed': 'error',
      });
      expect(seen.reached.filter((line) => line.startsWith('OPEN'))).toEqual([]);
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
    expect(context.internet.reached).toEqual([]);
  });

  test('a denied name is not even resolved', async () => {
    const reply = await through(gateway, 'GET', 'http://secret.denied.example.com/', {
      host: 'secret.denied.example.com',
    });
    expect(reply.status).toBe(403);
    expect(context.names.asked).toEqual([]);
  });

  test('a site with an invalid certificate is not reached', async () => {
    context.names.set('wrong.example.net', PUBLIC);
    const reply = await through(gateway, 'GET', 'http://wrong.example.net/ok', { host: 'wrong.example.net' });
    expect(reply.status).toBe(502);
    expect(context.internet.reached).toEqual([]);
  });
});
