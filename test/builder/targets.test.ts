/** The paths that a build writes to. It refuses them at its start if they are a mistake, in use or not writable. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildIndex } from '../../src/builder/build.ts';
import { removeLeftovers } from '../../src/builder/files/workspace.ts';
import type { BuildOptions } from '../../src/builder/options.ts';
import { makeFolder } from '../../src/platform/folders.ts';
import { makeDrop } from './small-drops.ts';

const CLEAN = '{"domain":"a.example"}\n';
const DIRTY = `${CLEAN}{"domain":"localhost"}\n`;
let folder = '';
let out = '';
let rejects = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-targets-test-'));
  out = join(folder, 'index.pgx');
  rejects = join(folder, 'rejects');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function build(content: string, options: Partial<BuildOptions> = {}): Promise<unknown> {
  await makeDrop(join(folder, 'drop'), { 'a.ndjson': content });
  return await buildIndex({ drop: join(folder, 'drop'), out, generation: 1, workers: 0, ...options });
}

/** Returns the code of the error that a build throws before it starts. */
async function refusal(options: Partial<BuildOptions>, content = DIRTY): Promise<string> {
  let hasBegun = false;
  const onStart = (): void => {
    hasBegun = true;
  };
  const code = await build(content, { ...options, onStart }).then(
    () => 'none',
    (error: unknown) => String((error as { code?: string }).code),
  );
  return hasBegun ? `${code}, too late` : code;
}

describe('the rejects', () => {
  it.each([
    ['clean', CLEAN],
    ['dirty', DIRTY],
  ])('of a %s drop replace only an earlier report of rejects', async (_, content) => {
    writeFileSync(rejects, 'my notes\n');
    expect(await refusal({ rejectsFile: rejects }, content)).toBe('build_output_exists');
    writeFileSync(rejects, '{"file":"a"}\n');
    expect(await refusal({ rejectsFile: rejects }, content)).toBe('build_output_exists');
    expect(readFileSync(rejects, 'utf8')).toBe('{"file":"a"}\n');
    writeFileSync(rejects, '');
    await build(content, { rejectsFile: rejects });
    await build(DIRTY, { rejectsFile: rejects });
    expect(readFileSync(rejects, 'utf8')).toContain('domain_single_label');
    await build(content, { rejectsFile: rejects });
    expect(existsSync(rejects)).toBe(content === DIRTY);
  });

  it('replace no link, folder or pipe', async () => {
    writeFileSync(join(folder, 'elsewhere'), '');
    symlinkSync('elsewhere', rejects);
    for (const content of [CLEAN, DIRTY]) {
      expect(await refusal({ rejectsFile: rejects }, content)).toBe('build_output_exists');
    }
    expect(lstatSync(rejects).isSymbolicLink()).toBe(true);
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const path of [pipe, folder]) {
      expect(await refusal({ rejectsFile: path })).toBe('build_output_exists');
      expect(existsSync(path)).toBe(true);
    }
  });

  it('are not written to the path of the index, however it is spelled', async () => {
    await build(CLEAN);
    symlinkSync('.', join(folder, 'here'));
    linkSync(out, join(folder, 'hard'));
    for (const path of [out, join(folder, 'drop/../index.pgx'), join(folder, 'here/index.pgx'), join(folder, 'hard')]) {
      expect(await refusal({ rejectsFile: path })).toBe('build_path');
    }
    expect(existsSync(out)).toBe(true);
    rmSync(out);
    expect(await refusal({ rejectsFile: join(folder, 'here/index.pgx') })).toBe('build_path');
  });

  it('of a killed build that are unfinished are removed by the next build', async () => {
    writeFileSync(`${rejects}.building-${process.pid}`, 'x');
    removeLeftovers(folder, out, rejects);
    expect(readdirSync(folder)).toEqual([]);
    // Even if the next one keeps no rejects.
    writeFileSync(`${out}.rejects.ndjson.building-${process.pid}`, 'x');
    await build(DIRTY);
    expect(readdirSync(folder).sort()).toEqual(['drop', 'index.pgx']);
  });
});

