import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { Guard } from '../../src/guard/guard.ts';
import { readEngine } from '../../src/ledger/postgres/engine.ts';
import { createApiKey } from '../../src/ledger/store/api-key.ts';
import { readSmallFile } from '../../src/platform/small-file.ts';
import { failureFields } from '../../src/server/log.ts';
import { configuredCertificate } from '../../src/server/read-certificate.ts';
import { createCertificate } from '../../tools/certificate.ts';

const API_KEY = createApiKey();
const made = createCertificate('secret.test');
const read = (path: string): Buffer =>
  readSmallFile(path, { code: 'api_key_unreadable', secretOption: '--x', maxBytes: 9_999 });

/** All that a log, a terminal or a program could show of a failure. */
function shownBy(task: () => unknown): string {
  try {
    task();
  } catch (error) {
    return `${inspect(error, { depth: 9 })} ${JSON.stringify(error)} ${JSON.stringify(failureFields(error))}`;
  }
  throw new Error('It did not fail.');
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-key-'));
  writeFileSync(join(folder, 'cert.pem'), made.certificate);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the name of a file', () => {
  it('that cannot be read is told', () => {
    for (const name of ['/nowhere/agent.key', '/nowhere/pg_agent.key', `/nowhere/${'0'.repeat(64)}`])
      expect(shownBy(() => read(name))).toContain(name);
  });

  it('may look like a key', () => {
    const path = join(folder, createApiKey());
    writeFileSync(path, 'text');
    expect(read(path).toString()).toBe('text');
  });
});

describe('a key in the place of its file is not shown', () => {
  it.each([
    ['an API key', API_KEY],
    ['a part of one', API_KEY.slice(0, 30)],
    ['one with what is around it', `X-API-Key: "${API_KEY}" `],
    ['one with a NUL', `${API_KEY}\0`],
    ['a private key', made.key],
    ['its lines without the first', made.key.split('\n').slice(1).join('\n')],
    ['all of it in one line', made.key.replaceAll('\n', '')],
    ['all of it as Base64', Buffer.from(made.key).toString('base64')],
  ])('%s', (_name, value) => {
    const certificate_file = join(folder, 'cert.pem');
    const tls = (settings: object) => loadConfig({ env: {}, cwd: folder, flags: { tls: settings } }).tls;
    const url = 'postgres://u@127.0.0.1/x';
    const tasks: [string, () => unknown][] = [
      ['--x', () => read(value)],
      ['keyFile (--key-file)', () => new Guard({ server: 'http://127.0.0.1:1', keyFile: value })],
    ];
    // The configuration takes no text with a NUL.
    if (!value.includes('\0'))
      tasks.push(
        ['tls.key_file', () => configuredCertificate(tls({ certificate_file, key_file: value }))],
        ['tls.certificate_file', () => configuredCertificate(tls({ certificate_file: value, key_file: 'x' }))],
        ['ledger.password_file', () => readEngine({ url, passwordFile: value })],
      );
    for (const [option, task] of tasks) {
      const shown = shownBy(task);
      expect(shown).toContain('expected the name of a file, got what looks like a key itself');
      expect(shown).toContain(option);
      expect(shown).not.toContain(value.slice(12, 28));
    }
  });
});
