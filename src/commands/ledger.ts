/** `pagegate ledger`: moves the accounts between a file of this host and PostgreSQL. */
import type { Command } from 'commander';
import { counted } from '../counted.ts';
import { PagegateError } from '../errors.ts';
import { configFrom } from './shared/config-options.ts';
import { type LedgerCommandOptions, ledgerCommands } from './shared/ledger-options.ts';
import { printJson, printLine } from './shared/output.ts';

export function registerLedger(program: Command): void {
  const ledger = program.command('ledger').description('where the accounts are kept');
  const about = 'move the accounts to PostgreSQL, or back to this host, while no server runs';
  ledgerCommands(ledger)('move', about, 'ledger move --to postgres://pagegate@db1,db2/pagegate')
    .requiredOption('--to <place>', 'the URL of a PostgreSQL database, or `local`')
    .action((options: LedgerCommandOptions & { to: string }) => move(options));
}

async function move(options: LedgerCommandOptions & { to: string }): Promise<void> {
  const { ledgerLocation, localLedgerFile } = await import('../config/paths.ts');
  const { connectFleet, moveToFile, moveToPostgres } = await import('../ledger/fleet.ts');
  const config = await configFrom(options);
  const file = localLedgerFile(config);
  const { fleet } = ledgerLocation(config);
  const isBack = options.to === 'local';
  if (isBack && fleet === undefined) throw new PagegateError('fleet_only', 'It says where the accounts are now.');
  const { password_file, ca_file } = config.ledger;
  const target = { url: options.to, passwordFile: password_file ?? undefined, caFile: ca_file ?? undefined };
  const report = isBack
    ? await moveToFile(() => connectFleet(fleet!.engine), file, fleet!.maxStalenessSeconds)
    : await moveToPostgres(file, () => connectFleet(target));
  if (options.json) return printJson(report);
  printLine(`Moved ${counted(report.accounts, 'account')} with ${counted(report.keys, 'key')} to ${report.to}.`);
  printLine(
    isBack
      ? 'Remove ledger.url from the configuration, then start the server.'
      : 'Set ledger.url in the configuration of every node, give all of them the same keys/ledger.key, then start them.',
  );
}
