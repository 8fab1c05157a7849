/** Files that are not an index, or that cannot be trusted. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { openIndex } from '../../src/index/read.ts';
import { verifyIndex } from '../../src/index/verify.ts';
import { smallNames, withTempDirectory, writeTinyIndex } from '../support/tiny-index.ts';
import { sampleEntries } from './support.ts';

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof PagegateError) return error.code;
    throw error;
  }
  return 'ok';
}

const entries = sampleEntries(20);

describe('opening', () => {
  it('refuses everything except a regular file', async () => {
    await withTempDirectory(async (directory) => {
      const socket = join(directory, 'socket');
      const server = createServer();
      await new Promise<void>((resolve) => void server.listen(socket, resolve));
      const pipe = join(directory, 'pipe');
      execFileSync('mkfifo', [pipe]);
      mkdirSync(join(directory, 'folder'));
      for (const path of [socket, pipe, join(directory, 'folder'), '/dev/null']) {
        expect([path, codeOf(() => openIndex(path))]).toEqual([path, 'index_not_a_file']);
        await expect(verifyIndex(path)).rejects.toMatchObject({ code: 'index_not_a_file' });
      }
      expect(codeOf(() => openIndex(join(directory, 'nothing')))).toBe('index_missing');
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    });
  });

  it('refuses a file that is empty, truncated, not an index, or writable by others', () => {
    withTempDirectory((directory) => {
      const write = (name: string, bytes: string): string => {
        const path = join(directory, name);
        writeFileSync(path, bytes, { mode: 0o444 });
        return path;
      };
      expect(codeOf(() => openIndex(write('empty', '')))).toBe('index_corrupt');
      expect(codeOf(() => openIndex(write('short', 'x'.repeat(255))))).toBe('index_not_recognized');
      expect(codeOf(() => openIndex(write('letter', 'x')))).toBe('index_not_recognized');
      expect(codeOf(() => openIndex(write('text', 'x'.repeat(5000))))).toBe('index_not_recognized');
      const path = join(directory, 'good.pgx');
      writeTinyIndex(path, entries, { names: smallNames });
      for (const [mode, code] of [
        [0o444, 'ok'],
        [0o600, 'ok'],
        [0o464, 'index_unsafe_mode'],
        [0o446, 'index_unsafe_mode'],
        [0o666, 'index_unsafe_mode'],
      ] as const) {
        chmodSync(path, mode);
        expect([mode, codeOf(() => openIndex(path).close())]).toEqual([mode, code]);
      }
      chmodSync(path, 0o644);
      symlinkSync(path, join(directory, 'link.pgx'));
      expect(codeOf(() => openIndex(join(directory, 'link.pgx')).close())).toBe('ok');
      truncateSync(path, 1000);
      expect(codeOf(() => openIndex(path))).toBe('index_corrupt');
    });
  });

  it('gives the reason why a path cannot be opened', async () => {
    await withTempDirectory(async (directory) => {
      const loop = join(directory, 'loop');
      symlinkSync(loop, loop);
      const file = join(directory, 'file');
      writeFileSync(file, '');
      for (const [path, reason] of [
        [loop, 'ELOOP'],
        [join(directory, 'x'.repeat(300)), 'ENAMETOOLONG'],
        [join(file, 'index.pgx'), 'ENOTDIR'],
      ] as const) {
        expect(() => openIndex(path)).toThrowError(expect.objectContaining({ code: 'index_unreadable' }));
        expect(() => openIndex(path)).toThrowError(reason);
        await expect(verifyIndex(path)).rejects.toMatchObject({ code: 'index_unreadable' });
      }
    });
  });

  it('reports an index that is truncated within its header like any other damage', async () => {
    await withTempDirectory(async (directory) => {
      const path = join(directory, 'good.pgx');
      writeTinyIndex(path, entries, { names: smallNames });
      const bytes = readFileSync(path);
      for (const size of [1, 7, 8, 100, 255]) {
        const cut = join(directory, `cut-${size}`);
        writeFileSync(cut, bytes.subarray(0, size), { mode: 0o444 });
        expect(codeOf(() => openIndex(cut))).toBe('index_corrupt');
        expect(await verifyIndex(cut)).toMatchObject({ ok: false, damages: [{ offset: 0, sizeBytes: size }] });
      }
    });
  });

  it('reports what was found, what was expected and what to do', () => {
    withTempDirectory((directory) => {
      const path = join(directory, 'good.pgx');
      writeTinyIndex(path, entries, { names: smallNames });
      chmodSync(path, 0o664);
      expect(() => openIndex(path)).toThrowError(/chmod 0444 .*good\.pgx.* 0664, expected 0444/);
    });
  });

  it('keeps serving a mapped file that was replaced by name', () => {
    withTempDirectory((directory) => {
      const path = join(directory, 'good.pgx');
      writeTinyIndex(path, entries, { names: smallNames });
      const index = openIndex(path);
      execFileSync('mv', [path, `${path}.old`]);
      execFileSync('rm', ['-f', `${path}.old`]);
      expect(index.decode(index.find(entries[0]!.domain)).domain).toBe(entries[0]!.domain);
      index.close();
    });
  });
});
