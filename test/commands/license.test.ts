/** `pagegate license`: keys trusted for one command, and keys trusted by the configuration. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { writeIndex } from '../support/index-file.ts';
import { pagegateHere } from '../support/program.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-license-'));
  const { privateKey, publicKey } = createLicenseKey();
  const entitlement = { kind: 'refreshes_until', until: '2027-06-30' } as const;
  writeFileSync(join(folder, 'v.pem'), publicKey);
  writeFileSync(join(folder, 'v.private.pem'), privateKey);
  writeFileSync(
    join(folder, 'acme.json'),
    issueLicense({ licensee: 'Acme', dataset: 'web', entitlement }, privateKey, 'v-2026'),
  );
  writeFileSync(join(folder, 'config.json'), '{"license":{"trusted_keys":{"v-2026":"v.pem"}}}');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (...words: string[]) => pagegateHere(['license', ...words, '--state-dir', 'state'], { cwd: folder });

describe('license install', () => {
  it('prints the missing setting if only the command line trusts the key', async () => {
    expect((await run('install', 'acme.json')).stderr).toContain('license_untrusted');
    const installed = await run('install', 'acme.json', '--trust', 'v-2026=v.pem');
    expect(installed.status).toBe(0);
    expect(installed.stdout).toContain('Installed as');
    expect(installed.stderr).toMatch(
      /^Warning: the configuration does not trust this license.*"trusted_keys": \{ "v-2026": /,
    );
    expect((await run('show')).stderr).toContain('license_untrusted');
    const json = await run('install', 'acme.json', '--trust', 'v-2026=v.pem', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({ signed_by: 'v-2026' });
    expect(json.stderr).toContain('not trusted');
  });

  it.each([
    ['does not exist', 'none.pem', /v-2026=none\.pem|none\.pem: ENOENT/],
    ['is a folder', '.', /\.: expected a regular file, got a folder/],
    ['is not a key', 'acme.json', /Key "v-2026=acme\.json": /],
    ['is a private key', 'v.private.pem', /Key "v-2026=v\.private\.pem": it is a private key/],
    ['is not the key that the license needs, nor any key', 'config.json', /Key "v-2026=config\.json": /],
  ])('names the file if --trust has one that %s', async (_what, file, expected) => {
    for (const command of [['install', 'acme.json'], ['verify', 'acme.json'], ['show']]) {
      const { status, stderr } = await run(...command, '--trust', `v-2026=${file}`);
      expect([status, stderr]).toEqual([3, expect.stringMatching(expected)]);
      expect(stderr).toContain('[bad_license_key]');
    }
  });

  it.each([
    ['is not JSON', 'v.pem', 'bad_license', 3],
    ['is JSON of another kind', 'config.json', 'bad_license', 3],
    ['is not trusted here', 'acme.json', 'license_untrusted', 6],
  ])('names the file of a license that %s', async (_what, file, code, exit) => {
    for (const command of ['install', 'verify']) {
      const { status, stderr } = await run(command, file, '--json');
      expect([status, JSON.parse(stderr)]).toEqual([exit, expect.objectContaining({ error: code, file })]);
      expect(JSON.parse(stderr).message).toContain(` ${file}: `);
    }
    mkdirSync(join(folder, 'other/license'), { recursive: true });
    cpSync(join(folder, file), join(folder, 'other/license/license.json'));
    expect((await pagegateHere(['license', 'show', '--state-dir', 'other'], { cwd: folder })).stderr).toContain(
      'other/license/license.json: ',
    );
  });

  it('prints nothing more if the configuration trusts the key', async () => {
    const { status, stderr } = await run('install', 'acme.json', '--config', 'config.json');
    expect([status, stderr]).toEqual([0, '']);
    expect((await run('show', '--config', 'config.json')).stdout).toContain('v-2026');
  });

  it.each([
    ['covers what is served', 'web', '2026-01-02T03:04:05Z', ''],
    ['ended before it was made', 'web', '2028-01-02T03:04:05Z', 'it covers drops made up to 2027-06-30'],
    ['is for other data', 'mail', '2026-01-02T03:04:05Z', 'the index has "mail"'],
  ])('warns if the served index is not covered: the license %s', async (_what, dataset, created, expected) => {
    const index = join(folder, 'state/index/current/index.pgx');
    writeIndex(index, [{ domain: 'a.example.com', page_types: {} }], { dataset, created });
    const { status, stderr } = await run('install', 'acme.json', '--config', 'config.json');
    rmSync(index);
    expect(status).toBe(0);
    if (expected === '') expect(stderr).toBe('');
    else expect(stderr).toMatch(new RegExp(`^Warning: .*${expected}.* but the next start refuses it`));
  });
});

describe('a key that is given where the name of its file belongs', () => {
  it('is not repeated', async () => {
    const pem = readFileSync(join(folder, 'v.private.pem'), 'utf8');
    const terms = ['--key-name', 'v', '--licensee', 'Acme', '--dataset', 'web', '--refreshes-until', '2027-06-30'];
    for (const key of [pem, pem.trim(), pem.replaceAll('\n', ''), Buffer.from(pem).toString('base64')])
      for (const words of [
        ['license', 'issue', '--key', key, ...terms],
        ['license', 'issue', '--key', key, ...terms, '--json'],
        ['license', 'verify', 'acme.json', '--trust', key],
        ['drop', 'sign', '.', '--key', key],
        ['drop', 'sign', '.', '--key', key, '--json'],
      ]) {
        const { status, stdout, stderr } = await pagegateHere(words, { cwd: folder });
        expect(status).not.toBe(0);
        expect(stdout + stderr).not.toContain(key.slice(-70, -45));
        if (words.includes('--key') && words[1] !== 'issue')
          expect(stderr).toContain('--key: expected the name of a file');
      }
  });
});

describe('license issue', () => {
  it('names the file and the problem if it gets a public key, or no key', async () => {
    const terms = ['--key-name', 'v-2026', '--licensee', 'Acme', '--dataset', 'web', '--refreshes-until', '2027-06-30'];
    const issue = (key: string) => pagegateHere(['license', 'issue', '--key', key, ...terms], { cwd: folder });
    expect((await issue('v.pem')).stderr).toMatch(/Key "v\.pem": it is a public key; expected the private one/);
    expect(await issue('config.json')).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('Key "config.json": it holds no private key in PEM ('),
    });
  });

  it('treats a day that does not exist as a wrong command line, not as an invalid license', async () => {
    const terms = ['--key', 'v.private.pem', '--key-name', 'v-2026', '--licensee', 'Acme', '--dataset', 'web'];
    const { status, stderr } = await pagegateHere(['license', 'issue', ...terms, '--refreshes-until', '2027-13-30'], {
      cwd: folder,
    });
    expect(status).toBe(2);
    expect(stderr).toMatch(/see --help\. refreshes_until: expected a date .*, got "2027-13-30"\. \[usage\]/);
  });
});
