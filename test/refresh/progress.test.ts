/** The progress of a refresh, as other processes read it in the store. It is ignored if it is old, foreign or invalid. */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { progressLine } from '../../src/commands/shared/output.ts';
import { percentOf } from '../../src/progress.ts';
import { ProgressFile, readProgress } from '../../src/refresh/progress.ts';

let store: string;
const file = (): string => join(store, 'progress.json');

beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), 'pagegate-progress-'));
});
afterEach(() => rmSync(store, { recursive: true, force: true }));

describe('the progress of a refresh', () => {
  it('is read back as written, and ends with the refresh', () => {
    const running = new ProgressFile(store);
    expect(readProgress(store)).toBeUndefined();
    running.update({ what: 'reading the drop', share: 0.25, detail: '3 s left' });
    expect(readProgress(store)).toMatchObject({
      pid: process.pid,
      what: 'reading the drop',
      share: 0.25,
      detail: '3 s left',
    });
    running.done();
    expect(readdirSync(store)).toEqual([]);
  });

  it('leaves no temporary file if it cannot be put into place', () => {
    mkdirSync(join(file(), 'taken'), { recursive: true });
    new ProgressFile(store).update({ what: 'reading the drop' });
    expect(readdirSync(store)).toEqual(['progress.json']);
    rmSync(store, { recursive: true });
    new ProgressFile(store).update({ what: 'reading the drop' });
    expect(existsSync(store)).toBe(false);
  });

  it('is written at most twice a second, and shortened to what a page shows', () => {
    const running = new ProgressFile(store);
    running.update({ what: 'x'.repeat(10_000) });
    running.update({ what: 'later' });
    expect(readProgress(store)?.what).toBe('x'.repeat(200));
    running.done();
  });

  it('never makes a refresh fail, even if the folder does not exist', () => {
    const running = new ProgressFile(join(store, 'none'));
    running.update({ what: 'checking the drop' });
    running.done();
    expect(existsSync(join(store, 'none'))).toBe(false);
  });

  it('of another process is left alone by this one', () => {
    const text = JSON.stringify({ pid: process.ppid, started: '2026-01-01T00:00:00Z', what: 'checking the drop' });
    writeFileSync(file(), text);
    new ProgressFile(store).done();
    expect(readFileSync(file(), 'utf8')).toBe(text);
    expect(readProgress(store)?.pid).toBe(process.ppid);
  });

  const dead = spawnSync(process.execPath, ['--version']).pid;
  it.each([
    ['a process that has ended', JSON.stringify({ pid: dead, started: '2026-01-01T00:00:00Z', what: 'x' })],
    ['no JSON', '{'],
    ['null', 'null'],
    ['a number as words', JSON.stringify({ pid: process.pid, started: '2026-01-01T00:00:00Z', what: 1 })],
    ['an older form', JSON.stringify({ pid: process.pid, started: '2026-01-01T00:00:00Z', text: 'x' })],
    [
      'more than a page shows',
      JSON.stringify({ pid: process.pid, started: '2026-01-01T00:00:00Z', what: 'x'.repeat(5_000) }),
    ],
  ])('is not read from %s', (_, text) => {
    writeFileSync(file(), text);
    expect(readProgress(store)).toBeUndefined();
  });

  it('ends if it was not renewed for a minute', () => {
    const running = new ProgressFile(store);
    running.update({ what: 'verifying the index' });
    const then = Date.now() / 1_000 - 61;
    utimesSync(file(), then, then);
    expect(readProgress(store)).toBeUndefined();
  });
});

describe('a line of progress', () => {
  it.each([
    [{ what: 'checking the drop' }, 'checking the drop'],
    [{ what: 'looking up', detail: '5 lines' }, 'looking up  5 lines'],
    [{ what: 'verifying', share: 0 }, `verifying  ${'░'.repeat(24)}   0 %`],
    [{ what: 'verifying', share: 1, detail: '' }, `verifying  ${'█'.repeat(24)} 100 %`],
  ])('of %o', (progress, line) => {
    expect(progressLine(progress)).toBe(line);
  });

  it('shows 100 only at the end, and never more', () => {
    expect([0.999_999, 1, 1.5, -1].map(percentOf)).toEqual([99, 100, 100, 0]);
  });
});
