/** The ledger's keeper: one for each host, started by the server's primary process before its workers. */
import { openDatabase } from './database.ts';
import type { Durability } from './meter.ts';

export interface KeeperOptions {
  /** The SQLite file. */
  readonly file: string;
  readonly durability?: Durability;
}

export interface Keeper {
  close(): Promise<void>;
}

/** Starts the keeper and resolves when workers may open their meters. @throws PagegateError ledger_unavailable and its kin. */
export async function startKeeper(options: KeeperOptions): Promise<Keeper> {
  const database = openDatabase(options.file);
  return {
    async close() {
      database.close();
    },
  };
}
