/** `pagegate prune`: removes old generations and the leftovers of interrupted runs. */
import type { Command } from 'commander';
import { isAbsent } from '../platform/folders.ts';
import { addConfigOptions, type ConfigFlags, configToWrite } from './shared/config-options.ts';
import { parsePositive } from './shared/numbers.ts';
import { printJson, printLine } from './shared/output.ts';

interface PruneFlags extends ConfigFlags {
  readonly keep?: number;
  readonly json?: true;
}

export function registerPrune(program: Command): void {
  addConfigOptions(program.command('prune').description('remove old index generations and leftovers'))
    .option('--keep <n>', 'generations to keep, the served one included (else the configured number)', parsePositive)
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate prune --keep 2')
    .action(prune);
}

async function prune(options: PruneFlags): Promise<void> {
  const config = await configToWrite(options);
  const { statePaths } = await import('../config/paths.ts');
  const { withStoreLock } = await import('../refresh/lock.ts');
  const { pruneGenerations } = await import('../refresh/prune.ts');
  const { removeLitter } = await import('../refresh/store.ts');
  const store = statePaths(config).indexDir;
  const keep = options.keep ?? config.refresh.keep_generations;
  const isThere = !isAbsent(store);
  const result = isThere
    ? await withStoreLock(store, async () => ({
        litter: await removeLitter(store),
        generations: await pruneGenerations(store, keep),
      }))
    : { litter: [], generations: [] };
  if (options.json) {
    printJson({ store, removed_generations: result.generations, removed_litter: result.litter });
    return;
  }
  if (!isThere) {
    printLine(`There is no index store ${store}; nothing was removed.`);
    return;
  }
  const generations = result.generations.length === 0 ? 'none' : result.generations.join(', ');
  printLine(`Generations removed: ${generations}. Leftovers removed: ${result.litter.length}.`);
}
