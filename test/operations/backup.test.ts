/** tools/packaging/backup.sh: creates a copy of the ledger that can be restored, keeps the newest few, and loses nothing if it fails. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { statePaths } from '../../src/config/paths.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { pagegate } from '../support/program.ts';

const SCRIPT = fileURLToPath(new URL('../../tools/packaging/backup.sh', import.meta.url));
const named = (day: number): string => `ledger-203001${String(day).padStart(2, '0')}T023000Z.sqlite`;

let folder: string;
let config: string;
let copies: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-backup-'));
  config = join(folder, 'config.json');
  writeFileSync(config, JSON.stringify({ state_dir: join(folder, 'state') }), { mode: 0o640 });
  const paths = statePaths(loadConfig({ env: {}, flags: { state_dir: join(folder, 'state') } }));
  const ledger = await openLedger({ file: paths.ledgerFile, keyFile: paths.ledgerKeyFile, actor: 'test' });
  await ledger.createAccount('gateway');
  await ledger.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => {
  copies = mkdtempSync(join(folder, 'copies-'));
});

/** Runs the script on a day of January 2030, given by a fake `date` command. */
function backUp(day: number, ...args: string[]) {
  const bin = join(folder, `bin-${day}`);
  mkdirSync(bin, { recursive: true });
  const stamp = named(day).slice('ledger-'.length, -'.sqlite'.length);
  writeFileSync(join(bin, 'date'), `#!/bin/sh\necho ${stamp}\n`, { mode: 0o755 });
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  return spawnSync(SCRIPT, args.length === 0 ? [copies, '2', config] : args, { encoding: 'utf8', env });
}

const present = (): string[] => readdirSync(copies).sort();

describe('backup.sh', () => {
  test('keeps the newest copies, not readable by others, and changes nothing else', () => {
    writeFileSync(join(copies, 'ledger-notes.sqlite'), 'mine');
    writeFileSync(join(copies, `${named(1)}.4711.tmp`), 'what a killed copy left');
    for (const day of [1, 2, 3, 4]) expect(backUp(day)).toMatchObject({ status: 0, stderr: '' });
    expect(present()).toEqual([named(3), named(4), 'ledger-notes.sqlite']);
    for (const name of [named(3), named(4)]) expect(statSync(join(copies, name)).mode & 0o777).toBe(0o600);
  });

  test.each([
    ['no words', []],
    ['one word', ['copies']],
    ['four words', ['copies', '2', 'config.json', 'more']],
  ])('with %s prints its usage, and ends with the code of a wrong command line', (_what, words) => {
    const { status, stderr } = spawnSync(SCRIPT, words, { encoding: 'utf8', cwd: folder });
    expect({ status, stderr }).toEqual({ status: 2, stderr: `usage: ${SCRIPT} FOLDER KEEP [CONFIG]\n` });
  });

  test('refuses an empty name of a configuration instead of using another one', () => {
    const { status, stderr } = spawnSync(SCRIPT, [copies, '2', ''], { encoding: 'utf8' });
    expect([status, present()]).toEqual([2, []]);
    expect(stderr).toContain("option '--config <file>' is empty");
  });

  test('works through a link in another folder', () => {
    const link = join(folder, 'pagegate-backup');
    symlinkSync(SCRIPT, link);
    const { status, stderr } = spawnSync(link, [copies, '2', config], { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(present()).toHaveLength(1);
  });

  test('creates a copy that the program can restore', () => {
    expect(backUp(1).status).toBe(0);
    const restored = join(folder, 'restored.json');
    writeFileSync(restored, JSON.stringify({ state_dir: join(folder, 'restored') }), { mode: 0o640 });
    // On a new host the key of the ledger comes from a separate backup.
    mkdirSync(join(folder, 'restored/keys'), { recursive: true, mode: 0o700 });
    const words = ['account', 'restore', join(copies, named(1)), '--accept-unknown-usage', '--config', restored];
    const { status, stderr } = pagegate(words);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(pagegate(['account', 'list', '--config', restored]).stdout).toContain('gateway');
  });

  test('removes no old copy if the new one fails', () => {
    for (const day of [1, 2]) expect(backUp(day).status).toBe(0);
    const missing = join(folder, 'missing.json');
    writeFileSync(missing, JSON.stringify({ state_dir: join(folder, 'nowhere') }), { mode: 0o640 });
    const { status, stderr } = backUp(3, copies, '1', missing);
    expect(status).not.toBe(0);
    expect(stderr).toContain('no_ledger');
    expect(backUp(2).status).not.toBe(0);
    expect(present()).toEqual([named(1), named(2)]);
  });

  test('never removes the copy it has just made, even after the clock was set back', () => {
    for (const day of [8, 9]) expect(backUp(day).status).toBe(0);
    expect(backUp(1).status).toBe(0);
    expect(present()).toEqual([named(1), named(9)]);
  });

  test.each(['0', '', '-1', '1 2', 'x', '010'])('refuses to keep %j copies', (keep) => {
    writeFileSync(join(copies, named(1)), 'old');
    const { status, stderr } = backUp(2, copies, keep, config);
    expect(status).toBe(2);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(present()).toEqual([named(1)]);
  });

  test('reports a missing folder', () => {
    const { status, stderr } = backUp(1, join(folder, 'none'), '1', config);
    expect(status).toBe(2);
    expect(stderr).toContain('is not a folder');
  });
});
