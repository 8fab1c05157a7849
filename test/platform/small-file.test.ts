import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { readSmallFile, type SmallFileOptions } from '../../src/platform/small-file.ts';

const MODULE = join(import.meta.dirname, '../../src/platform/small-file.ts');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-small-'));
  writeFileSync(join(folder, 'small'), 'text');
  symlinkSync('small', join(folder, 'link'));
  symlinkSync('link', join(folder, 'links'));
  symlinkSync('none', join(folder, 'nowhere'));
  mkdirSync(join(folder, 'folder'));
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  // A sparse file of many gigabytes.
  writeFileSync(join(folder, 'huge'), '');
  truncateSync(join(folder, 'huge'), 2 ** 40);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const at = (name: string): string => (name.startsWith('/') ? name : join(folder, name));
const codes = { code: 'config_unreadable', kindCode: 'drop_file_kind', sizeCode: 'drop_too_large' } as const;

function failure(name: string, options: Partial<SmallFileOptions> = {}): PagegateError {
  try {
    readSmallFile(at(name), { ...codes, maxBytes: 16, ...options });
  } catch (error) {
    if (error instanceof PagegateError) return error;
    throw error;
  }
  throw new Error('It was read.');
}

describe('a small file', () => {
  it.each(['small', 'link', 'links'])('is read, also through links: %s', (name) => {
    expect(readSmallFile(at(name), { ...codes, maxBytes: 4 }).toString()).toBe('text');
  });

  const regular = { expected: 'a regular file' };
  it.each<[string, string, object, Partial<SmallFileOptions>?]>([
    ['pipe', 'drop_file_kind', { ...regular, got: 'a pipe' }],
    ['pipe', 'drop_file_kind', { ...regular, got: 'a pipe' }, { stdin: true }],
    ['folder', 'drop_file_kind', { ...regular, got: 'a folder' }],
    ['/dev/zero', 'drop_file_kind', { ...regular, got: 'a device' }],
    ['link', 'drop_file_kind', { ...regular, got: 'a link' }, { noLink: true }],
    ['small', 'drop_too_large', { expected: 3, got: 4 }, { maxBytes: 3 }],
    ['huge', 'drop_too_large', { expected: 16, got: 2 ** 40 }],
    // The kernel reports 0 bytes for it.
    ['/proc/self/status', 'drop_too_large', { expected: 16, got: 'more' }],
    ['none', 'config_unreadable', { reason: 'ENOENT' }],
    ['nowhere', 'config_unreadable', { reason: 'ENOENT' }],
    ['small/below', 'config_unreadable', { reason: 'ENOTDIR' }],
  ])('%s is %s', (name, code, details, options) => {
    const error = failure(name, options);
    expect([error.code, error.details]).toEqual([code, { path: at(name), ...details }]);
    expect(error.message).toContain(at(name));
  });

  it('cannot be a socket', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(at('socket'), resolve));
    try {
      expect(failure('socket')).toMatchObject({ code: 'drop_file_kind', details: { got: 'a socket or a device' } });
    } finally {
      server.close();
    }
  });

  it('has the name given by the caller in errors', () => {
    expect(failure('none', { name: 'The key' }).message).toMatch(/ The key: ENOENT: .*none'\.$/);
    expect(failure('folder', { name: 'The key' }).message).toMatch(
      / The key: expected a regular file, got a folder; name the file itself\.$/,
    );
  });

  it('is checked before it is read', () => {
    const inspect = (): never => {
      throw new PagegateError('bad_key_file', 'Its mode.');
    };
    expect(failure('huge', { inspect }).code).toBe('bad_key_file');
  });
});

describe('standard input', () => {
  /** Reads a path in another process, started by a shell. */
  function read(path: string, shell: string, stdin = true) {
    const text = `
      import { readSmallFile } from ${JSON.stringify(pathToFileURL(MODULE).href)};
      const options = { code: 'config_unreadable', maxBytes: 100000, stdin: ${stdin} };
      try {
        console.log(readSmallFile(process.argv[2], options).toString('latin1'));
      } catch (error) {
        console.log(error.code, JSON.stringify(error.details));
      }`;
    writeFileSync(join(folder, 'read.ts'), text);
    const program = `"${process.execPath}" "${join(folder, 'read.ts')}" ${path}`;
    const { stdout, stderr, signal } = spawnSync('bash', ['-c', shell.replace('READ', program)], {
      encoding: 'utf8',
      cwd: folder,
      timeout: 60_000,
      killSignal: 'SIGKILL',
    });
    return signal ?? stdout.trim() + stderr;
  }

  it.each([
    ['a pipe', '(sleep 0.2; echo text) | READ'],
    ['a file', 'READ < small'],
  ])('is read: %s', (_name, shell) => {
    expect(read('-', shell)).toBe('text');
  });

  it('is limited in size like any file', () => {
    expect(read('-', 'READ < /dev/zero')).toMatch(/^config_unreadable .*"expected":100000,"got":"more"/);
  });

  it('is a file named "-" if a command does not accept it', () => {
    expect(read('-', 'echo text | READ', false)).toMatch(/^config_unreadable .*ENOENT/);
  });
});
