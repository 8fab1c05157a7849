import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { describeProgress, megabytes } from '../../src/builder/progress.ts';
import { progressLine } from '../../src/commands/shared/output.ts';
import { PAGEGATE } from '../../tools/installation.ts';
import { makeDrop } from '../builder/small-drops.ts';

let folder = '';
let out = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-build-command-'));
  const lines = [{ domain: 'one.example' }, { domain: 'two.example', global_rank: 0 }, { domain: 'localhost' }];
  await makeDrop(join(folder, 'small'), { 'a.ndjson': lines });
  const many = Array.from({ length: 150_000 }, (_, i) => ({ domain: `www.host-${i}.example`, x: 1 }));
  await makeDrop(join(folder, 'large'), { 'a.ndjson': many });
  out = join(folder, 'out', 'index.pgx');
});
beforeEach(() => {
  rmSync(join(folder, 'out'), { recursive: true, force: true });
  mkdirSync(join(folder, 'out'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(...args: string[]): { readonly child: ChildProcess; readonly ended: Promise<Ended> } {
  const child = spawn(PAGEGATE, ['build', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended };
}

describe('pagegate build', () => {
  it('reports as text, and stores rejects next to the index', async () => {
    const { code, stdout, stderr } = await start(join(folder, 'small'), '--out', out, '--workers', '1').ended;
    expect(code).toBe(0);
    expect(stderr).toMatch(/^3 lines in 1 part, 1 thread; up to [0-9.]+ MB of temporary files in .+\n$/);
    expect(stdout).toContain('2 records');
    expect(stdout).toMatch(/domain_single_label +1\n/);
    expect(stdout).toMatch(/global_rank_out_of_range +1\n/);
    expect(readdirSync(join(folder, 'out')).sort()).toEqual(['index.pgx', 'index.pgx.rejects.ndjson']);
  });

  it('reports as JSON', async () => {
    const { code, stdout } = await start(
      join(folder, 'small'),
      '--out',
      out,
      '--workers',
      '0',
      '--no-rejects',
      '--json',
      '--generation',
      '9',
    ).ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      generation: 9,
      lines: 3,
      records: 2,
      rejects_file: null,
      workers: 0,
    });
  });

  it.each([
    ['no output', ['small'], 2],
    ['an invalid number', ['small', '--out', 'x', '--workers', 'many'], 2],
    ['no drop', ['nowhere', '--out', 'x'], 3],
  ])('%s: the failure says what to do', async (_, [drop = '', ...rest], expected) => {
    const { code, stdout, stderr } = await start(join(folder, drop), ...rest).ended;
    expect(code).toBe(expected);
    expect(stdout).toBe('');
    expect(stderr).not.toContain('    at ');
  });

  it.each([
    ['Ctrl-C', 'SIGINT'],
    ['a termination signal', 'SIGTERM'],
    ['a terminal that goes away', 'SIGHUP'],
  ] as const)('stops at %s and leaves nothing behind', async (_, signal) => {
    const { child, ended } = start(join(folder, 'large'), '--out', out, '--workers', '1');
    while (readdirSync(join(folder, 'out')).length === 0 && child.exitCode === null) await wait(5);
    child.kill(signal);
    expect((await ended).code).toBe(130);
    expect(readdirSync(join(folder, 'out'))).toEqual([]);
  });

  it('removes the files of a killed build', async () => {
    const { child, ended } = start(join(folder, 'large'), '--out', out, '--workers', '1');
    const inside = (): string[] => readdirSync(join(folder, 'out'), { recursive: true, encoding: 'utf8' });
    while (!inside().some((path) => path.endsWith('/lock')) && child.exitCode === null) await wait(5);
    child.kill('SIGKILL');
    await ended;
    expect(inside().some((path) => path.startsWith('.pagegate-build-'))).toBe(true);
    const { code } = await start(join(folder, 'small'), '--out', out, '--workers', '0', '--no-rejects').ended;
    expect(code).toBe(0);
    expect(inside()).toEqual(['index.pgx']);
  });
});

describe('sizes', () => {
  it.each([
    [0, '0 MB'],
    [900, '0.001 MB'],
    [14_690, '0.015 MB'],
    [3_801_000, '3.8 MB'],
    [1_743_042_669, '1,743 MB'],
  ])('%i bytes are %s', (bytes, text) => {
    expect(megabytes(bytes)).toBe(text);
  });
});

describe('the progress line', () => {
  it('shows step, share, rate and time left', () => {
    const progress = describeProgress({
      step: 'scan',
      done: 5e8,
      total: 1e9,
      unit: 'bytes',
      elapsedMs: 2000,
      leftMs: 2000,
    });
    expect(progressLine(progress)).toBe('reading the drop  ████████████░░░░░░░░░░░░  50 %  250 MB/s  2 s left');
  });
});
