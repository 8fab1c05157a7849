/** Which index a command reads: the file that is named, else the one that is served. */
import type { Command } from 'commander';
import { addConfigOptions, type ConfigFlags, pathsFrom } from './config-options.ts';

export interface IndexFlags extends ConfigFlags {
  readonly index?: string;
}

/** Adds `--index` and the options that say where the served one is. */
export function addIndexOptions(command: Command): Command {
  return addConfigOptions(command.option('--index <file>', 'index file (else the one that is served)'));
}

export async function indexPathFrom(flags: IndexFlags): Promise<string> {
  return flags.index ?? (await pathsFrom(flags)).indexFile;
}
