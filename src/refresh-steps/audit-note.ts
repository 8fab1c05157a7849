/** Records changes of the served generation in the ledger's audit table. */

import type { Config } from '../config/config.ts';
import { ledgerLocation, statePaths } from '../config/paths.ts';
import { messageOf, PagegateError } from '../errors.ts';
import { openLedger } from '../ledger/open.ts';

/** The result of a refresh or a rollback. */
export interface ServedChange {
  readonly generation: number;
  readonly revision: number;
  readonly previousGeneration: number | null;
}

/**
 * Writes a line into the audit table if there is a ledger. The served generation has changed already, so a failure is returned, not thrown.
 *
 * @returns why the line is missing; undefined if it was written, or if there is no ledger.
 */
export async function noteInAudit(
  config: Config,
  actor: string,
  action: string,
  { generation, revision, previousGeneration }: ServedChange,
): Promise<string | undefined> {
  const { ledgerKeyFile: keyFile } = statePaths(config);
  try {
    const ledger = await openLedger({ ...ledgerLocation(config), keyFile, actor, create: false });
    try {
      const before = previousGeneration === null ? null : JSON.stringify({ generation: previousGeneration });
      await ledger.note(action, before, JSON.stringify({ generation, revision }));
    } finally {
      await ledger.close();
    }
    return undefined;
  } catch (error) {
    if (error instanceof PagegateError && error.code === 'no_ledger') return undefined;
    return `The audit has no line of it: ${messageOf(error)}`;
  }
}
