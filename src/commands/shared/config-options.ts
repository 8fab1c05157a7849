/** The options for the configuration file and the state directory, the same in every command that needs them. */
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import type { StatePaths } from '../../config/paths.ts';
import { PagegateError } from '../../errors.ts';
import { warn } from './output.ts';

export interface ConfigFlags {
  readonly config?: string;
  readonly stateDir?: string;
}

/** Adds `--config` and `--state-dir`. */
export function addConfigOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file (else PAGEGATE_CONFIG, else the defaults)')
    .option('--state-dir <dir>', 'folder with index, ledger, keys and license (else the configured one)');
}

/** Loads the configuration; the flags override it. */
export async function configFrom(flags: ConfigFlags): Promise<Config> {
  const { loadConfig } = await import('../../config/config.ts');
  return loadConfig({ file: flags.config, flags: flags.stateDir === undefined ? {} : { state_dir: flags.stateDir } });
}

/** The same for a command that writes into the state directory. Warns root if the directory belongs to another user. */
export async function configToWrite(flags: ConfigFlags): Promise<Config> {
  const config = await configFrom(flags);
  if (process.geteuid?.() !== 0) return config;
  const { statSync } = await import('node:fs');
  const owner = statSync(config.state_dir, { throwIfNoEntry: false })?.uid ?? 0;
  if (owner !== 0) {
    warn(
      `this runs as root, and ${config.state_dir} belongs to user ${owner}, whose server cannot change files that root creates there. Run it as that user: runuser -u NAME -- pagegate …`,
    );
  }
  return config;
}

/**
 * Refuses a state directory without an installation, often a mistyped one, so that the command creates nothing in it.
 *
 * @throws PagegateError no_installation
 */
export async function assertInstallation(config: Config): Promise<void> {
  const { keptFolders } = await import('../../config/paths.ts');
  const { isAbsent } = await import('../../platform/folders.ts');
  if (keptFolders(config).every(isAbsent))
    throw new PagegateError('no_installation', `Got ${config.state_dir}.`, { state_dir: config.state_dir });
}

/** Returns the paths in the state directory that these flags select. */
export async function pathsFrom(flags: ConfigFlags): Promise<StatePaths> {
  const { statePaths } = await import('../../config/paths.ts');
  return statePaths(await configFrom(flags));
}
