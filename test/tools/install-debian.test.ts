/** The script that installs Debian's packages: without permission, and with nothing to install. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../tools/install-debian.sh', import.meta.url));
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-debian-'));
  for (const [name, text] of Object.entries({ id: 'echo 1000', 'apt-get': 'echo installs; exit 1' })) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  for (const name of ['sh', 'ls']) symlinkSync(`/bin/${name}`, join(folder, name));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...pairs: string[]): { code: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(SCRIPT, pairs, { env: { PATH: folder }, encoding: 'utf8' });
  return { code: status, text: stdout + stderr };
}

it('does nothing if all programs are installed, also by a pattern', () => {
  expect(run('/bin/sh=dash', '/etc/pass*=base-passwd')).toEqual({ code: 0, text: '' });
});

it('lists exactly what is missing if it may not install', () => {
  const { code, text } = run('/bin/sh=dash', '/no/such/bin=one', '/no/*/such=two');
  expect(code).toBe(1);
  expect(text).toMatch(/only root can install them: apt-get install --no-install-recommends one two\n$/);
  expect(text).not.toContain('installs');
});

it('reports a host without Debian packages', () => {
  rmSync(join(folder, 'apt-get'));
  expect(run('/no/such/bin=one')).toMatchObject({ code: 1, text: expect.stringContaining('this is no Debian') });
});
