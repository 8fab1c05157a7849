import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { buildIndex } from '../../src/builder/build.ts';
import { makeManifest } from '../../tools/make-manifest.ts';
import { makeDrop } from '../builder/drop.ts';
import { withTempDirectory } from '../support/tiny-index.ts';

it('counts lines as the builder does', () =>
  withTempDirectory(async (folder) => {
    const drop = join(folder, 'drop');
    const text = '\ufeff{"domain":"a.example"}\r\n\r\n\n{"domain":"b.example"}\n\n{"domain":"c.example"}';
    const manifest = await makeDrop(drop, { 'a.ndjson': text, 'b.ndjson.gz': '\n', 'c.ndjson.zst': '\r' });
    expect(manifest.files.map(({ records }) => records)).toEqual([3, 0, 0]);
    expect((await buildIndex({ drop, out: join(folder, 'index.pgx'), generation: 1, workers: 0 })).lines).toBe(3);
  }));

it('refuses what the schema refuses', () =>
  withTempDirectory(async (folder) => {
    mkdirSync(join(folder, 'drop'));
    await expect(
      makeManifest(join(folder, 'drop'), { dataset: 'Bad Name', revision: 1, created: 'now', pageTypes: 'partial' }),
    ).rejects.toMatchObject({ code: 'manifest_invalid' });
  }));
