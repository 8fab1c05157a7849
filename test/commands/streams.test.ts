/** How every command handles output that cannot be written, a wrong command line, and untrusted text. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createProgram } from '../../src/cli.ts';
import { commandName, WHERE_TO_LOOK } from '../../src/commands/shared/lost-output.ts';
import { printableLines, reportFailure } from '../../src/commands/shared/output.ts';
import { ERRORS, PagegateError } from '../../src/errors.ts';
import { printable } from '../../src/platform/printable.ts';
import { CLI, pagegate } from '../support/program.ts';
import { entryOf, writeTinyIndex } from '../support/tiny-index.ts';

const ESCAPE = '\u001b[31m';

let folder: string;
let index: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-streams-'));
  index = join(folder, 'a.pgx');
  // More than a pipe holds, so that the program notices a reader that stops early.
  const many = Array.from({ length: 3_000 }, (_, i) =>
    entryOf(`host-${i}.example`, { login: `https://host-${i}.example/a/long/path/to/the/login/page/of/this/host` }),
  );
  writeTinyIndex(index, many);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (...words: string[]) => pagegate(words);
const withIndex = (words: readonly string[]) => words.map((word) => (word === 'INDEX' ? index : word));

describe.runIf(existsSync('/dev/full'))('standard output on a full disk', () => {
  it.each([
    ['--help', ['--help']],
    ['a table', ['plan', 'list']],
    ['an export', ['export', 'INDEX']],
    ['JSON', ['inspect', 'INDEX', '--json']],
  ])('%s: one line, exit code 7', (_name, words) => {
    const full = openSync('/dev/full', 'w');
    try {
      const { status, stderr } = pagegate(withIndex(words), { stdio: ['ignore', full, 'pipe'] });
      expect(stderr).toMatch(/^.*Standard output cannot be written.*ENOSPC.*\n$/);
      expect(status).toBe(7);
      expect(stderr).toContain('Run the command again.');
    } finally {
      closeSync(full);
    }
  });

  it('of a command that changed something: the message says that it is done, and where to see it', () => {
    const state = join(folder, 'state');
    const key = (...words: string[]) => pagegate(['key', ...words, 'acme', '--state-dir', state]).stdout.trim();
    run('account', 'create', 'acme', '--with-key', '--state-dir', state);
    const before = key('show');
    const full = openSync('/dev/full', 'w');
    try {
      const words = ['key', 'rotate', 'acme', '--state-dir', state];
      const { status, stderr } = pagegate(words, { stdio: ['ignore', full, 'pipe'] });
      expect([status, stderr]).toEqual([
        7,
        expect.stringMatching(/do not repeat it\. .*`pagegate key show`\. \[output_failed\]/),
      ]);
    } finally {
      closeSync(full);
    }
    expect(key('show')).not.toBe(before);
  });
});

it('each command is listed either as changing something or as safe to repeat', async () => {
  const leavesOf = (command: Command): Command[] =>
    command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
  const all = leavesOf(await createProgram()).map(commandName);
  expect(Object.keys(WHERE_TO_LOOK).filter((name) => !all.includes(name))).toEqual([]);
  expect(all.filter((name) => !(name in WHERE_TO_LOOK))).toEqual([
    'verify',
    'inspect',
    'lookup',
    'explain',
    'policy check',
    'policy test',
    'policy diff',
    'policy export',
    'export',
    'diff',
    'drop verify',
    'generations list',
    'doctor',
    'account show',
    'account list',
    'account usage',
    'account check',
    'account audit',
    'fleet status',
    'key show',
    'plan list',
    'license issue',
    'license verify',
    'license show',
    'register validate',
    'console user list',
    'serve',
    'status',
  ]);
});

describe('standard output closed by its reader', () => {
  it.each([
    ['an export', ['export', 'INDEX']],
    ['lines', ['lookup', '--index', 'INDEX', ...Array.from({ length: 3_000 }, (_, i) => `host-${i}.example`)]],
    ['help', ['--help']],
  ])('%s: ends without a message', async (_name, words) => {
    const child = spawn(process.execPath, [CLI, ...withIndex(words)]);
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.stdout.destroy();
    const [code] = await once(child, 'close');
    expect([code, stderr]).toEqual([0, '']);
  });
});

describe('standard output that is not read', () => {
  it('does not prevent an interrupt of an export', async () => {
    const child = spawn(process.execPath, [CLI, 'export', index]);
    // Output shows that the command has started; the rest stays in the pipe.
    await once(child.stdout, 'readable');
    child.kill('SIGINT');
    const [code] = await once(child, 'exit');
    expect(code).toBe(130);
  });
});

describe('a defect of the program', () => {
  it('is one JSON object with --json, and a stack trace without it', () => {
    const written: string[] = [];
    const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
    try {
      const error = new TypeError('no such thing');
      expect([reportFailure(error, true), reportFailure(error, false)]).toEqual([1, 1]);
    } finally {
      write.mockRestore();
    }
    const { message } = ERRORS.internal;
    expect(JSON.parse(written[0]!)).toEqual({
      error: 'internal',
      message: expect.stringContaining(`${message} TypeError: no such thing\n`),
    });
    expect(written[1]).toMatch(/^pagegate: [^\n]* TypeError: no such thing\n +at [\s\S]* \[internal\]\n$/);
    expect(written[1]).toContain(message);
  });
});

it('a failure is one line, even if it quotes text with line breaks', () => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    expect(reportFailure(new PagegateError('drop_vocabulary', 'Got a\npagegate: all is well.'), false)).toBe(6);
    expect(write.mock.calls).toEqual([
      [expect.stringMatching(/^[^\n]*Got a\\x0apagegate: all is well\. \[drop_vocabulary\]\n$/)],
    ]);
  } finally {
    write.mockRestore();
  }
});

describe('an invalid command line with --json', () => {
  it.each([
    ['a command', ['bogus', '--json'], "unknown command 'bogus'"],
    ['an option', ['verify', '--json', '--nope'], "unknown option '--nope'"],
    ['an option of a command of a command', ['policy', 'check', '--nope', '--json'], "unknown option '--nope'"],
    [
      'a value',
      ['build', 'x', '--out', 'y', '--workers', 'zz', '--json'],
      'It must be a whole number of at most 15 digits.',
    ],
    ['two forms of a result', ['account', 'usage', '--csv', '--json'], "option '--csv' cannot be used with"],
    ['the generation 0', ['build', 'x', '--out', 'y', '--generation', '0', '--json'], 'a whole number from 1'],
    [
      'a generation above the maximum',
      ['build', 'x', '--out', 'y', '--generation', '1000000000', '--json'],
      'It must be at most 999999999.',
    ],
    ['too many threads', ['refresh', 'x', '--workers', '257', '--json'], 'It must be at most 256.'],
    ['an argument that is missing', ['diff', '--json'], "missing required argument 'before'"],
  ])('%s: one JSON object, exit code 2', (_name, words, message) => {
    const { status, stdout, stderr } = run(...words);
    expect([status, stdout]).toEqual([2, '']);
    expect(JSON.parse(stderr)).toEqual({ error: 'usage', message: expect.stringContaining(message) });
  });

  it.each([
    ['a command that is not known', ['bogus'], "unknown command 'bogus'"],
    ['a command with a slip', ['servee'], "unknown command 'servee' (Did you mean serve?) ["],
    ['an option with a slip', ['status', '--confg', 'x'], "unknown option '--confg' (Did you mean --config?) ["],
    ['an option that ends like a suggestion', ['--x\n(Did you mean y?)'], "unknown option '--x\\x0a(Did you mean y?)'"],
    ['an option without its value', ['status', '--config'], "option '--config <file>' argument missing"],
    ['an argument that is missing', ['diff'], "missing required argument 'before'"],
    ['a value that does not fit', ['prune', '--keep', '0'], "option '--keep <n>' argument '0' is invalid. It must be"],
  ])('%s, without --json: one line with the code in brackets', (_name, words, message) => {
    const { status, stdout, stderr } = run(...words);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^pagegate: The command line is not understood; see --help\. [^\n]+ \[usage\]\n$/);
    expect(stderr).toContain(message);
  });

  it('no command: only the help is printed', () => {
    const { status, stdout, stderr } = run('account');
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^Usage: pagegate account /);
    expect(stderr).not.toContain('[usage]');
  });
});

describe('untrusted text', () => {
  it('is escaped where necessary, and otherwise unchanged', () => {
    expect(printable('a\u001b[1m\u0007\n\u009b\u007f\u202eb')).toBe('a\\x1b[1m\\x07\\x0a\\x9b\\x7f\\u202eb');
    expect(printable('Ünïcode – 漢字 😀\t\\')).toBe('Ünïcode – 漢字 😀\t\\');
    expect(printableLines('one\ntwo\u001b')).toBe('one\ntwo\\x1b');
  });

  it.each([
    ['a URL that is explained', ['explain', `https://example.com/${ESCAPE}`]],
    ['the same as JSON', ['explain', 'https://example.com/\u009b', '--json']],
    ['a value that is refused', ['explain', `a b${ESCAPE}\u009b`]],
    ['a missing file', ['verify', `/nowhere/${ESCAPE}`]],
    ['an unknown command', [`bogus${ESCAPE}`]],
    ['an unknown command, as JSON', ['bogus\u009b', '--json']],
  ])('is escaped in %s', (_name, words) => {
    const { stdout, stderr } = run(...words);
    expect(stdout + stderr).toMatch(/\\x1b|\\u009b|\\x9b|\\u001b/);
    expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]/u);
  });

  it('is escaped in the name of a damaged file', () => {
    const path = join(folder, `bad${ESCAPE}.pgx`);
    writeFileSync(path, 'x', { mode: 0o444 });
    const { status, stderr } = run('verify', path);
    expect(status).not.toBe(0);
    expect(stderr).toContain('bad\\x1b[31m.pgx');
  });
});
