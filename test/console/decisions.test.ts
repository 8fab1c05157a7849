/** The decision logs as the console reads them: from the end, over files and workers, with any content. */
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ConsoleContext } from '../../src/console/context.ts';
import type { DecisionFilter, LoggedDecision } from '../../src/console/decisions/filter.ts';
import { DecisionLogs, type LogPosition, SearchProgress } from '../../src/console/decisions/logs.ts';
import { topDenied } from '../../src/console/pages/top-denied.ts';
import { ShortCache } from '../../src/console/short-cache.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-decisions-'));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const START = Date.parse('2026-01-01T00:00:00Z');
const timeAt = (second: number): string => new Date(START + second * 1_000).toISOString();
const idOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

const lineOf = (n: number, more: Partial<LoggedDecision> = {}): LoggedDecision => ({
  time: timeAt(n),
  id: idOf(n),
  account: n % 10 === 0 ? 'rare' : 'pro',
  method: 'GET',
  scheme: 'https',
  host: `${n % 70 === 3 ? 'shop.' : ''}host-${n % 7}.example.com`,
  path: '/a',
  domain: `host-${n % 7}.example.com`,
  found: true,
  verdict: n % 3 === 0 ? 'deny' : 'allow',
  matched: { layer: 'rules', id: n % 100 === 0 ? 'seldom' : 'often', note: 'x'.repeat(200) },
  data: '1.a',
  latency_ms: 0.05,
  ...more,
});

