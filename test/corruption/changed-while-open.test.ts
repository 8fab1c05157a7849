/** An index file that is written to, or truncated, while it is open. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { HEADER } from '../../src/index/format/layout.ts';
import { openIndex } from '../../src/index/read.ts';
import { openScan } from '../../src/index/read-all.ts';
import { verifyIndex } from '../../src/index/verify.ts';
import { CLI, pagegate } from '../support/program.ts';
import { smallNames, withTempDirectory, writeTinyIndex } from '../support/tiny-index.ts';
import { sampleEntries, sealHeader } from './support.ts';

/** Creates an index in a new folder, in a writable file. */
function withIndex<T>(count: number, task: (path: string, folder: string) => T): T {
  return withTempDirectory((folder) => {
    const path = join(folder, 'index.pgx');
    writeTinyIndex(path, sampleEntries(count), { names: smallNames });
    chmodSync(path, 0o644);
    return task(path, folder);
  });
}

/** Overwrites bytes of a file in place. */
function overwrite(path: string, bytes: Uint8Array, offset: number): void {
  const descriptor = openSync(path, 'r+');
  writeSync(descriptor, bytes, 0, bytes.length, offset);
  closeSync(descriptor);
}

describe('an open index', () => {
  it('has no problem while its file is unchanged, under any name', () =>
    withIndex(50, (path, folder) => {
      const index = openIndex(path);
      const problem = (): unknown => index.fileProblem();
      expect(problem()).toBeUndefined();
      readFileSync(path);
      chmodSync(path, 0o444);
      expect(problem()).toBeUndefined();
      renameSync(path, join(folder, 'other.pgx'));
      writeTinyIndex(path, sampleEntries(60), { names: smallNames });
      expect(problem()).toBeUndefined();
      rmSync(join(folder, 'other.pgx'));
      expect(problem()).toBeUndefined();
      index.close();
      expect(problem()).toBeUndefined();
    }));

  it.each<[string, (path: string) => void, string, RegExp]>([
    ['is cut', (path) => truncateSync(path, 5000), 'size', /its size was \d+ bytes and is 5000/],
    ['is emptied', (path) => truncateSync(path, 0), 'size', /and is 0/],
    ['grows', (path) => appendFileSync(path, 'x'), 'size', /its size was/],
    ['is copied over by another', (path) => copyFileSync(`${path}.other`, path), 'header', /its header is another one/],
    ['is written into', (path) => overwrite(path, Buffer.from([7]), 4000), 'times', /it was written to at 20/],
    [
      'is written to by a process that hides it',
      (path) => {
        const { atime, mtime } = statSync(path);
        const bytes = readFileSync(path);
        bytes[HEADER.recordCount.offset]! ^= 1;
        sealHeader(bytes);
        overwrite(path, bytes, 0);
        utimesSync(path, atime, mtime);
      },
      'header',
      /its header is another one/,
    ],
  ])('that %s has a problem', (_name, change, what, message) =>
    withIndex(200, (path) => {
      // The same size as the other one, and the same timestamps.
      const { atime, mtime } = statSync(path);
      writeTinyIndex(`${path}.other`, sampleEntries(200), { names: smallNames, metadata: { revision: 2 } });
      expect(statSync(`${path}.other`).size).toBe(statSync(path).size);
      utimesSync(`${path}.other`, atime, mtime);
      const index = openIndex(path);
      change(path);
      const problem = index.fileProblem();
      expect(problem).toMatchObject({ name: 'PagegateError', code: 'index_changed', details: { path, what } });
      expect(problem?.message).toMatch(message);
      index.close();
    }),
  );
});

describe('a file that is truncated while it is read sequentially', () => {
  it('ends a scan with an error', () =>
    withIndex(20_000, (path) => {
      const scan = openScan(path, { payloadChunkBytes: 4096 });
      let records = 0;
      const readOn = (): void => {
        while (scan.nextBucket()) while (scan.nextRecord()) records += records === 100 ? cut(path) : 1;
      };
      expect(readOn).toThrow(expect.objectContaining({ code: 'index_changed' }));
      expect(records).toBeGreaterThan(100);
      scan.close();
    }));

  it.each([0, 2])('ends a verification with an error, with %d threads', async (workers) =>
    withIndex(60_000, async (path) => {
      let isCut = false;
      const onProgress = (done: number): void => {
        if (isCut || done === 0) return;
        isCut = true;
        cut(path);
      };
      const verifying = verifyIndex(path, { workers, onProgress });
      await expect(verifying).rejects.toMatchObject({ code: 'index_changed', details: { path, what: 'size' } });
    }),
  );

  it('is not reported as intact if it was written to meanwhile, even if all bytes read were intact', async () =>
    withIndex(100, async (path) => {
      const bytes = readFileSync(path);
      const onProgress = (): void => overwrite(path, bytes.subarray(0, 8), 0);
      await expect(verifyIndex(path, { workers: 0, onProgress })).rejects.toMatchObject({
        code: 'index_changed',
        details: { what: 'times' },
      });
    }));

  it.each(['export', 'diff'])('ends %s with one line, not with a signal', async (command) =>
    withIndex(30_000, async (path, folder) => {
      const empty = join(folder, 'empty.pgx');
      writeTinyIndex(empty, [], { names: smallNames });
      const args = command === 'export' ? [path] : [empty, path];
      const child = spawn(process.execPath, [CLI, command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
      const stderr = text(child.stderr);
      // The command writes until the pipe is full, then waits.
      await once(child.stdout, 'readable');
      cut(path);
      child.stdout.resume();
      const [status, signal] = (await once(child, 'exit')) as [number | null, string | null];
      expect({ status, signal }).toEqual({ status: 5, signal: null });
      expect(await stderr).toMatch(/^pagegate: The index file was written to, or truncated, .*\[index_changed\]\n$/);
    }),
  );

  it('is reported by verify and inspect if it was truncated before', () =>
    withIndex(500, (path) => {
      cut(path);
      expect(pagegate(['verify', path])).toMatchObject({ status: 5, stderr: '' });
      expect(pagegate(['inspect', path]).stderr).toMatch(/\[index_corrupt\]\n$/);
      writeFileSync(path, readFileSync(path).subarray(0, 3));
      expect(pagegate(['verify', path]).stdout).toMatch(/DAMAGED/);
    }));
});

/** Truncates a file to its first quarter. */
function cut(path: string): number {
  truncateSync(path, Math.floor(statSync(path).size / 4));
  return 1;
}
