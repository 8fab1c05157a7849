/** A helper that cannot start with its options ends with one line that says why, and lets nothing pass. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiKey } from '../../src/ledger/store/api-key.ts';

const TOOLS = fileURLToPath(new URL('../../tools/integrations/', import.meta.url));

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-start-'));
  writeFileSync(join(folder, 'good'), 'pg_test\n', { mode: 0o600 });
  writeFileSync(join(folder, 'open'), 'pg_test\n', { mode: 0o644 });
  writeFileSync(join(folder, 'empty'), '', { mode: 0o600 });
  writeFileSync(join(folder, 'in-the-way'), '', { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const API_KEY = createApiKey();
const key = (name: string): string[] => ['--key-file', join(folder, name)];

/** Both helpers read these options with the same code, so the second one is only tested with the first few. */
const CASES: readonly (readonly [string, () => string[], RegExp])[] = [
  ['no key file is named', () => [], /--key-file/],
  ['there is no key file', () => key('none'), /none/],
  ['others may read the key file', () => key('open'), /open: others may access the API key/],
  [
    'the key itself is given, which is not shown',
    () => ['--key-file', API_KEY],
    /--key-file\): expected the name of a file/,
  ],
  ['the key file is empty', () => key('empty'), /key/i],
  ['the key file is a folder', () => ['--key-file', folder], /pagegate-start|EISDIR|others/],
  ['an option is not known', () => [...key('good'), '--verbose'], /--verbose/],
  ['the server is not a URL', () => [...key('good'), '--server', 'nonsense'], /URL|server/i],
  ['the time is not a number', () => [...key('good'), '--timeout-ms', 'soon'], /timeout/i],
  ['the authorities cannot be read', () => [...key('good'), '--ca-file', join(folder, 'none')], /none/],
];

describe.each([
  ['Squid’s', 'pagegate-acl', 'squid/pagegate-acl.ts'],
  ['nginx’s', 'pagegate-auth', 'nginx/pagegate-auth.ts'],
])('%s helper', (_whose, name, path) => {
  const start = (words: readonly string[]) =>
    spawnSync(process.execPath, [`${TOOLS}${path}`, ...words], {
      encoding: 'utf8',
      input: '7 http://a.example/ GET\n',
    });

  test.each(name === 'pagegate-acl' ? CASES : CASES.slice(0, 4))('does not start: %s', (_case, words, reason) => {
    const { status, stdout, stderr } = start(words());
    expect(stderr).toMatch(new RegExp(`^${name}: [^\n]+\n$`));
    expect(stderr).toMatch(reason);
    expect(stderr).not.toContain(API_KEY);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  });

  test('does not start if its own option is invalid', () => {
    const own =
      name === 'pagegate-acl'
        ? [['--tunnels', 'allow']]
        : [
            ['--listen', 'here'],
            ['--listen', join(folder, 'in-the-way')],
          ];
    for (const words of own) {
      const { status, stderr } = start([...key('good'), ...words]);
      expect(stderr).toMatch(new RegExp(`^${name}: [^\n]+\n$`));
      expect(status).toBe(2);
    }
  });
});
