/** The tests of a browser's tour through a proxy, the same for each proxy, and their environment. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createWorld, type Judge, put, type World } from '../world.ts';
import { createBrowser } from './browser.ts';
import { curlThrough, get, type Result, speak, speakNested, type Way } from './client.ts';
import { createInternet, type Internet, PUBLIC, PUBLIC_TOO, PUBLIC_V6 } from './internet.ts';
import { createNames, type Names } from './names.ts';
import { atHome, createTourJudge, HOME, JUDGED, type Report, tourPages, until, wronglyReached } from './tour.ts';

export interface TourWorld {
  readonly world: World;
  judge: Judge;
  readonly names: Names;
  readonly internet: Internet;
  /** The page's report; undefined before it arrives. */
  readonly report: () => Report;
}

/** Opens a world before all tests of a block, closes it after them, and clears lookups and requests before each. */
export function useTourWorld(): TourWorld {
  const opened = {} as { -readonly [Name in keyof TourWorld]: TourWorld[Name] };
  let report: Report = {};
  beforeAll(async () => {
    opened.world = await createWorld();
    put(opened.world, 'api.key', 'pg_test\n', 0o600);
    opened.names = await createNames({ 'good.example.com': PUBLIC, 'denied.example.com': PUBLIC_TOO });
    const pages = tourPages((seen) => {
      report = seen;
    });
    opened.internet = await createInternet(opened.world.folder, pages);
    opened.judge = await createTourJudge();
    opened.report = () => report;
  });
  afterAll(async () => {
    await opened.judge?.close();
    await opened.world?.close();
    await opened.internet?.close();
    await opened.names?.close();
  });
  beforeEach(() => {
    opened.internet.reached.length = 0;
    opened.internet.inside.length = 0;
    opened.judge.asked.length = 0;
    opened.names.asked.length = 0;
  });
  return opened;
}

export interface Tour {
  /** The first page of the tour. */
  readonly url: string;
  /** The port of the proxy for Chromium, and its certificate authority. */
  readonly proxy: () => { readonly port: number; readonly caFile?: string };
  /** Maps a URL of the tour to the one that is judged, if they differ. */
  readonly judgedAs?: (line: string) => string;
  /** Ways out that a browser does not have there. */
  readonly without?: readonly string[];
}

/** The outcome of the tour. */
export interface Seen {
  asked: string[];
  reached: string[];
}

/** Runs the tour and tests each way out. `more` adds tests of its outcome. */
export function testTour(context: TourWorld, tour: Tour, more: (seen: Seen, report: () => Report) => void): void {
  describe('a browser on its tour', () => {
    const judged = tour.judgedAs ?? atHome;
    const cells = Object.entries(JUDGED).filter(([cell]) => !tour.without?.includes(cell));
    const seen: Seen = { asked: [], reached: [] };
    let inside: string[];
    beforeAll(async () => {
      const { judge, internet } = context;
      const { port, caFile } = tour.proxy();
      const browser = createBrowser({ proxy: `http://127.0.0.1:${port}`, ...(caFile && { caFile }) });
      try {
        browser.open(tour.url);
        const everything = cells.flatMap(([, lines]) => lines).map(judged);
        await until(() => Object.keys(context.report()).length > 0);
        await until(() => everything.every((line) => judge.asked.includes(line)));
      } finally {
        await browser.close();
      }
      seen.asked = [...judge.asked];
      seen.reached = [...internet.reached];
      inside = [...internet.inside];
    });

    test.each(cells)('%s: judged', (_cell, lines) => {
      expect(seen.asked).toEqual(expect.arrayContaining(lines.map(judged)));
      const allowed = lines.filter((line) => !/denied|^POST \/ok|^PUT/.test(line)).map(judged);
      expect(seen.reached).toEqual(expect.arrayContaining(allowed));
    });

    test('no refused request reached a site', () => {
      expect(seen.reached.length).toBeGreaterThan(20);
      expect(wronglyReached(seen.reached)).toEqual([]);
      expect(inside).toEqual([]);
    });

    test('a header that would change the URL of a read is removed', () => {
      expect(context.report()['rewrite']).toMatch(/^200 /);
      const sent = Object.keys(context.internet.headersOf('/ok-rewrite') ?? {});
      expect(sent).toContain('host');
      expect(sent.filter((name) => /original|rewrite/.test(name))).toEqual([]);
    });

    test('no alternative service for a host is announced', () => {
      expect(context.report()['alt-svc']).toBeNull();
    });

    more(seen, () => context.report());
  });
}

