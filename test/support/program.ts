/** Runs the program as a user would. */
import { type SpawnSyncOptions, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import { runCommandLine } from '../../src/cli.ts';

export const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

/** Runs the program with these arguments, in a process of its own. */
export function pagegate(args: readonly string[], options: SpawnSyncOptions = {}): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [CLI, ...args], { maxBuffer: 1 << 24, ...options, encoding: 'utf8' });
}

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the program with these arguments inside this process, which is much faster than starting it. Returns when its own process could end: when
 * everything that the command opened is closed. Use it for the output and effects of commands. Only `pagegate` can test streams, signals, users and a
 * working directory that was removed.
 */
export async function pagegateHere(args: readonly string[], { cwd = process.cwd() } = {}): Promise<Ended> {
  const [folder, exitCode] = [process.cwd(), process.exitCode];
  const open = openResources();
  const output = { stdout: '', stderr: '' };
  const streams = [capture('stdout', output), capture('stderr', output)];
  try {
    process.chdir(cwd);
    process.exitCode = 0;
    const failed = await runCommandLine(args);
    while (openResources().some((kind, at, all) => countOf(all.slice(0, at + 1), kind) > countOf(open, kind)))
      await sleep(1);
    return { status: failed === 0 ? process.exitCode : failed, ...output };
  } finally {
    process.exitCode = exitCode;
    process.chdir(folder);
    for (const stream of streams) stream.mockRestore();
  }
}

/** The kinds of resources that would keep this process running, one entry for each resource. Timers are left out: the test runner has some, too. */
const openResources = (): string[] =>
  process.getActiveResourcesInfo().filter((kind) => kind !== 'Timeout' && kind !== 'Immediate');

const countOf = (kinds: readonly string[], kind: string): number => kinds.filter((one) => one === kind).length;

/** Collects what is written to a stream of this process instead of writing it. */
function capture(name: 'stdout' | 'stderr', output: { stdout: string; stderr: string }) {
  const decoder = new TextDecoder();
  return vi.spyOn(process[name], 'write').mockImplementation((chunk, ...rest: unknown[]) => {
    output[name] += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const callback = rest.at(-1);
    if (typeof callback === 'function') process.nextTick(callback as () => void);
    return true;
  });
}
