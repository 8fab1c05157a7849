/** Opens the ledger that a configuration names: a SQLite file, or a fleet's database. */
import { Ledger, type LedgerOptions } from './ledger.ts';
import { PostgresStore } from './store/postgres-store.ts';
import { SqliteStore, type SqliteStoreOptions } from './store/sqlite-store.ts';
import type { FleetMember } from './writer.ts';

export interface OpenLedgerOptions extends LedgerOptions, SqliteStoreOptions {
  /** The fleet whose database is opened instead of the file. */
  readonly fleet?: Pick<FleetMember, 'engine' | 'maxStalenessSeconds'>;
}

/**
 * @throws PagegateError no_ledger, ledger_unavailable, ledger_on_network, ledger_version, ledger_in_use, ledger_moved, bad_ledger_url
 */
export async function openLedger(options: OpenLedgerOptions): Promise<Ledger> {
  const { fleet } = options;
  if (fleet === undefined) return new Ledger(new SqliteStore(options), options);
  // Loaded only when needed: most hosts are not nodes of a fleet and never need the driver.
  const { connectFleet } = await import('./postgres/connect.ts');
  const engine = await connectFleet(fleet.engine);
  return new Ledger(await PostgresStore.open(engine, { ...options, ...fleet }), options);
}
