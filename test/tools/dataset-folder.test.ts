/** The output folder of the dataset generator: it replaces only an earlier output, and reports in one line if it cannot. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DATASET_ID, prepareFolder } from '../../tools/dataset/folder.ts';

const tool = fileURLToPath(new URL('../../tools/dataset/generate.ts', import.meta.url));
let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-dataset-folder-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the generator in a shell, after `before`, which can set limits. `out` is the folder as a shell word. */
function generate(out: string, before = ''): { readonly status: number | null; readonly stderr: string } {
  const command = `${before} exec "${process.execPath}" "${tool}" --records 2000 --workers 1 --out ${out}`;
  // bash prints a warning for a locale that is not installed.
  const env = { ...process.env, LC_ALL: 'C' };
  return spawnSync('bash', ['-c', command], { encoding: 'utf8', env, timeout: 300_000 });
}

describe('the generator’s folder', () => {
  it('contains the new drop, and nothing of the previous one', () => {
    const out = join(folder, 'drop');
    mkdirSync(out);
    const files = [{ name: 'part-0.ndjson.gz' }, { name: 'part-1.ndjson.gz' }, { name: '../outside.ndjson' }];
    for (const { name } of files) writeFileSync(join(out, name), 'x');
    writeFileSync(join(out, 'manifest.json'), JSON.stringify({ dataset: DATASET_ID, files }));
    writeFileSync(join(out, 'manifest.json.sig'), 'x');
    expect(generate(`'${out}'`)).toMatchObject({ status: 0 });
    expect(readdirSync(out).sort()).toEqual(['manifest.json', 'part-0.ndjson']);
    expect(readdirSync(folder)).toContain('outside.ndjson');
    // An incomplete drop has no manifest, and is replaced.
    rmSync(join(out, 'manifest.json'));
    expect(generate(`'${out}'`)).toMatchObject({ status: 0 });
  });

  it.each([
    ['another drop', { 'manifest.json': '{"dataset":"other","files":[]}', 'a.ndjson': 'x' }],
    ['a manifest that is not JSON', { 'manifest.json': 'x', 'part-0.ndjson': 'x' }],
    ['parts of something else', { 'a.ndjson.zst': 'x' }],
  ])('is refused with %s in it, and left alone', (name, files) => {
    const out = join(folder, name);
    mkdirSync(out);
    for (const [file, text] of Object.entries(files)) writeFileSync(join(out, file), text);
    expect(() => prepareFolder(out, ['part-0.ndjson'])).toThrow('choose another folder');
    for (const [file, text] of Object.entries(files)) expect(readFileSync(join(out, file), 'utf8')).toBe(text);
  });

  it('is reported in one line if it cannot be written', () => {
    writeFileSync(join(folder, 'file'), '');
    const attempts = [
      generate('- >/dev/full'),
      generate(`'${join(folder, 'file')}'`),
      generate('/proc/nowhere'),
      generate(`'${join(folder, 'small')}'`, 'ulimit -f 100;'),
    ];
    for (const { status, stderr } of attempts) {
      expect(status).toBe(7);
      expect(stderr).toMatch(/^E[A-Z]+: .+\n$/);
    }
    expect(readdirSync(join(folder, 'small'))).not.toContain('manifest.json');
  });
});
