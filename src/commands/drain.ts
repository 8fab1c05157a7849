/** `pagegate drain`: the running server finishes its open requests and stops. */
import type { Command } from 'commander';
import { addConfigOptions, type ConfigFlags, pathsFrom } from './shared/config-options.ts';
import { printJson, printLine } from './shared/output.ts';

export function registerDrain(program: Command): void {
  const command = program.command('drain').description('make the running server finish its open requests, then stop');
  addConfigOptions(command)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate drain')
    .action(async (flags: ConfigFlags & { readonly json?: boolean }) => {
      const { askServer } = await import('../server/control-socket.ts');
      const state = await askServer((await pathsFrom(flags)).socket, 'drain');
      if (flags.json === true) printJson({ state });
      else printLine('The server takes no new connections, finishes its open requests, and stops.');
    });
}
