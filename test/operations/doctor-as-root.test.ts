/** `pagegate doctor` as root, next to a server of another user: what root may read does not matter. */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CheckResult } from '../../src/doctor/check.ts';
import { createLicenseKey } from '../../src/license/license.ts';
import { pagegate } from '../support/program.ts';

let folder: string;
const at = (name: string): string => join(folder, name);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-as-root-'));
  chmodSync(folder, 0o755);
  mkdirSync(at('state'), { mode: 0o750 });
  writeFileSync(at('vendor.pem'), createLicenseKey().publicKey, { mode: 0o600 });
  const settings = { state_dir: at('state'), refresh: { trusted_keys: { vendor: at('vendor.pem') } } };
  writeFileSync(at('config.json'), JSON.stringify(settings), { mode: 0o644 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function allExamined(): CheckResult[] {
  const { stdout } = pagegate(['doctor', '--json', '--config', at('config.json')], { cwd: '/' });
  return (JSON.parse(stdout) as { checks: CheckResult[] }).checks;
}

const examined = (id: string): CheckResult | undefined => allExamined().find((one) => one.id === id);

describe.runIf(process.getuid?.() === 0)('doctor as root', () => {
  // A user with a name on most hosts, and one without.
  it.each([65_534, 54_321])('finds a key that the server of user %i cannot read', (user) => {
    chownSync(at('state'), user, user);
    expect(examined('configuration')?.found).toBe(`state in ${at('state')}, checked with the rights of user ${user}`);
    expect(examined('drop_keys')).toMatchObject({ status: 'problem', advice: expect.stringContaining('EACCES') });
    chownSync(at('vendor.pem'), 0, user);
    chmodSync(at('vendor.pem'), 0o640);
    expect(examined('drop_keys')).toMatchObject({ status: 'ok' });
  });

  it('finds a configuration that the server cannot read', () => {
    chownSync(at('state'), 65_534, 65_534);
    chmodSync(at('config.json'), 0o600);
    expect(examined('configuration')).toMatchObject({
      status: 'problem',
      found: expect.stringMatching(/, checked with the rights of user 65534$/),
      advice: expect.stringContaining('EACCES'),
    });
  });

  it('finds a state directory that its user cannot change', () => {
    chmodSync(at('state'), 0o550);
    chownSync(at('state'), 65_534, 65_534);
    expect(examined('permissions')).toMatchObject({
      status: 'problem',
      found: `this user cannot use ${at('state')}, which belongs to user 65534 and has mode 0550`,
    });
  });

  it('says to change the owner of files that root created', () => {
    mkdirSync(at('state/index/generations/1'), { recursive: true, mode: 0o700 });
    writeFileSync(at('state/index/generations/1/index.pgx'), '');
    symlinkSync('generations/1', at('state/index/current'));
    chownSync(at('state'), 65_534, 65_534);
    const found = `${at('state')} belongs to user 65534, but root owns ${at('state/index')}`;
    expect(allExamined()).toContainEqual(expect.objectContaining({ id: 'permissions', status: 'problem', found }));
  });

  it('reports once that the user cannot read the program', () => {
    const root = join(import.meta.dirname, '../..');
    mkdirSync(at('program'), { mode: 0o700 });
    for (const part of ['src', 'data', 'package.json'])
      cpSync(join(root, part), at(`program/${part}`), { recursive: true });
    symlinkSync(join(root, 'node_modules'), at('program/node_modules'));
    chownSync(at('state'), 65_534, 65_534);
    const argv = [at('program/src/cli.ts'), 'doctor', '--json', '--config', at('config.json')];
    const { stdout } = spawnSync(process.execPath, argv, { cwd: '/', encoding: 'utf8' });
    const { checks } = JSON.parse(stdout) as { checks: CheckResult[] };
    expect(checks[0]).toMatchObject({
      id: 'configuration',
      status: 'problem',
      found: `user 65534, who owns the state directory, cannot read the program in ${at('program')}`,
    });
    expect(JSON.stringify(checks)).not.toContain('ERR_MODULE_NOT_FOUND');
  });

  it('keeps the rights of root if root owns the state directory', () => {
    expect(examined('configuration')?.found).toBe(`state in ${at('state')}`);
    expect(examined('drop_keys')).toMatchObject({ status: 'ok' });
  });
});
