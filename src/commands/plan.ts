/** `pagegate plan`: lists the plan catalog. */
import type { Command } from 'commander';
import { withCommas } from '../counted.ts';
import { addConfigOptions, configFrom } from './shared/config-options.ts';
import type { LedgerCommandOptions } from './shared/ledger-options.ts';
import { printJson, printTable } from './shared/output.ts';

export function registerPlan(program: Command): void {
  const plan = program.command('plan').description('the plan catalog');
  addConfigOptions(plan.command('list').description('list all plans with price and lookups per cycle of 30 days'))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate plan list')
    .action(async (options: LedgerCommandOptions) => {
      const { loadCatalog } = await import('../ledger/plans.ts');
      const plans = loadCatalog((await configFrom(options)).state_dir);
      if (options.json) {
        printJson(plans.map(({ id, name, priceUsd, lookups }) => ({ id, name, price_usd: priceUsd, lookups })));
        return;
      }
      const amount = (value: number | null): string => (value === null ? 'agreed' : withCommas(value));
      const rows = plans.map(({ id, name, priceUsd, lookups }) => [id, name, amount(priceUsd), amount(lookups)]);
      printTable([['plan', 'name', 'USD / 30 days', 'lookups / 30 days'], ...rows]);
    });
}
