/** How benches and tools respond to wrong arguments: before anything is started or written. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const call = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
  spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });

describe.each([
  ['bench/run.ts', 'http       the program as it is served, beside its transport'],
  ['bench/all.ts', 'Usage: '],
  ['tools/chaos/metering.ts', 'Usage: '],
  ['tools/chaos/refresh.ts', 'Usage: '],
  ['tools/chaos/soak.ts', 'Usage: '],
  ['tools/fuzz/fuzz.ts', 'Usage: '],
  ['tools/eval/eval.ts', 'Usage: '],
  ['tools/dist/make-dist.ts', 'Usage: '],
])('%s', (program, expected) => {
  it('prints its usage and ends successfully with --help', () => {
    const { status, stdout, stderr } = call(program, '--help');
    expect(stdout).toContain(expected);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  it('refuses an unknown option with one line', () => {
    expect(call(program, '--unknown')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: "Unknown option '--unknown'. --help tells what there is.\n",
    });
  });
});

describe('a value', () => {
  it.each([
    ['bench/run.ts', ['nothing'], "No workload is called 'nothing': build, cold, "],
    ['bench/run.ts', ['http', 'open'], 'One workload at a time: '],
    ['bench/run.ts', ['open', '--records', '999'], '--records must be a whole number, at least 1,000: '],
    ['bench/run.ts', ['open', '--records'], "Option '--records <value>' argument missing. "],
    ['bench/all.ts', ['--records', 'many'], "--records must be a whole number, at least 1,000: 'many' is not. "],
    ['tools/chaos/metering.ts', ['--rounds', 'x'], '--rounds must be a whole number, at least 1: '],
    ['tools/chaos/metering.ts', ['--rounds', '-1'], "Option '--rounds' argument is ambiguous. "],
    ['tools/chaos/refresh.ts', ['--kills', '0'], '--kills must be a whole number, at least 1: '],
    ['tools/chaos/refresh.ts', ['5'], "Unexpected argument '5'. "],
    ['tools/chaos/soak.ts', ['--minutes', '0'], '--minutes must be a number above 0: '],
    ['tools/eval/eval.ts', ['--half', 'third'], '--half must be one of report, develop, both. '],
    ['tools/fuzz/fuzz.ts', ['--seconds', 'x'], '--seconds must be a whole number, at least 0: '],
  ])('that %s cannot use is refused: %s', (program, args, expected) => {
    const { status, stderr } = call(program, ...args);
    expect(stderr.startsWith(expected)).toBe(true);
    expect(stderr.split('\n')).toHaveLength(2);
    expect(status).toBe(2);
  });
});
