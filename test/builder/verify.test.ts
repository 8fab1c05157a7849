/** A new index that does not verify, as with a bad disk or bad memory. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { buildIndex } from '../../src/builder/build.ts';
import { makeDrop } from './small-drops.ts';

vi.mock('../../src/index/verify.ts', async (original) => ({
  ...(await original<typeof import('../../src/index/verify.ts')>()),
  verifyIndex: async (path: string) => ({
    path,
    sizeBytes: 1,
    recordCount: 1,
    ok: false,
    damages: [{ offset: 0, sizeBytes: 1, where: 'bucket 0', what: 'its checksum is wrong' }],
  }),
}));

const folder = mkdtempSync(join(tmpdir(), 'pagegate-verify-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('an index with a damaged bucket is not put into place', async () => {
  const drop = join(folder, 'drop');
  await makeDrop(drop, { 'a.ndjson': [{ domain: 'a.example' }] });
  const out = join(folder, 'index.pgx');
  await expect(buildIndex({ drop, out, generation: 1, workers: 0 })).rejects.toMatchObject({
    code: 'index_corrupt',
    what: 'What was just written does not verify: bucket 0: its checksum is wrong.',
  });
  expect(readdirSync(folder)).toEqual(['drop']);
});