const write = (name: string, lines: readonly LoggedDecision[]): void =>
  writeFileSync(join(dir, name), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

async function read(
  filter: DecisionFilter = {},
  position?: LogPosition,
  count = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  const ids: string[] = [];
  for await (const line of new DecisionLogs(dir).read(filter, position)) {
    if (line instanceof SearchProgress) continue;
    ids.push(line.id);
    if (ids.length >= count) break;
  }
  return ids;
}

/** Writes logs of three workers, each with a current file and two rotated ones. The lines are distributed in turn. */
function writeMany(count: number): LoggedDecision[] {
  const lines = Array.from({ length: count }, (_, n) => lineOf(n));
  for (let worker = 0; worker < 3; worker++) {
    const own = lines.filter((_, n) => n % 3 === worker);
    const third = Math.ceil(own.length / 3);
    write(`decisions-${worker}.20260101T000000000Z-aaaaaaaa.ndjson`, own.slice(0, third));
    write(`decisions-${worker}.20260101T010000000Z-bbbbbbbb.ndjson`, own.slice(third, 2 * third));
    write(`decisions-${worker}.ndjson`, own.slice(2 * third));
  }
  return lines.toReversed();
}

describe('decision logs', () => {
  it('return every line of every file and worker, the latest first', async () => {
    const lines = writeMany(5_000);
    expect(await read()).toEqual(lines.map(({ id }) => id));
  });

  it.each([
    ['verdict', { verdict: 'deny' }, (line: LoggedDecision) => line.verdict === 'deny'],
    ['account', { account: 'rare' }, (line: LoggedDecision) => line.account === 'rare'],
    ['rule', { rule: 'seldom' }, (line: LoggedDecision) => line.matched.id === 'seldom'],
    ['domain', { domain: 'host-3.example.com' }, (line: LoggedDecision) => line.domain === 'host-3.example.com'],
    ['a domain above', { domain: 'example.com' }, () => true],
    [
      'a host below the domain',
      { domain: 'shop.host-3.example.com' },
      (line: LoggedDecision) => line.host.startsWith('shop.'),
    ],
    ['no domain, but a part of its name', { domain: 'ost-3.example.com' }, () => false],
    [
      'several',
      { verdict: 'deny', account: 'rare', rule: 'seldom' },
      (line: LoggedDecision) => Number(line.id.slice(-12)) % 300 === 0,
    ],
    ['from', { from: timeAt(4_000) }, (line: LoggedDecision) => line.time >= timeAt(4_000)],
    ['to', { to: timeAt(1_234) }, (line: LoggedDecision) => line.time <= timeAt(1_234)],
    [
      'both ends',
      { from: timeAt(100), to: timeAt(110) },
      (line: LoggedDecision) => line.time >= timeAt(100) && line.time <= timeAt(110),
    ],
    ['nothing', { account: 'nobody' }, () => false],
  ])('are filtered by %s', async (_name, filter, isWanted) => {
    const lines = writeMany(5_000);
    expect(await read(filter)).toEqual(lines.filter(isWanted).map(({ id }) => id));
  });

  it('are complete if the clock was set back, filtered and page by page', async () => {
    const before = Array.from({ length: 1_500 }, (_, n) => lineOf(n + 36_000));
    const after = Array.from({ length: 1_500 }, (_, n) => lineOf(n + 35_000));
    const stamp = before.at(-1)!.time.replaceAll(/[-:.]/g, '');
    write(`decisions-0.${stamp}-aaaaaaaa.ndjson`, before);
    write('decisions-0.ndjson', after);
    const all = [...before, ...after].sort((a, b) => (a.time < b.time ? 1 : -1)).map(({ time }) => time);
    const timesOf = (ids: readonly string[]): string[] => ids.map((id) => timeAt(Number(id.slice(-12))));
    expect(timesOf(await read())).toEqual(all);
    for (const from of [timeAt(36_000), timeAt(36_200), timeAt(37_000)])
      expect(timesOf(await read({ from }))).toEqual(all.filter((time) => time >= from));
    for (const to of [timeAt(35_100), timeAt(36_300)])
      expect(timesOf(await read({ to }))).toEqual(all.filter((time) => time <= to));
    const rest = timesOf(await read({}, { time: timeAt(36_600), id: '' }));
    expect(rest).toEqual(all.filter((time) => time <= timeAt(36_600)));
  });

  it('continue from a position, page by page, without gaps or repeated lines, even among lines of the same moment', async () => {
    const same = Array.from({ length: 300 }, (_, n) => lineOf(n, { time: timeAt(n < 20 ? n : n > 280 ? n : 50) }));
    write(
      'decisions-0.ndjson',
      same.filter((_, n) => n % 2 === 0),
    );
    write(
      'decisions-1.ndjson',
      same.filter((_, n) => n % 2 === 1),
    );
    const all = await read();
    const paged: string[] = [];
    for (let after: LogPosition | undefined; ; ) {
      const page = await read({}, after, 7);
      paged.push(...page);
      const last = same.find(({ id }) => id === page.at(-1));
      if (last === undefined) break;
      after = { time: last.time, id: last.id };
    }
    expect(all).toHaveLength(300);
    expect(paged).toEqual(all);
  });

  it('find lines that match all conditions, even if each condition alone is common', async () => {
    const lines = Array.from({ length: 3_000 }, (_, n) => lineOf(n, { account: n % 2 === 0 ? 'even' : 'odd' }));
    write('decisions-0.ndjson', lines);
    const fitting = ({ account, verdict, matched }: LoggedDecision): boolean =>
      account === 'even' && verdict === 'deny' && matched.id === 'often';
    const wanted = lines.toReversed().filter(fitting);
    expect(wanted.length).toBeGreaterThan(400);
    expect(await read({ account: 'even', verdict: 'deny', rule: 'often' })).toEqual(wanted.map(({ id }) => id));
    // Every rare line has an even number.
    expect(await read({ account: 'odd', rule: 'seldom' })).toEqual([]);
  });

  it('report the progress of a search, and continue from there without gaps or repeated lines', async () => {
    const all = writeMany(6_000).filter(({ account }) => account === 'rare');
    const logs = new DecisionLogs(dir);
    const given: string[] = [];
    const places: { readonly at: SearchProgress; readonly given: number }[] = [];
    for await (const found of logs.read({ account: 'rare' })) {
      if (found instanceof SearchProgress) places.push({ at: found, given: given.length });
      else given.push(found.id);
    }
    expect(given).toEqual(all.map(({ id }) => id));
    expect(places.length).toBeGreaterThan(10);
    for (const { at, given: before } of places) {
      const rest = (await read({ account: 'rare' }, { time: at.backTo, id: '' })).filter((id) => {
        // A line of the same moment may have been returned already. The next page continues after its id.
        return id !== given[before - 1];
      });
      expect(rest).toEqual(given.slice(before));
    }
    const times = places.map(({ at }) => at.backTo);
    expect(times).toEqual(times.toSorted().reverse());
    const last = places.at(-1)!.at;
    expect(last.doneBytes).toBe(last.allBytes);
  });

  it('skip lines that are not decisions', async () => {
    const good = [lineOf(1), lineOf(2), lineOf(3)].map((line) => JSON.stringify(line));
    const odd = [{ matched: { layer: 'rules', id: ['often'], note: '' } }, { matched: null }, { url: {} }, { host: 1 }];
    const bad = [
      ...odd.map((more) => JSON.stringify({ ...lineOf(5), ...more })),
      '',
      'no JSON',
      '[]',
      'null',
      '{"time":"2026"}',
      '{"time":1,"id":2}',
      'x'.repeat(600_000),
      '\0\0\0',
    ];
    writeFileSync(
      join(dir, 'decisions-0.ndjson'),
      [good[0], ...bad, good[1], ...bad.toReversed(), good[2]].map((one) => `${one}\n`).join(''),
    );
    appendFileSync(join(dir, 'decisions-0.ndjson'), JSON.stringify(lineOf(4)).slice(0, 50));
    expect(await read()).toEqual([idOf(3), idOf(2), idOf(1)]);
    expect(await read({ account: 'pro' })).toEqual([idOf(3), idOf(2), idOf(1)]);
  });

  it('read no link, no folder and no other file', async () => {
    write('decisions-0.ndjson', [lineOf(1)]);
    write('elsewhere', [lineOf(2)]);
    symlinkSync(join(dir, 'elsewhere'), join(dir, 'decisions-1.ndjson'));
    mkdirSync(join(dir, 'decisions-2.ndjson'));
    write('decisions-x.ndjson', [lineOf(3)]);
    write('other-0.ndjson', [lineOf(4)]);
    expect(await read()).toEqual([idOf(1)]);
  });

  it('are empty if there is no folder', async () => {
    rmSync(dir, { recursive: true });
    expect(await read()).toEqual([]);
  });

  it('find lines of any length around the boundaries of a read', async () => {
    const lines = Array.from({ length: 400 }, (_, n) => lineOf(n, { path: `/${'p'.repeat((n * 997) % 8_000)}` }));
    write('decisions-0.ndjson', lines);
    const ids = lines.toReversed().map(({ id }) => id);
    expect(await read()).toEqual(ids);
    expect(await read({ to: timeAt(200) })).toEqual(ids.slice(199));
    expect(await read({ rule: 'seldom' })).toEqual([idOf(300), idOf(200), idOf(100), idOf(0)]);
  });

  it('are read by a limited number of requests at a time', async () => {
    write('decisions-0.ndjson', [lineOf(1)]);
    const logs = new DecisionLogs(dir);
    const readers = Array.from({ length: 32 }, () => logs.read({}));
    for (const reader of readers) await reader.next();
    await expect(logs.read({}).next()).rejects.toMatchObject({ code: 'console_busy' });
    // The overview still shows its other parts.
    const config = { console: { base_path: '/' }, decision_log: { enabled: true } };
    const app = { decisions: logs, config, kept: new ShortCache() } as unknown as ConsoleContext;
    expect((await topDenied(app)).toString()).toContain('too much to do at once');
    for (const reader of readers) await reader.return(undefined);
    expect((await topDenied(app)).toString()).toContain('latest 1 decisions');
    expect((await logs.read({}).next()).done).toBe(false);
  });

  it('are not reported as empty if the time runs out before their first line is read', async () => {
    write('decisions-0.ndjson', [lineOf(1)]);
    let nowMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 1_000));
    const config = { console: { base_path: '/' }, decision_log: { enabled: true } };
    const app = {
      decisions: new DecisionLogs(dir),
      config,
      kept: new ShortCache(() => 0),
    } as unknown as ConsoleContext;
    const told = (await topDenied(app)).toString();
    clock.mockRestore();
    expect(told).toContain('latest 1 decisions');
  });
});
