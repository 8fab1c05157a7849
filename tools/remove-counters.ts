/** Removes shared counters. They are outside an installation's folder, in memory, so a run that kills servers must remove them separately. */
import { join } from 'node:path';
import { removeCounters } from '../src/ledger/counters/location.ts';
import { readIdentity } from '../src/ledger/store/identity.ts';

/** Removes the shared counters of the ledger in a state directory. Call it before the directory is removed. */
export function removeCountersOf(stateDir: string): void {
  for (const folder of ['ledger', 'fleet']) {
    const ledgerFile = join(stateDir, folder, 'ledger.sqlite');
    const identity = readIdentity(ledgerFile);
    if (identity !== undefined) removeCounters(ledgerFile, identity.ledgerId);
  }
}
