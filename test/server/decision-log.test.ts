import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseUrl } from '../../src/domain/canonical-url.ts';
import {
  type Decision,
  DecisionLog,
  type DecisionLogOptions,
  decisionLine,
  maskPath,
} from '../../src/server/decision-log.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-decisions-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const decision = (url: string): Decision => ({
  account: 7,
  method: 'GET',
  url: parseUrl(url)!,
  domain: 'example.com',
  found: true,
  verdict: { verdict: 'deny', layer: 'page_type_db', id: 'login', note: 'A login page.' },
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
  it('has the fields of the documentation and no query', () => {
    const line = JSON.parse(decisionLine(decision('https://example.com:8443/login?token=SECRET#frag'), false));
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

  it('has the whole URL only when that was asked for', () => {
    const line = JSON.parse(decisionLine(decision('https://example.com/a/0123456789abcdef?token=SECRET'), true));
    expect(line.url).toBe('https://example.com/a/0123456789abcdef?token=SECRET');
    expect(line.path).toBe('/a/0123456789abcdef');
  });

  it.each([
    ['/login', '/login'],
    ['/docs/getting-started/part-2', '/docs/getting-started/part-2'],
    ['/2024/06/a-long-title-of-an-article-with-many-words', '/2024/06/a-long-title-of-an-article-with-many-words'],
    ['/reset/9f86d081884c7d659a2feaa0c55ad015', '/reset/***'],
    ['/u/f47ac10b-58cc-4372-a567-0e02b2c3d479/edit', '/u/***/edit'],
    ['/verify/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123def456', '/verify/***'],
    ['/t/ghp_16C7e42F292c6912E7710c838347Ae178B4a', '/t/***'],
    ['/user/alice@example.com', '/user/***'],
    ['/user/alice%40example.com', '/user/***'],
    ['/orders/4111111111111111', '/orders/***'],
    ['/a;jsessionid=1234/b', '/a;***/b'],
    ['/x/key=value', '/x/***'],
    ['/AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIjKlMnOpQr', '/***'],
  ])('masks %s as %s', (path, expected) => {
    expect(maskPath(path)).toBe(expected);
  });

  it('is bounded', () => {
    expect(maskPath('/ab'.repeat(4_000)).length).toBeLessThan(1_100);
  });
});

describe('the files', () => {
  it('mode 0600, one line each, in order', async () => {
    const log = new DecisionLog(options());
    for (let i = 0; i < 10; i++) log.record(decision(`https://example.com/${i}`));
    await log.close();
    expect(lines('decisions-0.ndjson').map((line) => line['path'])).toEqual(
      Array.from({ length: 10 }, (_, i) => `/${i}`),
    );
    expect(statSync(join(dir, 'decisions-0.ndjson')).mode & 0o777).toBe(0o600);
    expect(log.counts).toEqual({ written: 10, dropped: 0 });
  });

  it('takes away rights that a file had', async () => {
    writeFileSync(join(dir, 'decisions-0.ndjson'), '');
    chmodSync(join(dir, 'decisions-0.ndjson'), 0o644);
    const log = new DecisionLog(options());
    log.record(decision('https://example.com/'));
    await log.close();
    expect(statSync(join(dir, 'decisions-0.ndjson')).mode & 0o777).toBe(0o600);
  });

  it('rotates by size and keeps so many', async () => {
    const log = new DecisionLog(options({ maxSizeBytes: 1_000 }));
    for (let i = 0; i < 40; i++) {
      log.record(decision(`https://example.com/${i}`));
      await log.flush();
    }
    await log.close();
    const names = readdirSync(dir);
    expect(names.length).toBe(4);
    expect(names).toContain('decisions-0.ndjson');
    for (const name of names) {
      expect(statSync(join(dir, name)).size).toBeLessThanOrEqual(1_000);
      expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    }
    expect(lines('decisions-0.ndjson').at(-1)!['path']).toBe('/39');
  });

  it('drops what does not fit the queue, and counts it', async () => {
    const log = new DecisionLog(options({ queueLines: 16 }));
    for (let i = 0; i < 100; i++) log.record(decision('https://example.com/'));
    await log.close();
    expect(log.counts).toEqual({ written: 16, dropped: 84 });
    expect(lines('decisions-0.ndjson').length).toBe(16);
  });

  it('counts what the disk refused, says so, and does not throw', async () => {
    const failures: unknown[] = [];
    writeFileSync(join(dir, 'occupied'), '');
    const log = new DecisionLog(options({ dir: join(dir, 'occupied'), onFailure: (error) => failures.push(error) }));
    log.record(decision('https://example.com/'));
    await log.flush();
    log.record(decision('https://example.com/'));
    await log.close();
    expect(log.counts).toEqual({ written: 0, dropped: 2 });
    expect(failures.length).toBe(1);
  });
});
