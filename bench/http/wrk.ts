/** Debian's `wrk`, a check of our own load generator: an independent program, in C, that must measure the same figures. */
import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { requireDebian } from '../../tools/install-debian.ts';
import type { LoadReport, LoadTarget } from '../load-generator.ts';

const SCRIPT = fileURLToPath(new URL('./wrk.lua', import.meta.url));
const run = promisify(execFile);

/** Whether `wrk` is available. If it is missing and may be installed, installs it. */
export function hasWrk(log: (line: string) => void): boolean {
  if (spawnSync('wrk', ['-v']).error === undefined) return true;
  try {
    requireDebian('/usr/bin/wrk', 'wrk');
    return true;
  } catch (error) {
    log((error as Error).message);
    return false;
  }
}

/** Runs `wrk` once with one thread, pinned like our generator. */
export async function runWrk(
  prefix: readonly string[],
  target: LoadTarget,
  connections: number,
  seconds: number,
): Promise<LoadReport> {
  const [command = '', ...args] = [
    ...prefix,
    'wrk',
    ...['-t', '1', '-c', String(connections), '-d', `${seconds}s`, '-s', SCRIPT],
    `http://127.0.0.1:${target.port}`,
    ...[target.requestsFile, target.keys[0] ?? ''],
  ];
  const { stdout } = await run(command, args);
  const report = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as LoadReport;
  if (report.others > 0 || report.answered === 0) throw new Error(`wrk: ${JSON.stringify(report)}`);
  return report;
}
