/** `pagegate status`: shows what the running server serves, and its health. */
import type { Command } from 'commander';
import { EXIT } from '../errors.ts';
import type { ServerStatus } from '../server/status.ts';
import { addConfigOptions, type ConfigFlags, pathsFrom } from './shared/config-options.ts';
import { printJson, printLine, printTable } from './shared/output.ts';

export function registerStatus(program: Command): void {
  const command = program.command('status').description('show what the running server serves, and its workers');
  addConfigOptions(command)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate status --json')
    .action(async (flags: ConfigFlags & { readonly json?: boolean }) => {
      const { askServer } = await import('../server/control-socket.ts');
      const status = (await askServer((await pathsFrom(flags)).socket, 'status')) as ServerStatus;
      if (flags.json === true) printJson(status);
      else printStatus(status);
      if (!status.ready) process.exitCode = EXIT.negative;
    });
}

function printStatus(status: ServerStatus): void {
  printLine(
    `${status.address}  ${status.ready ? 'ready' : 'not ready'}  pagegate ${status.version}  pid ${status.pid}  since ${status.started_at}`,
  );
  for (const line of [...status.reasons, ...status.warnings]) printLine(`  ${line}`);
  printTable([
    ['worker', 'pid', 'data', 'records', 'connections', 'in flight'],
    ...status.workers.map((worker) => [
      worker.worker,
      String(worker.pid),
      worker.data ?? '-',
      worker.records ?? 0,
      worker.connections,
      worker.in_flight,
    ]),
    ...status.missing.map(({ worker, pid }) => [worker, pid === null ? '-' : String(pid), 'no answer', '-', '-', '-']),
  ]);
}
