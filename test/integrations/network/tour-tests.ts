/** The tests of a browser on its tour through a proxy, for each proxy the same; and the world that they need. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createWorld, type Judge, put, type World } from '../world.ts';
import { createBrowser } from './browser.ts';
import { createInternet, type Internet, PUBLIC, PUBLIC_TOO } from './internet.ts';
import { createNames, type Names } from './names.ts';
import { atHome, createTourJudge, JUDGED, type Report, tourPages, until, wronglyReached } from './tour.ts';

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
