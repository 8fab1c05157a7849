/** The filter of decisions, as people fill it in. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';
import { decisionLine } from '../support/console-world.ts';

let console: TestConsole;
let viewer: Visitor;

const HOSTS = ['shop.example.com', 'xn--bcher-kva.example', '192.0.2.7', 'my_host.example'];
const DAY_MS = 86_400_000;

beforeAll(async () => {
  console = await startTestConsole({ config: { decision_log: { enabled: true } } }, ({ paths }) => {
    mkdirSync(paths.logDir, { recursive: true });
    const lines = HOSTS.map((host, i) => decisionLine(i, (9 - i) * DAY_MS, { host, domain: host }));
    writeFileSync(join(paths.logDir, 'decisions-9.ndjson'), lines.join(''));
  });
  viewer = await console.signIn('viewer');
});

afterAll(() => console.stop());

async function found(query: Readonly<Record<string, string>>): Promise<string[]> {
  const { text } = await viewer.get(`decisions.csv?${new URLSearchParams(query)}`);
  return HOSTS.filter((host) => text.includes(`https://${host}/`));
}

describe('a domain', () => {
  it.each([
    ['shop.example.com', 0],
    ['Shop.Example.COM', 0],
    ['https://shop.example.com/pricing?a=b', 0],
    ['shop.example.com:8443', 0],
    ['example.com', 0],
    ['bücher.example', 1],
    ['XN--BCHER-KVA.example', 1],
    ['192.0.2.7', 2],
    ['my_host.example', 3],
    ['*.example.com', 0],
    ['*.Example.COM', 0],
    ['.example.com', 0],
    ['*.bücher.example', undefined],
    ['*.shop.example.com', undefined],
    ['https://shop.example.com/*', 0],
  ])('%s is found', async (domain, i) => expect(await found({ domain })).toEqual(i === undefined ? [] : [HOSTS[i]]));

  it.each(['*', 'shop.*', '*example.com', 'sh*p.example.com', '*.*.com'])(
    '%s is refused with a message that says what to type',
    async (domain) => {
      const reply = await viewer.get(`decisions?${new URLSearchParams({ domain })}`);
      expect(reply.status).toBe(400);
      expect(reply.text).toMatch(
        /role="alert"><p>domain: expected a host such as example\.com, .* or \*\.example\.com/,
      );
    },
  );

  it('that no request can contain finds nothing', async () => expect(await found({ domain: '"<' })).toEqual([]));
});

it('an account is found in any spelling', async () =>
  // The first line of the log is of another account.
  expect(await found({ account: ' Pro ' })).toEqual(HOSTS.slice(1)));

it('accounts and rules match whole names, and a page without results says so', async () => {
  const { text } = await viewer.get('decisions?rule=log');
  expect(text).toContain('No decision matches. Accounts and rules are found only by their full names.');
});

it('a time is accepted in the format of pages and files', async () => {
  const { text } = await viewer.get('decisions');
  const times = [...text.matchAll(/<time datetime="([^"]+)">([^<]+)</g)].map(([, iso, shown]) => [iso!, shown!]);
  expect(times.length).toBeGreaterThanOrEqual(HOSTS.length);
  const [iso, shown] = times[1]!;
  // The displayed second includes everything decided in it.
  expect(await found({ from: shown!, to: shown! })).toEqual([HOSTS.at(-2)]);
  expect(await found({ from: iso!, to: iso! })).toEqual([HOSTS.at(-2)]);
});

it('an invalid filter is shown again, with its error', async () => {
  const reply = await viewer.get('decisions?from=yesterday&account=pro');
  expect(reply.status).toBe(400);
  expect(reply.text).toMatch(/name="account" value="pro"/);
  expect(reply.text).toMatch(/role="alert"><p>from: expected a time like .*, got &quot;yesterday&quot;/);
});
