/** `pagegate restart`: a new server takes over from the running one without losing a request. */
import type { Command } from 'commander';
import { PagegateError } from '../errors.ts';
import type { RestartReply } from '../server/status.ts';
import { addConfigOptions, type ConfigFlags, pathsFrom } from './shared/config-options.ts';
import { printJson, printLine } from './shared/output.ts';

/** Maximum duration of a restart after the new server is ready, in seconds. */
const GRACE_SECONDS = 90;

interface RestartFlags extends ConfigFlags {
  readonly wait: string;
  readonly json?: boolean;
}

export function registerRestart(program: Command): void {
  const command = program
    .command('restart')
    .description('replace the running server with a new one, even of another version, without losing a request');
  addConfigOptions(command)
    .option('--wait <seconds>', 'how long the new server may take to become ready', '120')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate restart --wait 300')
    .action(async (flags: RestartFlags) => {
      const seconds = Number(flags.wait);
      if (!/^\d{1,4}$/.test(flags.wait) || seconds < 1 || seconds > 3_600)
        throw new PagegateError('usage', `--wait: expected 1 to 3600 seconds, got "${flags.wait}".`);
      const { askServer } = await import('../server/control-socket.ts');
      const options = { wait_seconds: seconds };
      const { socket } = await pathsFrom(flags);
      const reply = await askServer(socket, 'restart', (seconds + GRACE_SECONDS) * 1_000, options);
      const { version, pid } = reply as RestartReply;
      if (flags.json === true) printJson(reply);
      else
        printLine(
          `pagegate ${version} (pid ${pid}) serves now; the previous server finishes its open requests, and ends.`,
        );
    });
}
