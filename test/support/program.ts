/** The program as a person runs it: in a process of its own, to its end. */
import { type SpawnSyncOptions, type SpawnSyncReturns, spawnSync } from 'node:child_process';

export const CLI = new URL('../../src/cli.ts', import.meta.url).pathname;

/** Runs the program with these words. */
export function pagegate(words: readonly string[], options: SpawnSyncOptions = {}): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [CLI, ...words], { maxBuffer: 1 << 24, ...options, encoding: 'utf8' });
}
