/** `pagegate reload`: the running server loads index, policy and certificate again. */
import type { Command } from 'commander';
import { EXIT } from '../errors.ts';
import type { ReloadReply } from '../server/status.ts';
import { addConfigOptions, type ConfigFlags, pathsFrom } from './shared/config-options.ts';
import { printJson, printLine, printTable, sentence, warn } from './shared/output.ts';

export function registerReload(program: Command): void {
  const command = program
    .command('reload')
    .description('make the running server load index, policy and certificate again');
  addConfigOptions(command)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate reload --json')
    .action(reload);
}

async function reload(flags: ConfigFlags & { readonly json?: boolean }): Promise<void> {
  const { askServer } = await import('../server/control-socket.ts');
  const reply = (await askServer((await pathsFrom(flags)).socket, 'reload')) as ReloadReply;
  if (flags.json === true) printJson(reply);
  else {
    // The reason for a refusal would make the table too wide; the warnings below give it.
    const cellOf = (text: string): string => {
      const reason = /^refused: (.*)$/s.exec(text)?.[1];
      return reason !== undefined && reply.warnings.some((warning) => warning.includes(reason)) ? 'refused' : text;
    };
    printTable([
      ['worker', 'index', 'policy', 'certificate'],
      ...reply.workers.map((one) => [one.worker, cellOf(one.index), cellOf(one.policy), cellOf(one.certificate)]),
    ]);
    for (const { worker, reason } of reply.missing) {
      printLine(`Worker ${worker} did not reload: it ${reason}. Its replacement starts with the same files.`);
    }
  }
  for (const warning of reply.warnings) warn(sentence(warning));
  const isRefused = reply.workers.some((worker) =>
    [worker.index, worker.policy, worker.certificate].some((text) => text.startsWith('refused')),
  );
  if (isRefused || reply.missing.length > 0) process.exitCode = EXIT.refused;
}
