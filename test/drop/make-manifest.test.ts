/** The manifest for a vendor's folder of parts. */
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { buildIndex } from '../../src/builder/build.ts';
import { makeManifest } from '../../src/drop/make-manifest.ts';
import { readManifest } from '../../src/drop/manifest.ts';
import { makeDrop } from '../builder/small-drops.ts';
import { pagegate } from '../support/program.ts';
import { withTempDirectory } from '../support/tiny-index.ts';

const FACTS = { dataset: 'example', revision: 1, created: '2026-05-01T00:00:00Z', pageTypes: 'partial' } as const;

describe('a manifest', () => {
  it('counts lines like the builder', () =>
    withTempDirectory(async (folder) => {
      const drop = join(folder, 'drop');
      const text = '\ufeff{"domain":"a.example"}\r\n\r\n\n{"domain":"b.example"}\n\n{"domain":"c.example"}';
      const manifest = await makeDrop(drop, { 'a.ndjson': text, 'b.ndjson.gz': '\n', 'c.ndjson.zst': '\r' });
      expect(manifest.files.map(({ records }) => records)).toEqual([3, 0, 0]);
      expect((await buildIndex({ drop, out: join(folder, 'index.pgx'), generation: 1, workers: 0 })).lines).toBe(3);
    }));

  it('is not written if the schema refuses it, or a part cannot be read', () =>
    withTempDirectory(async (folder) => {
      const drop = join(folder, 'drop');
      mkdirSync(drop);
      await expect(makeManifest(drop, FACTS)).rejects.toMatchObject({
        code: 'drop_no_parts',
        message: expect.stringMatching(/^There are no parts .*drop has none\.$/),
      });
      writeFileSync(join(drop, 'a.ndjson'), '{"domain":"a.example"}\n');
      const bad = { ...FACTS, dataset: 'Bad Name', created: 'now' };
      await expect(makeManifest(drop, bad)).rejects.toMatchObject({ code: 'manifest_invalid' });
      writeFileSync(join(drop, 'b.ndjson.gz'), 'no gzip');
      await expect(makeManifest(drop, FACTS)).rejects.toMatchObject({
        code: 'drop_part_truncated',
        details: { part: 'b.ndjson.gz' },
      });
      mkdirSync(join(drop, 'a.ndjson.zst'));
      await expect(makeManifest(drop, FACTS)).rejects.toMatchObject({ code: 'drop_file_kind' });
      rmdirSync(join(drop, 'a.ndjson.zst'));
      symlinkSync('a.ndjson', join(drop, 'a.ndjson.zst'));
      await expect(makeManifest(drop, FACTS)).rejects.toMatchObject({
        code: 'drop_file_kind',
        message: expect.stringMatching(/a\.ndjson\.zst is not a regular file\.$/),
      });
      await expect(makeManifest(join(folder, 'nothing'), FACTS)).rejects.toMatchObject({
        code: 'drop_no_parts',
        message: expect.stringMatching(/^There are no parts .*nothing: ENOENT/),
      });
      expect(existsSync(join(drop, 'manifest.json'))).toBe(false);
    }));
});

describe('a manifest that no reader would accept', () => {
  it('is refused before a part is read, if possible', () =>
    withTempDirectory(async (folder) => {
      writeFileSync(join(folder, 'a.ndjson'), '{"domain":"a.example"}\n');
      const read: string[] = [];
      const onPart = (name: string): number => read.push(name);
      for (const facts of [{ dataset: 'Bad Name' }, { created: 'now' }, { revision: 0 }]) {
        const made = makeManifest(folder, { ...FACTS, ...facts }, { onPart });
        await expect(made).rejects.toMatchObject({ code: 'manifest_invalid' });
      }
      writeFileSync(join(folder, 'b c.ndjson'), '{"domain":"b.example"}\n');
      await expect(makeManifest(folder, FACTS, { onPart })).rejects.toMatchObject({
        code: 'manifest_invalid',
        message: expect.stringContaining('got "b c.ndjson"'),
      });
      expect(read).toEqual([]);
    }));

  it('is not created for a part that unpacks to more than its records may take', () =>
    withTempDirectory(async (folder) => {
      const line = (i: number): string => `{"domain":"t${i}.example","x":"${randomBytes(20_000).toString('hex')}"}\n`;
      const text = Array.from({ length: 10 }, (_, i) => line(i)).join('');
      writeFileSync(join(folder, 'a.ndjson.gz'), gzipSync(text));
      await expect(makeManifest(folder, FACTS)).rejects.toMatchObject({
        code: 'drop_too_large',
        message: expect.stringContaining('a.ndjson.gz unpacks to more than 229376 bytes, for 10 records'),
      });
      expect(readdirSync(folder)).toEqual(['a.ndjson.gz']);
      writeFileSync(join(folder, 'a.ndjson'), text);
      rmSync(join(folder, 'a.ndjson.gz'));
      expect((await makeManifest(folder, FACTS)).files).toMatchObject([{ name: 'a.ndjson', records: 10 }]);
    }));
});

