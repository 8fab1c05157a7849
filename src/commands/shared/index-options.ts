/** The options that select the index of a command: the named file, else the served one. */
import type { Command } from 'commander';
import { addConfigOptions, type ConfigFlags, pathsFrom } from './config-options.ts';

export interface IndexFlags extends ConfigFlags {
  readonly index?: string;
}

/** Adds `--index`, and the options that locate the served index. */
export function addIndexOptions(command: Command): Command {
  return addConfigOptions(command.option('--index <file>', 'index file (else the one that is served)'));
}

export async function indexPathFrom(flags: IndexFlags): Promise<string> {
  return flags.index ?? (await pathsFrom(flags)).indexFile;
}
