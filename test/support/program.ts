/** The program as a person runs it. */
import { type SpawnSyncOptions, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import { runCommandLine } from '../../src/cli.ts';

export const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

/** Runs the program with these words, in a process of its own. */
export function pagegate(words: readonly string[], options: SpawnSyncOptions = {}): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [CLI, ...words], { maxBuffer: 1 << 24, ...options, encoding: 'utf8' });
}

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the program with these words inside this process, which takes a fraction of a start of it, to where its own process could end:
 * it waits for whatever the command has left open. For what commands say and do; streams, signals, users and a working directory that is
 * gone are seen only by `pagegate`.
 */
export async function pagegateHere(words: readonly string[], { cwd = process.cwd() } = {}): Promise<Ended> {
  const [folder, exitCode] = [process.cwd(), process.exitCode];
  const open = openResources();
  const said = { stdout: '', stderr: '' };
  const streams = [heard('stdout', said), heard('stderr', said)];
  try {
    process.chdir(cwd);
    process.exitCode = 0;
    const failed = await runCommandLine(words);
    while (openResources().some((kind, at, all) => countOf(all.slice(0, at + 1), kind) > countOf(open, kind)))
      await sleep(1);
    return { status: failed === 0 ? process.exitCode : failed, ...said };
  } finally {
    process.exitCode = exitCode;
    process.chdir(folder);
    for (const stream of streams) stream.mockRestore();
  }
}

/** Kinds of what would keep this process running, each as often as there are such; timers are those of the test runner, too. */
const openResources = (): string[] =>
  process.getActiveResourcesInfo().filter((kind) => kind !== 'Timeout' && kind !== 'Immediate');

const countOf = (kinds: readonly string[], kind: string): number => kinds.filter((one) => one === kind).length;

/** Keeps what is written to a stream of this process instead of writing it. */
function heard(name: 'stdout' | 'stderr', said: { stdout: string; stderr: string }) {
  const decoder = new TextDecoder();
  return vi.spyOn(process[name], 'write').mockImplementation((chunk, ...rest: unknown[]) => {
    said[name] += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const taken = rest.at(-1);
    if (typeof taken === 'function') process.nextTick(taken as () => void);
    return true;
  });
}
