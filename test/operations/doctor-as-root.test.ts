/** `pagegate doctor` as root beside a server of another user: what root may read says nothing about it. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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

function examined(id: string): CheckResult | undefined {
  const { stdout } = pagegate(['doctor', '--json', '--config', at('config.json')], { cwd: '/' });
  return (JSON.parse(stdout) as { checks: CheckResult[] }).checks.find((one) => one.id === id);
}

describe.runIf(process.getuid?.() === 0)('doctor as root', () => {
  // One user that most hosts have a name for, and one that none has.
  it.each([65_534, 54_321])('finds a key that the server of user %i cannot read', (user) => {
    chownSync(at('state'), user, user);
    expect(examined('configuration')?.found).toBe(`state in ${at('state')}, looked at with the rights of user ${user}`);
    expect(examined('drop_keys')).toMatchObject({ status: 'problem', advice: expect.stringContaining('EACCES') });
    chownSync(at('vendor.pem'), 0, user);
    chmodSync(at('vendor.pem'), 0o640);
    expect(examined('drop_keys')).toMatchObject({ status: 'ok' });
  });

  it('finds a configuration that the server cannot read', () => {
    chownSync(at('state'), 65_534, 65_534);
    chmodSync(at('config.json'), 0o600);
    expect(examined('configuration')).toMatchObject({ status: 'problem', advice: expect.stringContaining('EACCES') });
  });

  it('looks as root where the state directory is its own', () => {
    expect(examined('configuration')?.found).toBe(`state in ${at('state')}`);
    expect(examined('drop_keys')).toMatchObject({ status: 'ok' });
  });
});
