/** Opens the ledger that a configuration names. */
import { Ledger, type LedgerOptions } from './ledger.ts';
import { SqliteStore, type SqliteStoreOptions } from './store/sqlite-store.ts';

export interface OpenLedgerOptions extends LedgerOptions, SqliteStoreOptions {}

/** @throws PagegateError no_ledger, ledger_unavailable, ledger_on_network, ledger_version, ledger_in_use */
export function openLedger(options: OpenLedgerOptions): Ledger {
  return new Ledger(new SqliteStore(options), options);
}
