/** Runs the tests of the guard for Python, which are written in Python. They only need python3 from version 3.9. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const TESTS = fileURLToPath(new URL('../integrations/python/guard_test.py', import.meta.url));
const present = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0;
if (!present)
  console.warn('Not tested: tools/integrations/python, because there is no python3 from 3.9 on this machine.');

describe.runIf(present)('the guard for Python', () => {
  test('passes each of its tests', async () => {
    const child = spawn('python3', ['-W', 'ignore', TESTS], { stdio: ['ignore', 'ignore', 'pipe'] });
    let report = '';
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      report += chunk;
    });
    const status = await new Promise((resolve) => child.on('close', resolve));
    const written = readFileSync(TESTS, 'utf8').match(/^ {4}def test_/gm)?.length;
    expect(written).toBeGreaterThan(50);
    const ran = Number(/^Ran ([0-9]+) tests/m.exec(report)?.[1]);
    expect({ status, ran }, report).toEqual({ status: 0, ran: written });
    expect(report.match(/skipped/g)).toBeNull();
  });
});