describe('pagegate drop manifest', () => {
  const manifest = (...words: string[]): ReturnType<typeof pagegate> => pagegate(['drop', 'manifest', ...words]);

  it('creates one that verify and build accept, and reports a signature of another one', () =>
    withTempDirectory(async (folder) => {
      const at = (name: string): string => join(folder, name);
      writeFileSync(at('a.ndjson'), '{"domain":"a.example"}\n');
      writeFileSync(at('notice'), 'Made for a test.');
      const first = manifest(folder, '--dataset', 'example', '--page-types', 'complete', '--notice', at('notice'));
      expect(first).toMatchObject({ status: 0, stdout: `${at('manifest.json')}: 1 part, 1 record.\n` });
      expect(readManifest(folder).manifest).toMatchObject({
        dataset: 'example',
        revision: 1,
        kind: 'full',
        page_types: 'complete',
        notice: 'Made for a test.',
      });
      expect(pagegate(['drop', 'verify', folder, '--unsigned']).status).toBe(0);
      writeFileSync(at('manifest.json.sig'), 'x');
      const second = manifest(folder, '--dataset', 'example', '--revision', '2', '--json');
      expect(JSON.parse(second.stdout)).toMatchObject({ parts: 1, records: 1, stale_signature: true });
      expect(readManifest(folder).manifest.revision).toBe(2);
    }));

  it('refuses invalid input with one line, and keeps the existing manifest', () =>
    withTempDirectory((folder) => {
      writeFileSync(join(folder, 'a.ndjson'), '{"domain":"a.example"}\n');
      expect(manifest(folder, '--dataset', 'example').status).toBe(0);
      const before = readFileSync(join(folder, 'manifest.json'), 'utf8');
      for (const [words, status, message] of [
        [[folder], 2, /required option '--dataset/],
        [[folder, '--dataset', 'd', '--page-types', 'all'], 2, /'all' is invalid/],
        [[folder, '--dataset', 'd', '--revision', '0'], 2, /whole number from 1/],
        [[folder, '--dataset', 'Bad Name'], 3, /\[manifest_invalid\]/],
        [[folder, '--dataset', 'd', '--created', 'yesterday'], 3, /\[manifest_invalid\]/],
        [[folder, '--dataset', 'd', '--notice', join(folder, 'none')], 7, /\[notice_unreadable\]/],
        [[join(folder, 'none'), '--dataset', 'd'], 3, /\[drop_no_parts\]/],
      ] as const) {
        const { status: found, stderr } = manifest(...words);
        expect([words, found]).toEqual([words, status]);
        expect(stderr).toMatch(message);
        expect(stderr).not.toMatch(/\n\s+at /);
      }
      expect(readFileSync(join(folder, 'manifest.json'), 'utf8')).toBe(before);
    }));

  it('reports that its destination cannot be written', () =>
    withTempDirectory((folder) => {
      writeFileSync(join(folder, 'a.ndjson'), '{"domain":"a.example"}\n');
      mkdirSync(join(folder, 'manifest.json'));
      const { status, stderr } = manifest(folder, '--dataset', 'd');
      expect(status).toBe(7);
      expect(stderr).toMatch(/\[drop_not_written\]\n$/);
      expect(readdirSync(folder).sort()).toEqual(['a.ndjson', 'manifest.json']);
    }));
});
