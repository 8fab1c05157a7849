/** `lookup --file`: reads a list and writes a line of JSON for each of its lines. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, createWriteStream, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { CLI, pagegate } from '../support/program.ts';
import { entryOf, shippedNames, withTempDirectory, writeTinyIndex } from '../support/tiny-index.ts';

const entries = [
  entryOf('a.example', { login: 'https://a.example/login' }, { language: 'en', filteringCategories: [1] }),
  entryOf('b.example', { docs: 'https://docs.b.example/?q=\\x' }, { openPageRankHundredths: 1000 }),
];

function withIndex<T>(task: (index: string, folder: string) => T): T {
  return withTempDirectory((folder) => {
    const index = join(folder, 'index.pgx');
    writeTinyIndex(index, entries);
    return task(index, folder);
  });
}

const start = (...words: string[]): ChildProcessWithoutNullStreams =>
  spawn(process.execPath, [CLI, 'lookup', ...words]);

describe('a list', () => {
  it('gets a line like that of --json for each line that is not blank, in order', () =>
    withIndex((index, folder) => {
      const list = join(folder, 'list');
      const inputs = ['a.example', 'https://www.B.example/x', 'nobody.example', '10.0.0.1/x', 'a.example'];
      writeFileSync(list, `\ufeff${inputs[0]}\r\n\n${inputs.slice(1).join('\n')}`);
      const { status, stdout, stderr } = pagegate(['lookup', '--index', index, '--file', list]);
      expect({ status, stderr }).toEqual({ status: 4, stderr: '' });
      const lines = stdout.trimEnd().split('\n');
      const one = pagegate(['lookup', '--index', index, '--json', ...inputs]);
      expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
        (JSON.parse(one.stdout) as object[]).map((answer, i) => ({ input: inputs[i], ...answer })),
      );
      // Standard input gives the same result.
      const piped = pagegate(['lookup', '--index', index, '--file', '-'], { input: readFileSync(list) });
      expect(piped).toMatchObject({ status: 4, stdout });
      writeFileSync(list, 'a.example\n');
      expect(pagegate(['lookup', '--index', index, '--file', list]).status).toBe(0);
      writeFileSync(list, '');
      expect(pagegate(['lookup', '--index', index, '--file', list])).toMatchObject({ status: 0, stdout: '' });
    }));

  it('continues after a line that is not a domain, and reports the line and the reason', () =>
    withIndex((index) => {
      const strange = ['not a host', '\u001b[31m.example', '"\u202eé', 'x'.repeat(9_000), 'y'.repeat(70_000), 'a\xffb'];
      const input = Buffer.concat([
        ...strange.flatMap((text) => [Buffer.from(text), Buffer.from('\n')]),
        Buffer.from([0xff, 0x0a]),
        Buffer.from('a.example\n'),
      ]);
      const { status, stdout } = pagegate(['lookup', '--index', index, '--file', '-'], { input });
      expect(status).toBe(3);
      // No characters that a terminal acts on.
      expect(/^[ -~\n]*$/.test(stdout)).toBe(true);
      const lines = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(lines).toHaveLength(8);
      expect(lines[0]).toEqual({ line: 1, input: 'not a host', error: 'bad_input', reason: 'unparsable' });
      expect(lines[1]).toMatchObject({ line: 2, input: strange[1], error: 'bad_input' });
      expect(lines[3]).toMatchObject({ line: 4, error: 'input_too_long', reason: 'value_too_long' });
      expect(lines[4]).toEqual({ line: 5, error: 'input_too_long', reason: 'value_too_long' });
      expect(lines[7]).toMatchObject({ input: 'a.example', found: true });
    }));

  it('is refused with one line if it cannot be read, or if domains are given, too', () =>
    withIndex((index, folder) => {
      const call = (...words: string[]): unknown => {
        const { status, stdout, stderr } = pagegate(['lookup', '--index', index, ...words]);
        return { status, stdout, code: /\[(\w+)\]\n$/.exec(stderr)?.[1] };
      };
      expect(call('--file', join(folder, 'none'))).toEqual({ status: 7, stdout: '', code: 'list_unreadable' });
      expect(call('--file', folder)).toEqual({ status: 7, stdout: '', code: 'list_unreadable' });
      expect(call('--file', join(folder, 'none'), 'a.example')).toEqual({ status: 2, stdout: '', code: 'usage' });
      expect(call()).toEqual({ status: 2, stdout: '', code: 'usage' });
    }));
});

describe('open standard input', () => {
  it('is answered line by line, and Ctrl-C ends the command', async () =>
    withIndex(async (index) => {
      const child = start('--index', index, '--file', '-');
      const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
      for (const domain of ['a.example', 'nobody.example', 'b.example']) {
        child.stdin.write(`${domain}\n`);
        expect(JSON.parse((await answers.next()).value as string)).toMatchObject({ input: domain });
      }
      child.kill('SIGINT');
      expect(await once(child, 'exit')).toEqual([130, null]);
    }));
});

describe('an index that changes during the lookups', () => {
  it.each<[string, (path: string) => void]>([
    ['grows', (path) => appendFileSync(path, 'x')],
    ['is overwritten', (path) => writeFileSync(path, Buffer.alloc(readFileSync(path).length, 0xff))],
    ['is emptied', (path) => writeFileSync(path, '')],
  ])('and %s ends the list with one line, and gives no further answer', async (_name, change) =>
    withIndex(async (index) => {
      const child = start('--index', index, '--file', '-');
      const stderr = text(child.stderr);
      const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
      child.stdin.write('a.example\n');
      expect(JSON.parse((await answers.next()).value as string)).toMatchObject({ input: 'a.example', found: true });
      change(index);
      child.stdin.write('b.example\n');
      expect(await answers.next()).toMatchObject({ done: true });
      expect(await stderr).toMatch(/^pagegate: The index file was written to, or truncated, .*\[index_changed\]\n$/);
      expect([child.exitCode ?? (await once(child, 'exit'))[0], child.signalCode]).toEqual([5, null]);
    }),
  );
});

describe('a slow reader', () => {
  it('is waited for: no lookups are made while it does not read', async () =>
    withTempDirectory(async (folder) => {
      const index = join(folder, 'index.pgx');
      const path = 'long/'.repeat(350);
      const pages = Object.fromEntries(
        shippedNames.vocabulary.pageTypes.map((type) => [type, `https://a.example/${path}${type}`]),
      );
      writeTinyIndex(index, [entryOf('a.example', pages)]);
      const list = createWriteStream(join(folder, 'list'));
      // 20,000 answers of 50 KB are a gigabyte.
      for (let i = 0; i < 20; i++) list.write('a.example\n'.repeat(1000));
      list.end();
      await once(list, 'finish');
      const child = start('--index', index, '--file', join(folder, 'list'));
      await once(child.stdout, 'readable');
      await wait(1500);
      const memory = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'latin1'))?.[1];
      expect(Number(memory) / 1024).toBeLessThan(150);
      child.kill('SIGTERM');
      child.stdout.resume();
      expect(await once(child, 'exit')).toEqual([130, null]);
    }));
});
