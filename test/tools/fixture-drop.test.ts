/** The synthetic drop for tests is marked as such, is complete, and matches the output of the tool. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { readManifest } from '../../src/drop/manifest.ts';
import { parseEntry } from '../../src/record/entry.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';

const committed = fileURLToPath(new URL('../data/fixture-drop', import.meta.url));
const tool = fileURLToPath(new URL('../../tools/sample/make-fixture.ts', import.meta.url));
const made = mkdtempSync(join(tmpdir(), 'pagegate-fixture-'));
afterAll(() => rmSync(made, { recursive: true, force: true }));

describe('the fixture drop', () => {
  it('matches the output of the tool, byte for byte', () => {
    execFileSync(process.execPath, [tool, made]);
    expect(readdirSync(made)).toEqual(readdirSync(committed));
    for (const name of readdirSync(made)) {
      expect(readFileSync(join(committed, name)).equals(readFileSync(join(made, name))), name).toBe(true);
    }
  });

  it('is marked as synthetic', () => {
    expect(readManifest(committed).manifest.notice).toMatch(/^Made up for tests/);
  });

  it('has every field, every type, every category and the limits of every range, and nothing to reject', () => {
    const parsed = readManifest(committed).manifest.files.flatMap(({ name }) => {
      const bytes = readFileSync(join(committed, name));
      const text = name.endsWith('.gz') ? gunzipSync(bytes) : name.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes;
      const lines = text.toString('utf8').split('\n').slice(0, -1);
      return lines.map((line) => parseEntry(Buffer.from(line)));
    });
    expect(parsed.flatMap(({ rejects }) => rejects)).toEqual([]);
    const entries = parsed.flatMap(({ entry }) => entry ?? []);
    const types = new Set(entries.flatMap((entry) => entry.pageTypes.map(({ type }) => type)));
    expect([...types].sort()).toEqual(
      pageTypes()
        .map(({ name }) => name)
        .sort(),
    );
    expect(new Set(entries.flatMap((entry) => entry.filteringCategories)).size).toBe(59);
    expect(new Set(entries.flatMap((entry) => entry.iabCategory ?? [])).size).toBe(704);
    expect(new Set(entries.flatMap((entry) => entry.language ?? [])).size).toBe(183);
    const hundredths = entries.flatMap((entry) => entry.openPageRankHundredths ?? []);
    expect([Math.min(...hundredths), Math.max(...hundredths)]).toEqual([0, 1000]);
    const ranks = entries.flatMap((entry) => entry.globalRank ?? []);
    expect([Math.min(...ranks), Math.max(...ranks)]).toEqual([1, 4_294_967_295]);
    expect(entries.filter(({ domain }) => domain === 'twice.example.com')).toHaveLength(2);
  });
});
