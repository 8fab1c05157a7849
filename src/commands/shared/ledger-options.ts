/** What the commands about accounts share: where the ledger is, who is named in the audit, and how an account is shown. */
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

/** Adds commands about accounts to a group, each with what it does, an example, and the options that all of them have. */
export const ledgerCommands =
  (group: Command) =>
  (usage: string, about: string, example: string): Command =>
    addConfigOptions(group.command(usage).description(about))
      .option('--actor <name>', 'who is named in the audit table (default: the user)')
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  $ pagegate ${example}`);

/** Who is named in the audit table. */
export const actorOption = (options: LedgerCommandOptions): string => options.actor ?? currentUser();

/**
 * Opens the ledger for one task, and closes it whatever happens.
 *
 * @param create makes the ledger where there is none; any other command there is a mistake, often of the directory.
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
    // A key that is revoked here still opens there.
    if (ledger.lag !== undefined) warn(ledger.lag);
    return result;
  } finally {
    await ledger.close();
  }
}

const nextPlanJson = (next: Account['next']): Record<string, unknown> | null =>
  next === null ? null : { plan: next.plan, limit: next.limit, from_cycle: next.fromCycle };

/** An account as JSON: the contract's quota fields beside its record and its keys' states; never a key. */
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