describe('the index', () => {
  it('replaces an index of any version and state or an empty file, and nothing else', async () => {
    for (const there of ['', '\x89PGX\r\n\x1a\n', `\x89PGX\r\n\x1a\n\x01${'x'.repeat(500)}`]) {
      writeFileSync(out, there, 'latin1');
      await build(CLEAN);
      expect(readFileSync(out).length).toBeGreaterThan(1000);
    }
    for (const there of ['my notes\n', 'x', '\x89PGX\r\n\x1a', CLEAN]) {
      writeFileSync(out, there, 'latin1');
      expect([there, await refusal({})]).toEqual([there, 'build_output_exists']);
      expect(readFileSync(out, 'latin1')).toBe(there);
    }
    await build(CLEAN, { force: true });
    expect(readFileSync(out).subarray(1, 4).toString()).toBe('PGX');
  });

  it('does not replace a file that was put into its place during the build', async () => {
    const onProgress = (): void => writeFileSync(out, 'my notes\n');
    await expect(build(CLEAN, { onProgress })).rejects.toMatchObject({ code: 'build_output_exists' });
    expect(readFileSync(out, 'utf8')).toBe('my notes\n');
    expect(readdirSync(folder).sort()).toEqual(['drop', 'index.pgx']);
  });

  it('replaces no link, folder or pipe, even with --force', async () => {
    const target = join(folder, 'target');
    writeFileSync(target, 'kept');
    for (const make of [
      () => symlinkSync(target, out),
      () => mkdirSync(out),
      () => void execFileSync('mkfifo', [out]),
    ]) {
      make();
      for (const force of [false, true]) expect(await refusal({ force })).toBe('build_output_exists');
      rmSync(out, { recursive: true });
    }
    expect(readFileSync(target, 'utf8')).toBe('kept');
  });

  it.each(['manifest.json', 'manifest.json.sig', 'a.ndjson', 'empty.ndjson'])(
    "and the rejects never replace the drop's %s, however the path is spelled",
    async (name) => {
      const drop = join(folder, 'drop');
      await makeDrop(drop, { 'a.ndjson': DIRTY, 'empty.ndjson': '' });
      writeFileSync(join(drop, 'manifest.json.sig'), '');
      const before = readFileSync(join(drop, name));
      linkSync(join(drop, name), out);
      symlinkSync(drop, join(folder, 'link'));
      for (const path of [join(drop, name), out, join(folder, 'link', name)]) {
        for (const options of [
          { out: path, force: true },
          { rejectsFile: path, out: join(folder, 'other.pgx') },
        ]) {
          const refused = buildIndex({ drop, generation: 1, workers: 0, ...options });
          await expect(refused).rejects.toMatchObject({ code: 'build_path' });
        }
      }
      expect(readFileSync(join(drop, name))).toEqual(before);
    },
  );
});

describe('a path', () => {
  it('that names no file is refused', async () => {
    for (const path of ['', 'new/', '.', '..', join(folder, 'new/'), `${folder}/..`]) {
      expect(await refusal({ out: path })).toBe('build_path');
      expect(await refusal({ rejectsFile: path })).toBe('build_path');
    }
    expect(await refusal({ tempDir: '' })).toBe('build_path');
  });

  it('that can never be written is distinguished from a failure of the machine, before the work begins', async () => {
    writeFileSync(join(folder, 'file'), '');
    symlinkSync('loop', join(folder, 'loop'));
    const paths = ['file/x', 'loop/x', 'n'.repeat(255), `${'n'.repeat(300)}/x`].map((path) => join(folder, path));
    for (const path of paths) {
      expect(await refusal({ out: path })).toBe('build_path');
      expect(await refusal({ rejectsFile: path })).toBe('build_path');
    }
    for (const path of [join(folder, 'file'), join(folder, 'file/x'), join(folder, 'loop')]) {
      expect(await refusal({ tempDir: path })).toBe('build_path');
      await expect(build(DIRTY, { tempDir: path })).rejects.toThrow(`${path}`);
    }
    for (const name of ['out', 'rejectsFile', 'tempDir'])
      expect(await refusal({ [name]: '/proc/nowhere/x' })).toBe('build_failed');
    expect(readdirSync(folder).sort()).toEqual(['drop', 'file', 'loop']);
  });

  it.each<[string, Partial<BuildOptions>]>([
    ['is refused', { rejectsFile: 'x' }],
    ['is interrupted', { signal: AbortSignal.abort(new Error('stop')) }],
    ['cannot make the last one', { tempDir: '/proc/nowhere/x' }],
  ])('leaves no folder behind if the build %s', async (_how, options) => {
    const under = (name: string): string => join(folder, name, 'b', 'c');
    mkdirSync(join(folder, 'kept'));
    const paths = { rejectsFile: under('y'), tempDir: under('z'), ...options };
    if (options.rejectsFile !== undefined) paths.rejectsFile = under('kept');
    await expect(build(DIRTY, { ...paths, out: under('kept') })).rejects.toThrow();
    expect(readdirSync(folder).sort()).toEqual(['drop', 'kept']);
    expect(readdirSync(join(folder, 'kept'))).toEqual([]);
  });

  it('may be in folders that do not exist yet', async () => {
    const under = (path: string): string => join(folder, path, 'b', 'c');
    await build(DIRTY, { out: under('x'), rejectsFile: under('y'), tempDir: under('z') });
    expect([existsSync(under('x')), existsSync(under('y')), readdirSync(under('z'))]).toEqual([true, true, []]);
  });
});

describe('a folder', () => {
  it('is created with its parents, and may exist already', () => {
    makeFolder(join(folder, 'a/b/c'));
    makeFolder(join(folder, 'a/b/c'));
    expect(existsSync(join(folder, 'a/b/c'))).toBe(true);
  });

  it('that no file system allows causes an error, not an endless loop', () => {
    expect(() => makeFolder('/proc/nowhere/x')).toThrow('ENOENT');
    mkdirSync(join(folder, 'a'));
    symlinkSync('nowhere', join(folder, 'a/dangling'));
    expect(() => makeFolder(join(folder, 'a/dangling'))).toThrow('EEXIST');
  });
});

describe('threads', () => {
  it('are never more than useful', async () => {
    let workers = 0;
    const stop = new Error('seen');
    const onStart = (plan: { workers: number }): void => {
      workers = plan.workers;
      throw stop;
    };
    await expect(build(CLEAN, { workers: 999_999_999, onStart })).rejects.toBe(stop);
    expect(workers).toBe(256);
    expect(readdirSync(folder)).toEqual(['drop']);
  });
});
