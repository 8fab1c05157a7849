/** Unusual spellings of a path, through every proxy: the site receives what was judged, however it is parsed. */
import { beforeAll, describe, expect, test } from 'vitest';
import { get, speak, type Tunnel } from './network/client.ts';
import { hasNetwork } from './network/internet.ts';
import { useTourWorld } from './network/tour-tests.ts';
import { startMitmproxy, startNginxAsShipped, startSquidAsShipped, startSquidBump } from './proxies.ts';

const HOST = 'good.example.com';

const PATHS = [
  ...[
    '/denied#/../ok',
    '/ok#/../denied',
    '/denied#',
    '/denied#x',
    '/denied?a#b',
    '/denied/../ok',
    '/denied\\..\\ok',
    '/ok?x#/../denied',
    '/ok#',
    '/ok%23/../denied',
  ],
  ...['/ok\\..\\denied', '/ok/../denied', '/ok/./..//denied', '/%2e%2e/denied', '/ok/.%2E/denied', '/ok/..%2fdenied'],
  ...['/ok/;/../denied', '/ok/..;/denied', '//denied/../ok', '/ok//../denied', '/ok/%5c..%5cdenied'],
  ...['/ok\t/x', '/ok%00', '/ok%0d%0aX:%20y', '/ok%', '/ok%zz', '/d%65nied', '/%64enied', '/d%2565nied'],
  ...[
    '/ö',
    '/o%C3%B6',
    '/%ff',
    '/o\'k~|^`{}[]<>"',
    '/ok?a=b?c=d&e=/../denied',
    '/ok?%64enied=1',
    '/ok;denied',
    '/ok%23x',
    '/.ok/..ok/ok.',
  ],
];

/** The two ways to parse a sent path: a number sign is a part of the path, or ends it. */
const readings = (sent: string): string[] => [sent.replaceAll('#', '%23'), sent].map((url) => new URL(url).href);
/** The judged part of a URL: without its fragment, and with its path and query decoded, because Squid writes more escapes than it sends. */
const meaning = (url: string): string =>
  new URL(url).href
    .replace(/#.*/, '')
    .replaceAll(/%([0-9a-f]{2})/gi, (_escape, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

describe.runIf(hasNetwork)('the judged URL is the one that is fetched', () => {
  const context = useTourWorld();
  const ways: Record<string, (path: string) => Promise<string>> = {};
  beforeAll(async () => {
    const { world, judge, internet } = context;
    const server = `http://127.0.0.1:${judge.port}`;
    const inside: Tunnel = { to: `${HOST}:443`, name: HOST };
    const bump = await startSquidBump(world, server, internet.caFile);
    const plain = await startSquidAsShipped(world, server, []);
    const nginx = await startNginxAsShipped(world, server, internet.caFile);
    const mitmproxy = await startMitmproxy(world, server, internet.caFile);
    ways['Squid with TLS opened'] = (path) => speak(bump.port, get(path, HOST), inside);
    ways['plain Squid'] = (path) => speak(plain.port, get(`http://${HOST}${path}`, HOST));
    ways['nginx'] = (path) => speak(nginx, get(path, HOST));
    ways['mitmproxy'] = (path) => speak(mitmproxy.port, get(path, HOST), inside);
  });

  test.each(['Squid with TLS opened', 'plain Squid', 'nginx', 'mitmproxy'])('%s', async (way) => {
    let passed = 0;
    for (const path of PATHS) {
      context.judge.asked.length = 0;
      context.internet.reached.length = 0;
      await ways[way]!(path);
      const judged = context.judge.asked.map((line) => meaning(line.split(' ')[1]!));
      for (const line of context.internet.reached) {
        passed++;
        const sent = line.slice(line.indexOf(' ') + 1);
        for (const reading of readings(sent)) expect(judged, `${path} as ${reading}`).toContain(meaning(reading));
        // A site that resolves no dot segments reads the same path as one that resolves all of them.
        expect(sent.replace(/\?.*/s, '')).not.toMatch(/\\|\/(?:\.|%2e){1,2}(?:;|\/|%2f|%5c|$)/i);
      }
    }
    expect(passed).toBeGreaterThan(5);
  });
});
