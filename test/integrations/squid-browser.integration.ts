/** The plain Squid as shipped, with a browser and with curl: real names, real ports, a separate network. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { curlThrough, type Result, type Way } from './network/client.ts';
import { hasNetwork, INSIDE, PUBLIC } from './network/internet.ts';
import { STATUSES } from './network/tour.ts';
import { testTour, useTourWorld } from './network/tour-tests.ts';
import { startSquidAsShipped } from './proxies.ts';

const PLAIN = 'http://good.example.com';

describe.runIf(hasNetwork)('plain Squid', () => {
  const context = useTourWorld();
  let squid: Way;
  beforeAll(async () => {
    const { world, judge, internet } = context;
    const { port } = await startSquidAsShipped(world, `http://127.0.0.1:${judge.port}`, ['negative_dns_ttl 1 second']);
    squid = { port, caFile: internet.caFile };
  });
  const curl = (...words: string[]): Promise<Result> => curlThrough(squid, ...words);

  const tour = {
    url: `${PLAIN}/tour`,
    proxy: () => ({ port: squid.port }),
    judgedAs: (line: string) => line.replace(' /', ` ${PLAIN}/`).replace('https:', 'http:'),
    // Without HTTPS there are none.
    without: ['service worker'],
  };
  testTour(context, tour, (seen, report) => {
    test('the page sees 403, the layer and the note', () => {
      for (const name of ['fetch', 'post', 'put', ...STATUSES.map((status) => `redirect ${status}`)]) {
        expect(report()[name], name).toMatch(
          /^403 [\s\S]*<p>pagegate refused this request: deny \(rules\/by_tour\): note of by_tour<\/p>/,
        );
      }
    });

    test('a header that would change the method of a read is removed, and no WebSocket is opened', () => {
      expect(context.internet.headersOf('/ok-override')).not.toHaveProperty('x-http-method-override');
      expect(report()).toMatchObject({ socket: 'error', 'socket read': 'error', 'socket allowed': 'error' });
      expect(seen.reached.filter((line) => line.startsWith('OPEN'))).toEqual([]);
    });
  });

  test('other programs on the host are judged, and HTTPS does not pass', async () => {
    expect((await curl(`${PLAIN}/ok`)).status).toBe(200);
    expect((await curl(`${PLAIN}/denied`)).status).toBe(403);
    expect((await curl('-d', 'x', `${PLAIN}/ok`)).status).toBe(403);
    expect((await curl('https://good.example.com/ok')).status).toBe(0);
    expect(context.internet.reached).toEqual([`GET ${PLAIN}/ok`]);
  });

  test('a name with an internal address, at first or later (rebinding), is refused; a denied one is not resolved', async () => {
    for (const [i, address] of INSIDE.entries()) {
      context.names.set(`inside-${i}.example.com`, address);
      expect((await curl(`http://inside-${i}.example.com/ok`)).body, address).toContain('gateway/inside_address');
    }
    context.names.set('rebind.example.com', PUBLIC);
    expect((await curl('http://rebind.example.com/ok')).status).toBe(200);
    context.names.set('rebind.example.com', '127.0.0.1');
    await sleep(2_500);
    expect((await curl('http://rebind.example.com/ok')).status).toBe(403);
    expect((await curl('http://secret.denied.example.com/')).status).toBe(403);
    expect(context.names.asked.filter((name) => name.includes('secret'))).toEqual([]);
    expect(context.internet.inside).toEqual([]);
  });
});
