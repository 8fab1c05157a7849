import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseUrl } from '../../src/domain/canonical-url.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import { NO_EVIDENCE } from '../../src/policy/types.ts';
import {
  DecisionLog,
  type DecisionLogOptions,
  formatDecision,
  type JudgedRequest,
} from '../../src/server/request/decision-log.ts';

const policy = loadPolicy();

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-decisions-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const decision = (url: string): JudgedRequest => ({
  account: 'acme',
  method: 'GET',
  url: parseUrl(url)!,
  domain: 'example.com',
  found: true,
  verdict: { verdict: 'deny', layer: 'page_type_db', id: 'login', note: 'A login page.' },
  policy,
  data: '3.abc',
  latencyMs: 0.12345,
});

const options = (more: Partial<DecisionLogOptions> = {}): DecisionLogOptions => ({
  dir,
  worker: 0,
  fullUrl: false,
  maxSizeBytes: 1_000_000,
  keepFiles: 3,
  queueLines: 1_000,
  ...more,
});

const lines = (name: string): Record<string, unknown>[] =>
  readFileSync(join(dir, name), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('a line', () => {
  it('has the documented fields and no query', () => {
    const line = JSON.parse(formatDecision(decision('https://example.com:8443/login?token=SECRET#frag'), false));
    expect(Object.keys(line)).toEqual([
      'time',
      'id',
      'account',
      'method',
      'scheme',
      'host',
      'path',
      'domain',
      'found',
      'verdict',
      'matched',
      'data',
      'latency_ms',
    ]);
    expect(line).toMatchObject({
      path: '/login',
      host: 'example.com',
      verdict: 'deny',
      latency_ms: 0.123,
      data: '3.abc',
    });
    expect(JSON.stringify(line)).not.toContain('SECRET');
  });

  it('has the whole URL only if the option is set', () => {
    const line = JSON.parse(formatDecision(decision('https://example.com/a/0123456789abcdef?token=SECRET'), true));
    expect(line.url).toBe('https://example.com/a/0123456789abcdef?token=SECRET');
    expect(line.path).toBe('/a/0123456789abcdef');
  });

  /** Returns the logged line of a request for an unknown domain under the shipped policy. */
  const logged = (value: string, method = 'GET'): Record<string, unknown> => {
    const url = parseUrl(value)!;
    const verdict = evaluate(policy, { url, method }, NO_EVIDENCE);
    const text = formatDecision({ ...decision(value), domain: url.host, found: false, method, verdict }, false);
    return JSON.parse(text);
  };

  const KEY = 'pg_0A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5pAbCdEf';

  it.each([
    ['/ghp_abcdefghijklmnopqrstuvwxyzABCDEF', '/***'],
    ['/sk_live_abcdEFGHijklMNOP/edit', '/***/***'],
    [`/%70%67_${KEY.slice(3)}`, '/***'],
    [`/a?key=${KEY}`, '/***'],
  ])('masks the whole path %s if the policy finds a credential', (path, expected) => {
    expect(logged(`https://plain.com${path}`)).toMatchObject({ path: expected, matched: { id: 'secret_in_url' } });
  });

  it('also masks the credential if another layer decided first', () => {
    const line = logged(`https://accounts.google.com/x/${KEY}`);
    expect(line).toMatchObject({ path: '/x/***', matched: { layer: 'high_value_hosts' } });
  });

  it('masks data in a host, in both fields that contain it', () => {
    const line = logged(`https://${KEY.toLowerCase()}.more.plain.com/`);
    expect(line).toMatchObject({ host: '***.***.plain.com', domain: '***.***.plain.com' });
    expect(line['matched']).toMatchObject({ id: 'dns_tunnel' });
  });

  it('has a method only if it is known', () => {
    for (const method of ['GET', 'POST', 'PROPFIND', 'VERSION-CONTROL', 'CONNECT']) {
      expect(logged('https://plain.com/', method)['method']).toBe(method);
    }
    expect(logged('https://plain.com/', KEY.toUpperCase())['method']).toBe('other');
  });
});

describe('the files', () => {
  /** A path that is logged unchanged, different for each number. */
  const path = (number: number): string => `/${String.fromCharCode(97 + Math.floor(number / 26), 97 + (number % 26))}`;

  it('have mode 0600 and one line per decision, in order', async () => {
    const log = new DecisionLog(options());
    for (let i = 0; i < 10; i++) log.record(decision(`https://example.com${path(i)}`));
    await log.close();
    expect(lines('decisions-0.ndjson').map((line) => line['path'])).toEqual(
      Array.from({ length: 10 }, (_, i) => path(i)),
    );
    expect(statSync(join(dir, 'decisions-0.ndjson')).mode & 0o777).toBe(0o600);
    expect(log.counts).toEqual({ lines: 10, dropped: 0 });
  });

  it('lose permissions that an existing file had', async () => {
    writeFileSync(join(dir, 'decisions-0.ndjson'), '');
    chmodSync(join(dir, 'decisions-0.ndjson'), 0o644);
    const log = new DecisionLog(options());
    log.record(decision('https://example.com/'));
    await log.close();
    expect(statSync(join(dir, 'decisions-0.ndjson')).mode & 0o777).toBe(0o600);
  });

  describe('when the clock was set back', () => {
    const START = Date.parse('2026-01-02T10:00:00Z');
    beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
    afterEach(() => void vi.useRealTimers());

    /** Returns the times of the lines of every file, by file name. */
    const times = (): Record<string, unknown[]> =>
      Object.fromEntries(readdirSync(dir).map((name) => [name.slice(0, 30), lines(name).map((line) => line['time'])]));

    it('start anew, so that each file is in order of time; a time that is only slightly earlier is replaced by the last one', async () => {
      const log = new DecisionLog(options());
      for (const second of [0, 1, 0.5, -7_200, -7_199]) {
        vi.setSystemTime(START + second * 1_000);
        log.record(decision('https://example.com/'));
      }
      await log.close();
      expect(times()).toEqual({
        'decisions-0.20260102T100001000': [
          '2026-01-02T10:00:00.000Z',
          '2026-01-02T10:00:01.000Z',
          '2026-01-02T10:00:01.000Z',
        ],
        'decisions-0.ndjson': ['2026-01-02T08:00:00.000Z', '2026-01-02T08:00:01.000Z'],
      });
      expect(log.counts).toEqual({ lines: 5, dropped: 0 });
    });

    it('also start anew after a restart', async () => {
      for (const hour of [0, 1, -2]) {
        vi.setSystemTime(START + hour * 3_600_000);
        const log = new DecisionLog(options());
        log.record(decision('https://example.com/'));
        await log.close();
        utimesSync(join(dir, 'decisions-0.ndjson'), new Date(), new Date());
      }
      expect(times()).toEqual({
        'decisions-0.20260102T110000000': ['2026-01-02T10:00:00.000Z', '2026-01-02T11:00:00.000Z'],
        'decisions-0.ndjson': ['2026-01-02T08:00:00.000Z'],
      });
    });
  });

  it('rotate by size, are limited in number, and leave other files alone', async () => {
    const others = ['decisions-1.ndjson', 'decisions-10.20260101T000000000Z-0123abcd.ndjson', 'a-file-of-somebody'];
    for (const name of others) writeFileSync(join(dir, name), '');
    const log = new DecisionLog(options({ maxSizeBytes: 1_000 }));
    for (let i = 0; i < 40; i++) {
      log.record(decision(`https://example.com${path(i)}`));
      await log.flush();
    }
    await log.close();
    expect(readdirSync(dir)).toEqual(expect.arrayContaining(others));
    const names = readdirSync(dir).filter((name) => !others.includes(name));
    expect(names.length).toBe(4);
    expect(names).toContain('decisions-0.ndjson');
    for (const name of names) {
      expect(statSync(join(dir, name)).size).toBeLessThanOrEqual(1_000);
      expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    }
    expect(lines('decisions-0.ndjson').at(-1)!['path']).toBe(path(39));
  });

  it('drop and count the lines that do not fit the queue', async () => {
    const log = new DecisionLog(options({ queueLines: 16 }));
    for (let i = 0; i < 100; i++) log.record(decision('https://example.com/'));
    await log.close();
    expect(log.counts).toEqual({ lines: 16, dropped: 84 });
    expect(lines('decisions-0.ndjson').length).toBe(16);
  });

  it('count lines that the disk refused and report the failure without throwing', async () => {
    const failures: unknown[] = [];
    writeFileSync(join(dir, 'occupied'), '');
    const log = new DecisionLog(options({ dir: join(dir, 'occupied'), onFailure: (error) => failures.push(error) }));
    log.record(decision('https://example.com/'));
    await log.flush();
    log.record(decision('https://example.com/'));
    await log.close();
    expect(log.counts).toEqual({ lines: 0, dropped: 2 });
    expect(failures.length).toBe(1);
  });
});

describe('a folder that cannot be written', () => {
  it('is known before the first line', async () => {
    writeFileSync(join(dir, 'file'), '');
    const failures: string[] = [];
    const log = new DecisionLog(
      options({ dir: join(dir, 'file/log'), onFailure: (error) => failures.push(error.code) }),
    );
    log.begin();
    await log.flush();
    expect([failures, log.counts]).toEqual([['decision_log_failed'], { lines: 0, dropped: 0 }]);
    expect(log.problem).toContain('file/log');
  });

  it('is distinguished from a writable one, which then has the file', async () => {
    const log = new DecisionLog(options());
    log.begin();
    await log.flush();
    expect([log.problem, readdirSync(dir)]).toEqual([null, ['decisions-0.ndjson']]);
    await log.close();
  });
});
