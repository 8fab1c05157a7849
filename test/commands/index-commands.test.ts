/** The commands that read an index, as a user runs them. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { EXIT } from '../../src/errors.ts';
import { decodeHeader } from '../../src/index/format/header.ts';
import { parseEntry } from '../../src/record/entry.ts';
import { createRefreshSteps } from '../../src/refresh-steps/steps.ts';
import { pagegateHere } from '../support/program.ts';
import { entryOf, withTempDirectory, writeTinyIndex } from '../support/tiny-index.ts';

const run = (...words: string[]) => pagegateHere(words);

const entries = [
  entryOf(
    'a.example',
    { login: 'https://a.example/login' },
    { language: 'en', iabCategory: 5, filteringCategories: [1, 4], globalRank: 7 },
  ),
  entryOf('b.example', { docs: 'https://docs.b.example/?q=\\x' }, { openPageRankHundredths: 1000 }),
  entryOf('c.example'),
];

describe('export', () => {
  it('returns the original entries', async () => {
    await withTempDirectory(async (directory) => {
      const path = join(directory, 'a.pgx');
      writeTinyIndex(path, entries);
      const { status, stdout } = await run('export', path);
      expect(status).toBe(0);
      const parsed = stdout
        .trimEnd()
        .split('\n')
        .map((line) => parseEntry(Buffer.from(line)));
      expect(parsed.every(({ rejects, repairs }) => rejects.length + repairs.length === 0)).toBe(true);
      const byDomain = (a: { domain: string }, b: { domain: string }): number => (a.domain < b.domain ? -1 : 1);
      expect(parsed.map(({ entry }) => entry!).sort(byDomain)).toEqual(entries);
    });
  });
});

describe('the check before an index is served', () => {
  it.each([
    [undefined, false],
    [0, false],
    [3, true],
  ])('of a small index with %s threads requested starts threads: %s', async (workers, expected) => {
    let started = 0;
    const count = (): void => {
      started += 1;
    };
    process.on('worker', count);
    const directory = mkdtempSync(join(tmpdir(), 'pagegate-index-commands-'));
    try {
      const path = join(directory, 'a.pgx');
      writeTinyIndex(path, entries);
      const progress = { update: () => {}, done: () => {} };
      const steps = await createRefreshSteps(loadConfig({ env: {}, cwd: directory }), progress, workers);
      expect(await steps.verify(path, undefined)).toMatchObject({ recordCount: entries.length });
      expect(started > 0).toBe(expected);
    } finally {
      process.off('worker', count);
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

describe('lookup', () => {
  it('prints records, and indicates a missing one by its exit code', async () => {
    await withTempDirectory(async (directory) => {
      const path = join(directory, 'a.pgx');
      writeTinyIndex(path, entries);
      const found = await run('lookup', '--index', path, '--json', 'https://www.A.example/login?x=1');
      expect(found.status).toBe(0);
      expect(JSON.parse(found.stdout)).toMatchObject([
        {
          domain: 'a.example',
          found: true,
          language: 'en',
          page_types: { login: 'https://a.example/login' },
          global_rank: 7,
        },
      ]);
      const missing = await run('lookup', '--index', path, 'b.example', 'nobody.example');
      expect(missing.status).toBe(4);
      expect(missing.stdout).toMatch(/b\.example: found\n(.*\n)*.*nobody\.example: not found/);
      expect((await run('lookup', '--index', path, 'not a host')).status).toBe(3);
      expect((await run('lookup', '--index', join(directory, 'none.pgx'), 'a.example')).status).toBe(7);
    });
  });
});

describe('verify and inspect', () => {
  it('distinguish an intact index from a damaged one, and locate the damage', async () => {
    await withTempDirectory(async (directory) => {
      const path = join(directory, 'a.pgx');
      writeTinyIndex(path, entries);
      expect(await run('verify', path)).toMatchObject({
        status: 0,
        stdout: expect.stringContaining('intact, 3 records'),
      });
      expect((await run('verify', path, '--workers', '2')).stdout).toBe(
        (await run('verify', path, '--workers', '0')).stdout,
      );
      expect(await run('verify', path, '--workers', '257')).toMatchObject({ status: 2, stdout: '' });
      const text = await run('inspect', path);
      expect(text.status).toBe(0);
      expect(text.stdout).toMatch(/records +3\n/);
      expect(text.stdout).toContain('█');
      const json = JSON.parse((await run('inspect', path, '--json')).stdout) as Record<string, unknown>;
      expect(json).toMatchObject({
        records: 3,
        buckets: 1,
        buckets_by_records: [0, 0, 0, 1],
        dataset: 'tiny',
      });
      const bytes = readFileSync(path);
      const { offset } = decodeHeader(bytes).sections.payload;
      bytes[offset + 2]! ^= 1;
      const damaged = join(directory, 'b.pgx');
      writeFileSync(damaged, bytes);
      chmodSync(damaged, 0o444);
      const report = await run('verify', damaged, '--json');
      expect(report.status).toBe(5);
      expect(JSON.parse(report.stdout)).toMatchObject({ ok: false, damages: [{ offset, where: 'payload' }] });
      expect((await run('verify', damaged)).stdout).toMatch(/DAMAGED/);
    });
  });
});

describe('diff', () => {
  it.each([
    ['added', entries.slice(1), entries],
    ['removed', entries, entries.slice(1)],
    ['changed', [entryOf('a.example')], entries.slice(0, 1)],
  ])('indicates by its exit code that one domain was %s', async (_what, before, after) => {
    await withTempDirectory(async (directory) => {
      const [first, second] = [join(directory, 'before.pgx'), join(directory, 'after.pgx')] as const;
      writeTinyIndex(first, before);
      writeTinyIndex(second, after);
      expect((await run('diff', first, second, '--summary')).status).toBe(EXIT.negative);
    });
  });

  it('lists what was added, removed and changed, whatever the number of buckets', async () => {
    await withTempDirectory(async (directory) => {
      const before = join(directory, 'a.pgx');
      const after = join(directory, 'b.pgx');
      writeTinyIndex(before, entries);
      const changed = entryOf(
        'a.example',
        { login: 'https://a.example/sign-in' },
        { language: 'en', iabCategory: 5, filteringCategories: [1] },
      );
      writeTinyIndex(after, [changed, entries[2]!, entryOf('d.example')], { bucketCount: 3 });
      expect(await run('diff', before, before)).toMatchObject({
        status: 0,
        stdout: '0 added, 0 removed, 0 changed.\n',
      });
      const text = await run('diff', before, after);
      expect(text.status).toBe(4);
      expect(text.stdout.trimEnd().split('\n').sort()).toEqual([
        '+ d.example',
        '- b.example',
        '1 added, 1 removed, 1 changed.',
        '~ a.example: page_types.login, filtering_categories, global_rank',
      ]);
      const summary = JSON.parse((await run('diff', before, after, '--json', '--summary')).stdout);
      expect(summary).not.toHaveProperty('changes');
      expect(summary).toMatchObject({ added: expect.any(Number) });
      const json = JSON.parse((await run('diff', before, after, '--json')).stdout) as { changes: unknown[] };
      expect(json).toMatchObject({ added: 1, removed: 1, changed: 1 });
      expect(json.changes).toHaveLength(3);
    });
  });
});
