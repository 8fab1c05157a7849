/** Responses that are cached for an identical query: never another response, never an uncharged one, never one from older data. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest';
import { type JudgedUrl, KeptAnswers } from '../../src/server/swap/kept-answers.ts';
import { type Answer, startTestServer, type TestServer } from '../support/server.ts';

const entries = (language: string) => [
  { domain: 'example.com', language, page_types: { pricing: 'https://example.com/pricing' }, open_page_rank: 5.1 },
  { domain: 'plain.org' },
];
const TIMES = 200;
const QUERIES = [
  '?domain=example.com',
  '?url=https%3A%2F%2Fexample.com%2Flogin',
  '?domain=none.net',
  '?url=plain.org&method=POST',
];

let server: TestServer;
let get: MockInstance<KeptAnswers['get']>;
let dir: string;
const policyFile = (): string => join(dir, 'policy.json');
const writePolicy = (document: object): void =>
  writeFileSync(policyFile(), JSON.stringify({ format: 'pagegate-policy/1', ...document }));
const kept = (): number => get.mock.results.filter(({ value }) => value !== undefined).length;
/** Sends a query often enough that its response is cached, and a few times more. */
async function ask(query: string, headers?: Record<string, string>, times = TIMES): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < times; i++) answers.push(await server.check(query, headers));
  return answers;
}
const withoutQuota = ({ text }: Answer): string => text.replace(/"quota_remaining":\d+/, '"quota_remaining":0');

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-kept-'));
  writePolicy({});
  get = vi.spyOn(KeptAnswers.prototype, 'get');
  server = await startTestServer({
    entries: entries('de'),
    accounts: { pro: { plan: 'pro' }, two: { plan: 'custom', limit: TIMES + 2 } },
    config: { policy: { file: policyFile() }, decision_log: { enabled: true, dir } },
  });
});
afterEach(async () => {
  await server.stop();
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true, force: true });
});

describe('an identical query', () => {
  it('gets the same bytes, and every response is charged', async () => {
    for (const query of QUERIES) {
      const before = kept();
      const answers = await ask(query);
      expect(kept() - before).toBeGreaterThan(TIMES / 2);
      expect(new Set(answers.map(withoutQuota)).size).toBe(1);
      const first = answers[0]!.body.quota_remaining;
      expect(answers.map(({ body }) => body.quota_remaining)).toEqual(answers.map((_, i) => first - i));
    }
    // Each has its line; the lines differ only in their times.
    const lines = (): string[] => readFileSync(join(dir, 'decisions-0.ndjson'), 'utf8').trimEnd().split('\n');
    await expect.poll(() => lines().length).toBe(QUERIES.length * TIMES);
    const bodies = lines().map((line) => JSON.stringify({ ...JSON.parse(line), id: '', time: '', latency_ms: 0 }));
    expect(new Set(bodies).size).toBe(QUERIES.length);
  });

  it('is charged to the account that sends it, and refused if no quota is left', async () => {
    const [last] = (await ask(QUERIES[0]!)).slice(-1);
    const headers = { 'x-api-key': server.keys['two']! };
    const answers = await ask(QUERIES[0]!, headers, TIMES + 3);
    expect(answers.slice(0, -1).map(({ body }) => body.quota_remaining)).toEqual(
      Array.from({ length: TIMES + 2 }, (_, i) => TIMES + 1 - i),
    );
    expect([answers.at(-1)!.status, answers.at(-1)!.body.error]).toEqual([403, 'quota_exhausted']);
    expect((await server.check(QUERIES[0]!)).body.quota_remaining).toBe(last!.body.quota_remaining - 1);
    expect((await server.check(QUERIES[0]!, { 'x-api-key': 'pg_wrong' })).body.error).toBe('unknown_key');
  });

  it('is judged every time if it contains the key', async () => {
    const answers = await ask(`${QUERIES[0]!}&api_key=${server.keys['pro']!}`, {});
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(kept()).toBe(0);
  });

  it('is not the same if one letter differs', async () => {
    const [first] = await ask('?url=example.com%2Fpricing');
    expect(first!.body.verdict).toBe('allow');
    expect((await server.check('?url=example.com%2Fpricing&method=POST')).body.verdict).toBe('deny');
    expect((await server.check('?url=example.com%2Fpricing&method=')).status).toBe(400);
    expect((await server.check('?url=example.com%2Fpricing&x=1')).status).toBe(400);
  });
});

describe('new data', () => {
  it('are used at once, whatever responses were cached before', async () => {
    await ask(QUERIES[0]!);
    server.publish(2, entries('fr'));
    await server.server.reload();
    expect((await server.check(QUERIES[0]!)).body.language).toBe('fr');
    expect(new Set((await ask(QUERIES[0]!)).map(({ body }) => body.language))).toEqual(new Set(['fr']));
    writePolicy({ add: { hosts: [{ id: 'x', host: 'example.com', verdict: 'deny', note: 'Not today.' }] } });
    await server.server.reload();
    expect((await server.check(QUERIES[0]!)).body.matched.note).toBe('Not today.');
  });
});

describe('cached responses', () => {
  const judged = { method: 'GET', domain: 'a.com', found: true } as JudgedUrl;
  const bytes = (size: number): Buffer => Buffer.alloc(size, 'x');

  it('are stored for one of many queries, and never if they are very long', () => {
    const answers = new KeptAnswers();
    const turns = Array.from({ length: 320 }, () => answers.isTurn());
    expect(turns.filter(Boolean).length).toBe(10);
    answers.keep('a'.repeat(513), judged, bytes(10), bytes(10));
    answers.keep('b', judged, bytes(8_000), bytes(200));
    expect([answers.get('a'.repeat(513)), answers.get('b')]).toEqual([undefined, undefined]);
  });

  it('are limited to a few thousand', () => {
    const answers = new KeptAnswers();
    for (let i = 0; i < 10_000; i++) answers.keep(`q${i}`, judged, bytes(1), bytes(1));
    const cached = Array.from({ length: 10_000 }, (_, at) => answers.get(`q${at}`)).filter(
      (answer) => answer !== undefined,
    );
    expect(cached.length).toBeLessThanOrEqual(4_000);
  });

  it('are discarded when their memory is full, and never share a byte', () => {
    const answers = new KeptAnswers();
    const sizes: number[] = [];
    for (let i = 0; i < 800; i++) {
      const size = 1_000 + ((i * 37) % 5_000);
      answers.keep(`q${i}`, judged, Buffer.from(`${i}`.padEnd(size)), Buffer.from(`tail ${i}`));
      const all = Array.from({ length: i + 1 }, (_, at) => [at, answers.get(`q${at}`)] as const);
      const cached = all.filter(([, answer]) => answer !== undefined);
      sizes.push(cached.length);
      expect(cached.at(-1)![0]).toBe(i);
      if (i % 50 !== 0) continue;
      for (const [at, answer] of cached) {
        const { start, gap, end } = answer!;
        expect(answers.pool.toString('latin1', start, gap).trim()).toBe(`${at}`);
        expect(answers.pool.toString('latin1', gap, end)).toBe(`tail ${at}`);
      }
    }
    expect(Math.max(...sizes)).toBeLessThan(800);
    expect(sizes.filter((count) => count === 1).length).toBeGreaterThan(1);
  });
});
