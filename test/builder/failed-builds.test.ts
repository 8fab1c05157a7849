/** How a build that cannot continue ends: with a named error, and without leftovers. */
import { execFileSync, spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildIndex } from '../../src/builder/build.ts';
import { SpaceWatch } from '../../src/builder/files/disk-space.ts';
import { PAGEGATE } from '../../tools/installation.ts';
import { makeDrop, rewriteManifest } from './small-drops.ts';

let folder = '';
let out = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-ending-test-'));
  mkdirSync(join(folder, 'out'));
  out = join(folder, 'out', 'index.pgx');
  const many = Array.from({ length: 60_000 }, (_, i) => {
    const site = `https://www.host-${i}.example`;
    return { domain: `host-${i}.example`, page_types: { login: `${site}/${i * 7919}/in`, docs: `${site}/docs/${i}` } };
  });
  await makeDrop(join(folder, 'large'), { 'a.ndjson': many, 'b.ndjson': '{"domain":"localhost"}\n'.repeat(9000) });
  const manifest = await makeDrop(join(folder, 'broken'), { 'a.ndjson.gz': [{ domain: 'a.example' }] });
  const bytes = gzipSync('{"domain":"a.example"}\n').subarray(0, -3);
  writeFileSync(join(folder, 'broken', 'a.ndjson.gz'), bytes);
  const sha256 = hash('sha256', bytes);
  const files = [{ ...manifest.files[0], bytes: bytes.length, sha256 }];
  rewriteManifest(join(folder, 'broken'), { ...manifest, files });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

/** Runs a build with a limit on file sizes, in blocks of 1,024 bytes. It is interrupted this long after it has created its workspace. */
async function run(drop: string, workers: number, blocks = 'unlimited', interruptMs?: number): Promise<Ended> {
  const args = ['build', join(folder, drop), '--out', out, '--workers', `${workers}`, '--json'];
  const script = 'ulimit -f "$0"; exec "$@"';
  const child = spawn('bash', ['-c', script, blocks, PAGEGATE, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // bash prints a warning for a locale that is not installed.
    env: { ...process.env, LC_ALL: 'C' },
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, stderr }));
  });
  if (interruptMs !== undefined) {
    while (readdirSync(join(folder, 'out')).length === 0 && child.exitCode === null) await wait(1);
    await wait(interruptMs);
    child.kill('SIGINT');
  }
  return ended;
}

describe('a build', () => {
  it('ends properly if its first part is damaged and its other threads have hardly started', async () => {
    for (let i = 0; i < 5; i++) {
      const { code, signal, stderr } = await run('broken', 4);
      expect({ code, signal }).toEqual({ code: 3, signal: null });
      expect(JSON.parse(stderr)).toMatchObject({ error: 'drop_part_truncated' });
      expect(readdirSync(join(folder, 'out'))).toEqual([]);
    }
  });

  it('ends properly if it is interrupted while its threads start', async () => {
    for (let i = 0; i < 5; i++) {
      const { code, signal } = await run('large', 4, 'unlimited', 40 * i);
      expect({ code, signal }).toEqual({ code: 130, signal: null });
      expect(readdirSync(join(folder, 'out'))).toEqual([]);
    }
  });

  it.each([0, 2])('reports a file that cannot grow as a lack of space (%i threads)', async (workers) => {
    // Affects the temporary files or the rejects, whichever reaches the limit first.
    for (const blocks of ['20', '500']) {
      const { code, stderr } = await run('large', workers, blocks);
      expect(JSON.parse(stderr)).toMatchObject({ error: 'build_no_space' });
      expect(code).toBe(7);
      expect(readdirSync(join(folder, 'out'))).toEqual([]);
    }
  });

  it('keeps the rejects of an earlier build if it is interrupted at its end', async () => {
    await makeDrop(join(folder, 'dirty'), { 'a.ndjson': '{"domain":"localhost"}\n' });
    const rejectsFile = `${out}.rejects`;
    const old = '{"file":"old","line":1,"level":"line","reason":"r","detail":""}\n';
    writeFileSync(rejectsFile, old);
    const controller = new AbortController();
    const onProgress = ({ step }: { step: string }): void => {
      if (step === 'verify') controller.abort(new Error('stopped'));
    };
    const options = { drop: join(folder, 'dirty'), out, generation: 1, workers: 0, rejectsFile, onProgress };
    await expect(buildIndex({ ...options, signal: controller.signal })).rejects.toThrow('stopped');
    // Like Ctrl-C: the signal is handled after the last step.
    const late = new AbortController();
    const stopLate = ({ step }: { step: string }): void => {
      if (step === 'verify') setImmediate(() => setImmediate(() => late.abort(new Error('stopped'))));
    };
    await expect(buildIndex({ ...options, onProgress: stopLate, signal: late.signal })).rejects.toThrow('stopped');
    expect(readFileSync(rejectsFile, 'utf8')).toBe(old);
    expect(readdirSync(join(folder, 'out'))).toEqual(['index.pgx.rejects']);
    rmSync(rejectsFile);
  });
});

/** Mounts a file system of 24 MiB, which needs root. Returns undefined if this machine does not allow it. */
function mountSmall(): string | undefined {
  const place = mkdtempSync(join(folder, 'small-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', place], { stdio: 'pipe' });
    return place;
  } catch {
    return undefined;
  }
}

describe.runIf(process.getuid?.() === 0)('a build that needs more space than estimated', () => {
  it('ends before it fills the disk, and reports what it needs', async (context) => {
    const place = mountSmall() ?? context.skip();
    try {
      // A compressor finds these repetitions, the index does not: it only shares paths that several sites have.
      const sites = Array.from({ length: 5_000 }, (_, i) => {
        const path = Array.from({ length: 9 }, (_, k) => hash('sha256', `${i} ${k}`, 'base64url')).join('');
        const types = ['login', 'signup', 'checkout', 'cart', 'docs', 'pricing', 'careers', 'legal'];
        const pages = types.map((type) => [type, `https://s${i}.example/${path}/${type}`]);
        return { domain: `s${i}.example`, page_types: Object.fromEntries(pages) };
      });
      await makeDrop(join(folder, 'alike'), { 'a.ndjson': sites });
      const options = { drop: join(folder, 'alike'), out: join(place, 'index.pgx'), generation: 1, workers: 0 };
      await expect(buildIndex(options)).rejects.toMatchObject({
        code: 'build_no_space',
        details: { folder: place, needed_bytes: expect.any(Number) },
      });
      expect(readdirSync(place)).toEqual([]);
    } finally {
      execFileSync('umount', [place]);
    }
  });

  it('is checked while its temporary files grow', async (context) => {
    const place = mountSmall() ?? context.skip();
    const watch = new SpaceWatch(place, place);
    try {
      await watch.check();
      writeFileSync(join(place, 'records-0'), Buffer.alloc(12 << 20));
      await expect(watch.exhausted).rejects.toMatchObject({ code: 'build_no_space' });
    } finally {
      watch.stop();
      execFileSync('umount', [place]);
    }
  });
});
