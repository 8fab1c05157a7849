/** Shared by the commands about accounts: their options, opening the ledger, and an account as JSON. */
import type { Command } from 'commander';
import type { AccountView, Ledger } from '../../ledger/ledger.ts';
import type { Account } from '../../ledger/quota.ts';
import { currentUser } from '../../platform/user.ts';
import { rfc3339OrNull } from '../../times.ts';
import { addConfigOptions, type ConfigFlags, configToWrite } from './config-options.ts';
import { warn } from './output.ts';

export interface LedgerCommandOptions extends ConfigFlags {
  readonly actor?: string;
  readonly json?: true;
}

/** Returns a function that adds a command about accounts to a group: usage, description, example, and the options that all of them have. */
export const ledgerCommands =
  (group: Command) =>
  (usage: string, about: string, example: string): Command =>
    addConfigOptions(group.command(usage).description(about))
      .option('--actor <name>', 'who is named in the audit table (default: the user)')
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  $ pagegate ${example}`);

/** Returns the name for the audit table: `--actor`, else the user of the process. */
export const actorOption = (options: LedgerCommandOptions): string => options.actor ?? currentUser();

/**
 * Opens the ledger for one task, and always closes it.
 *
 * @param create creates a missing ledger. Without it a missing ledger is an error: often the state directory is mistyped.
 * @throws PagegateError no_ledger, ledger_unavailable.
 */
export async function withLedger<T>(
  options: LedgerCommandOptions,
  task: (ledger: Ledger) => T | Promise<T>,
  create = false,
): Promise<T> {
  const config = await configToWrite(options);
  const { ledgerLocation, statePaths } = await import('../../config/paths.ts');
  const { openLedger } = await import('../../ledger/open.ts');
  const { loadCatalog } = await import('../../ledger/plans.ts');
  const ledger = await openLedger({
    ...ledgerLocation(config),
    keyFile: statePaths(config).ledgerKeyFile,
    actor: actorOption(options),
    plans: () => loadCatalog(config.state_dir),
    create,
  });
  try {
    const result = await task(ledger);
    // For example, a key that was revoked here is still accepted by other nodes.
    if (ledger.lag !== undefined) warn(ledger.lag);
    return result;
  } finally {
    await ledger.close();
  }
}

const nextPlanJson = (next: Account['next']): Record<string, unknown> | null =>
  next === null ? null : { plan: next.plan, limit: next.limit, from_cycle: next.fromCycle };

/** Returns an account as JSON: its record, the quota fields of the API, and the state of its keys; never a key. */
export function accountJson({ account, quota, cycle, keys }: AccountView): Record<string, unknown> {
  return {
    name: account.name,
    state: account.state,
    created_at: rfc3339OrNull(account.createdAt),
    subscribed_at: rfc3339OrNull(account.anchor),
    cycle: account.anchor === null ? null : cycle,
    ...quota,
    next_plan: nextPlanJson(account.next),
    keys: keys.map((key) => ({
      id: key.id,
      created_at: rfc3339OrNull(key.createdAt),
      expires_at: rfc3339OrNull(key.expiresAt),
      revoked_at: rfc3339OrNull(key.revokedAt),
    })),
  };
}
