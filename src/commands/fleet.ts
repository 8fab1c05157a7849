/** `pagegate fleet`: the servers that share one ledger in PostgreSQL. */
import type { Command } from 'commander';
import { counted } from '../counted.ts';
import type { FleetView } from '../ledger/fleet.ts';
import { rfc3339 } from '../times.ts';
import { configFrom } from './shared/config-options.ts';
import { actorOption, type LedgerCommandOptions, ledgerCommands, withLedger } from './shared/ledger-options.ts';
import { printJson, printLine, printTable } from './shared/output.ts';

export function registerFleet(program: Command): void {
  const fleet = program.command('fleet').description('the nodes that share a ledger in PostgreSQL');
  const add = ledgerCommands(fleet);

  add('status', 'show the nodes, what they hold and serve, and what is stranded', 'fleet status').action(
    async (options: LedgerCommandOptions) => {
      const { fleet: settings } = await configFrom(options);
      const { fleetStatus } = await import('../ledger/fleet.ts');
      await withLedger(options, async (ledger) => {
        const view = await fleetStatus(ledger, settings.max_staleness_seconds);
        if (options.json) printJson(toJson(view));
        else show(view);
      });
    },
  );
  add('retire <node>', 'retire a node for good; what it held stays used', 'fleet retire host-3 --give-back')
    .option(
      '--give-back',
      'give what it held back to the accounts; only if you know that it spent no more than it reported',
    )
    .action(async (node: string, options: LedgerCommandOptions & { giveBack?: true }) => {
      const { fleet: settings } = await configFrom(options);
      const { retireNode } = await import('../ledger/fleet.ts');
      await withLedger(options, async (ledger) => {
        const { node: found, lookups } = await retireNode(ledger, node, {
          actor: actorOption(options),
          giveBack: options.giveBack === true,
          maxStalenessSeconds: settings.max_staleness_seconds,
        });
        const fate = options.giveBack ? 'given back' : 'used';
        if (options.json) printJson({ id: found.id, name: found.name, lookups, fate: fate.replace(' ', '_') });
        else
          printLine(
            `${found.name} is retired. ${counted(lookups, 'lookup')} that it held ${lookups === 1 ? 'is' : 'are'} ${fate}.`,
          );
      });
    });
}

function toJson({ nodes, stranded, learning, history, differs }: FleetView): Record<string, unknown> {
  return {
    nodes: nodes.map(({ id, name, state, seen, program, generation, held, behind }) => ({
      id,
      name,
      state,
      seen_at: seen === 0 ? null : rfc3339(seen),
      program,
      generation,
      held,
      behind,
    })),
    stranded,
    learning,
    history,
    differs,
  };
}

function show({ nodes, stranded, learning, history, differs }: FleetView): void {
  const now = Date.now() / 1000;
  printTable([
    ['node', 'state', 'seen', 'holds', 'data', 'program', 'behind', 'id'],
    ...nodes.map(({ name, state, seen, held, generation, program, behind, id }) => [
      name,
      state,
      seen === 0 ? 'never' : `${Math.max(0, Math.round(now - seen))} s ago`,
      held,
      generation === '' ? '-' : generation,
      program,
      behind,
      id,
    ]),
  ]);
  for (const { account, node, lookups } of stranded)
    printLine(`Stranded on ${node}, which does not report: ${counted(lookups, 'lookup')} of ${account}.`);
  if (differs) printLine('Live nodes serve different data.');
  if (learning)
    printLine('The database has lost commits: nothing is granted until all nodes have reported what they hold.');
  else if (history > 0)
    printLine(`The database has lost commits ${counted(history, 'time')}; see \`pagegate account audit\`.`);
}