/** A tunnel to a site that may be opened. */
export const GOOD = { to: 'good.example.com:443', name: 'good.example.com' } as const;

/** The tests of programs other than a browser, the same for each proxy that opens TLS. */
export function testOpenedTls(context: TourWorld, proxy: () => Way): void {
  const curl = (...words: string[]): Promise<Result> => curlThrough(proxy(), ...words);

  test('another program on the host is judged by URL and method, over TLS and without', async () => {
    for (const origin of [HOME, 'http://good.example.com']) {
      expect(await curl(`${origin}/ok?q=%41#x`)).toMatchObject({ code: 0, status: 200 });
      expect(await curl(`${origin}/denied`)).toMatchObject({ code: 0, status: 403 });
      expect(await curl('-d', 'x', `${origin}/ok`)).toMatchObject({ status: 403 });
      expect(await curl('-d', 'x', `${origin}/write`)).toMatchObject({ status: 200 });
      expect(await curl('-L', `${origin}/go?status=307&to=/denied`)).toMatchObject({ status: 403 });
    }
    expect(context.judge.asked).toContain(`GET ${HOME}/ok?q=%41`);
    expect(context.judge.asked).toContain('POST http://good.example.com/ok');
    expect(wronglyReached(context.internet.reached)).toEqual([]);
  });

  test.each(['127.0.0.1', '[::1]', '[::ffff:10.0.0.5]', '169.254.169.254', '2130706433', '0x7f.1', '127.1', '0'])(
    'a host that is an address, %s',
    async (host) => {
      for (const scheme of ['http', 'https'])
        expect((await curl('-k', `${scheme}://${host}/ok`)).status).toBeGreaterThan(399);
      expect(context.internet.reached).toEqual([]);
      expect(context.internet.inside).toEqual([]);
    },
  );

  test('an address of the other family is also checked', async () => {
    context.names.set('six.example.com', PUBLIC_V6);
    expect((await curl('https://six.example.com/ok')).status).toBe(200);
  });

  test.each(['denied.example.com:443', 'denied.example.com:80', 'good.example.com:443', '10.0.0.5:443'])(
    'a tunnel to %s inside a tunnel passes nothing on',
    async (inner) => {
      const before = context.internet.connections();
      const text = get('/denied', 'denied.example.com');
      const answer = await speakNested(proxy().port, GOOD, inner, text);
      expect(answer).not.toMatch(/ 200 OK/);
      expect(context.internet.connections()).toBe(before);
      expect(context.internet.reached).toEqual([]);
    },
  );

  test.each([
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'SSH-2.0-OpenSSH_9.2\r\n\r\n',
    '\x00\x01\x02\x03\x04\r\n\r\n',
    get('*', 'good.example.com'),
    get('/ok', ''),
  ])('invalid requests in an opened tunnel reach no site: %j', async (text) => {
    const before = context.internet.connections();
    await speak(proxy().port, text, GOOD);
    expect(context.internet.connections()).toBe(before);
  });

  test('a path that looks like a host is a path', async () => {
    await speak(proxy().port, get('//denied.example.com/', 'good.example.com'), GOOD);
    expect(context.internet.reached.filter((line) => !line.includes('https://good.example.com//'))).toEqual([]);
  });
}
