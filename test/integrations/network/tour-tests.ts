/** The tests of a browser on its tour through a proxy, for each proxy the same; and the world that they need. */
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
  /** What the page reported, once it did. */
  readonly report: () => Report;
}

/** Opens a world before all tests of a block, closes it after them, and forgets what was asked and reached before each. */
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
  /** Where the tour begins. */
  readonly url: string;
  /** The proxy, as Chromium takes it, and its authority. */
  readonly proxy: () => { readonly port: number; readonly caFile?: string };
  /** How URLs of the tour are judged, where they are not judged as the page has them. */
  readonly judgedAs?: (line: string) => string;
  /** Ways that a browser does not have there. */
  readonly without?: readonly string[];
}

/** What the tour left behind. */
export interface Seen {
  asked: string[];
  reached: string[];
}

/** Sends a browser on its tour and looks at each way out; more tests of what it left behind go to the end. */
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

    test('nothing that was refused reached a site', () => {
      expect(seen.reached.length).toBeGreaterThan(20);
      expect(wronglyReached(seen.reached)).toEqual([]);
      expect(inside).toEqual([]);
    });

    test('a header that would make another URL of a read is taken out', () => {
      expect(context.report()['rewrite']).toMatch(/^200 /);
      const sent = Object.keys(context.internet.headersOf('/ok-rewrite') ?? {});
      expect(sent).toContain('host');
      expect(sent.filter((name) => /original|rewrite/.test(name))).toEqual([]);
    });

    test('no other service for a host is told of', () => {
      expect(context.report()['alt-svc']).toBeNull();
    });

    more(seen, () => context.report());
  });
}

/** A tunnel to a site that may be opened. */
export const GOOD = { to: 'good.example.com:443', name: 'good.example.com' } as const;

/** The tests of other programs than a browser, the same for each proxy that opens TLS. */
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

  test('an address of the other family is looked at, too', async () => {
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
  ])('what is not a request, in an opened tunnel, reaches nobody: %j', async (text) => {
    const before = context.internet.connections();
    await speak(proxy().port, text, GOOD);
    expect(context.internet.connections()).toBe(before);
  });

  test('a path that looks like a host is a path', async () => {
    await speak(proxy().port, get('//denied.example.com/', 'good.example.com'), GOOD);
    expect(context.internet.reached.filter((line) => !line.includes('https://good.example.com//'))).toEqual([]);
  });
}
