/** The shipped units, checked with systemd's own tools if they are installed. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const UNITS = `${ROOT}tools/packaging/systemd/`;
/** Units that are in the folder of their program. */
const BESIDE = ['tools/integrations/mitmproxy/pagegate-mitmproxy.service'];
const shipped = readdirSync(UNITS).sort();
const files = [...shipped.map((name) => join(UNITS, name)), ...BESIDE.map((path) => join(ROOT, path))];
const names = files.map((path) => basename(path));
const present = spawnSync('systemd-analyze', ['--version']).status === 0;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-units-'));
  for (const path of files) {
    // The program is not installed where the unit expects it. For the check, any executable will do.
    const text = readFileSync(path, 'utf8').replaceAll(
      /(?:\/usr\/bin\/python3|\/opt\/pagegate\/(?:pagegate|node_modules\/\.bin\/node|tools\/packaging\/backup\.sh))(?= )/g,
      '/bin/true',
    );
    writeFileSync(join(folder, basename(path)), text);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8', timeout: 120_000 });

test('the units are the server, refresh and backup with their timers, and the adapter for nginx', () => {
  const expected = ['backup.service', 'backup.timer', 'nginx-auth.service', 'refresh.service', 'refresh.timer'].map(
    (name) => `pagegate-${name}`,
  );
  expect(shipped).toEqual([...expected, 'pagegate.service']);
});

test('the units only start files of this tree', () => {
  const commands = files.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/^ExecStart=(.*)$/gm)].map(([, command = '']) => command),
  );
  expect(commands.length).toBe(5);
  const started = commands.flatMap((command) =>
    command.split(' ').filter((word) => /^\/opt\/pagegate\/tools\//.test(word)),
  );
  expect(started.length).toBe(3);
  for (const file of started) expect(existsSync(file.replace('/opt/pagegate/', ROOT)), file).toBe(true);
});

test('no unit removes the shared counters when its processes end', () => {
  for (const path of files) expect(readFileSync(path, 'utf8'), path).not.toMatch(/^RemoveIPC=/m);
});

describe.runIf(present)('systemd-analyze', () => {
  test('reports nothing about the units', () => {
    const paths = names.map((name) => join(folder, name));
    const { status, stdout, stderr } = analyze('verify', '--man=no', '--recursive-errors=no', ...paths);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  test('reports a fault in a unit that has one', () => {
    const bad = join(folder, 'bad.service');
    writeFileSync(bad, '[Service]\nExecStart=/no/such/program\nNoSuchSetting=yes\n');
    const { status, stderr } = analyze('verify', '--man=no', '--recursive-errors=no', bad);
    expect(stderr).toContain('bad.service');
    expect(status).not.toBe(0);
  });

  test.each(names.filter((name) => name.endsWith('.service')))('rates %s as well confined', (name) => {
    // Exposure from 0 to 100, in tenths of its usual scale; systemd calls up to 30 OK.
    const { status, stdout, stderr } = analyze(
      'security',
      '--offline=true',
      '--threshold=25',
      '--no-pager',
      join(folder, name),
    );
    expect(`${status} ${stdout.slice(-400)} ${stderr}`).toMatch(/^0 /);
  });
});
