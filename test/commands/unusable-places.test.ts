/** Files and folders that cannot be read or written: each command ends with a code and an exit code of its own, never with a stack. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { CLI, pagegate } from '../support/program.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-unusable-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (...names: string[]): string => join(folder, ...names);
function run(...words: string[]) {
  const { status, stderr, signal } = pagegate([...words, '--state-dir', at('state')], {
    timeout: 300_000,
    killSignal: 'SIGKILL',
  });
  return { status, signal, code: /\[(\w+)\]\n$/.exec(stderr)?.[1] ?? stderr };
}

describe('a license', () => {
  const install = (): ReturnType<typeof run> => {
    const { privateKey, publicKey } = createLicenseKey();
    const entitlement = { kind: 'refreshes_until', until: '2027-06-30' } as const;
    writeFileSync(at('v.pem'), publicKey);
    writeFileSync(at('l.json'), issueLicense({ licensee: 'Acme', dataset: 'web', entitlement }, privateKey, 'v'));
    return run('license', 'install', at('l.json'), '--trust', `v=${at('v.pem')}`);
  };

  it('is not installed where its folder cannot be made', () => {
    writeFileSync(at('state'), 'a file');
    expect(install()).toMatchObject({ status: 7, code: 'state_unavailable' });
  });

  it('that cannot be put into place leaves nothing beside it', () => {
    mkdirSync(at('state/license/license.json/x'), { recursive: true });
    expect(install()).toMatchObject({ status: 7, code: 'state_unavailable' });
    expect(readdirSync(at('state/license'))).toEqual(['license.json']);
  });

  it('that is named and not there is no missing installation', () => {
    expect(run('license', 'verify', at('none.json'))).toMatchObject({ status: 7, code: 'license_unreadable' });
    expect(run('license', 'verify', folder)).toMatchObject({ status: 7, code: 'license_unreadable' });
    expect(run('license', 'show')).toMatchObject({ status: 6, code: 'license_missing' });
  });
});

describe('a key pair', () => {
  const keygen = (name: string) => pagegate(['license', 'keygen', '--out', at(name)]);

  it.each(['private', 'public'])('is written whole or not at all where the %s file is there', (which) => {
    writeFileSync(at(`v.${which}.pem`), 'mine');
    const { status, stderr } = keygen('v');
    expect(status).toBe(7);
    expect(stderr).toContain('[key_pair_not_written]');
    expect(readdirSync(folder)).toEqual([`v.${which}.pem`]);
  });

  it('is not written where there is no folder', () => {
    expect(keygen('none/v').stderr).toContain('[key_pair_not_written]');
  });
});

describe('the server', () => {
  const serve = () => run('serve', '--port', '0', '--admin-port', '0');

  it('does not start where its folder cannot be made', () => {
    writeFileSync(at('state'), 'a file');
    expect(serve()).toMatchObject({ status: 7, code: 'state_unavailable' });
  });

  it('ends, its keeper too, where it cannot make its own files', () => {
    // What cannot be removed stands for a folder that belongs to another user.
    mkdirSync(at('state/run/burst-1/x'), { recursive: true });
    expect(serve()).toMatchObject({ status: 7, signal: null, code: 'state_unavailable' });
  });
});

describe('the store and the index', () => {
  it('generations that cannot be listed are no empty list', () => {
    mkdirSync(at('state/index'), { recursive: true });
    writeFileSync(at('state/index/generations'), 'a file');
    expect(run('generations', 'list')).toMatchObject({ status: 7, code: 'store_unavailable' });
  });

  it('an index that cannot be opened is not explained as one that is not there', () => {
    mkdirSync(at('state/index'), { recursive: true });
    symlinkSync('current', at('state/index/current'));
    expect(run('explain', 'https://example.com/')).toMatchObject({ status: 7, code: 'index_unreadable' });
    rmSync(at('state/index/current'));
    expect(run('explain', 'https://example.com/')).toMatchObject({ status: 0 });
  });
});

it('a plan catalogue that cannot be read is not taken for none', () => {
  mkdirSync(at('state'));
  symlinkSync('none.json', at('state/plans.json'));
  expect(run('plan', 'list')).toMatchObject({ status: 3, code: 'bad_plan_catalogue' });
});

describe('a backup', () => {
  it.each(['none/b.sqlite', 'state/ledger/ledger.sqlite/b'])('that cannot be written to %s says so', (name) => {
    expect(run('account', 'create', 'acme')).toMatchObject({ status: 0 });
    expect(run('account', 'backup', at(name))).toMatchObject({ status: 7, code: 'backup_failed' });
    expect(existsSync(at(name))).toBe(false);
  });

  it('is not restored into a folder that cannot be made', () => {
    writeFileSync(at('state'), 'a file');
    expect(run('account', 'restore', CLI)).toMatchObject({ status: 7, code: 'ledger_unavailable' });
  });
});

describe.runIf(process.getuid?.() === 0)('a socket of another user', () => {
  it('is not taken for a server that does not run', () => {
    mkdirSync(at('state/run'), { recursive: true, mode: 0o700 });
    const { status, stderr } = pagegate(['status', '--state-dir', at('state')], {
      uid: 65_534,
      gid: 65_534,
      cwd: '/',
    });
    expect([status, /\[(\w+)\]\n$/.exec(stderr)?.[1]]).toEqual([6, 'server_forbidden']);
  });
});
