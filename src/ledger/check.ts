/** Checks a ledger file: completely, or only what can be read quickly. */
import { dirname } from 'node:path';
import { findCounters } from './counters/location.ts';
import { clockProblem } from './store/clock.ts';
import { openDatabase, refuseNetworkFileSystem } from './store/database.ts';
import { isMissingOrEmpty, refuseLostLedger, requireLedger } from './store/identity.ts';
import { createReader } from './store/records.ts';
import { asLedgerError } from './store/sqlite-failures.ts';

export { findKeyVault } from './store/key-vault.ts';
export { refuseNetworkFileSystem };

/** The result of a full check of a ledger file. */
export interface LedgerCheck {
  readonly ok: boolean;
  /** As SQLite reports them; empty if there are none. */
  readonly problems: readonly string[];
}

/** Checks structure and foreign keys of the whole file. @throws PagegateError no_ledger, ledger_unavailable if it cannot be opened at all. */
export function checkLedger(file: string): LedgerCheck {
  requireLedger(file);
  const database = openDatabase(file, { readonly: true });
  try {
    const results = database.prepare<[], string>('PRAGMA integrity_check(20)').pluck().all();
    const dangling = database.prepare<[], { table: string; rowid: number }>('PRAGMA foreign_key_check').all();
    const problems = [
      ...results.filter((result) => result !== 'ok'),
      ...dangling.slice(0, 20).map(({ table, rowid }) => `${table}, row ${rowid}: its account is missing`),
    ];
    return { ok: problems.length === 0, problems };
  } catch (error) {
    throw asLedgerError(error, file);
  } finally {
    database.close();
  }
}

/** Facts about a ledger that can be had without reading all of it. */
export interface LedgerFacts {
  readonly accounts: number;
  /** Where the ledger was moved to; null if it is still here. */
  readonly movedTo: string | null;
  /** A description of the damage; undefined if there is none. */
  readonly damage: string | undefined;
  /** Why the clock is refused; undefined if it is not. */
  readonly clock: string | undefined;
  /** The file of the shared counters; undefined while no server runs. */
  readonly counters: { readonly path: string; readonly isInMemory: boolean } | undefined;
  /** How many API keys that are not revoked each encryption key has sealed, by the encryption key's id. */
  readonly keysSealedBy: ReadonlyMap<string, number>;
}

/** Reads facts about a ledger without reading all of it; undefined if there never was one. @throws PagegateError ledger_unavailable */
export function readLedgerFacts(file: string, nowSeconds: number): LedgerFacts | undefined {
  refuseLostLedger(file);
  if (isMissingOrEmpty(file)) return undefined;
  refuseNetworkFileSystem(dirname(file));
  const database = openDatabase(file, { readonly: true });
  try {
    const read = createReader(database);
    const verdict = String(database.pragma('quick_check(1)', { simple: true }));
    const sealed = database
      .prepare<[], { id: string; keys: number }>(
        'SELECT vault_id AS id, count(*) AS keys FROM api_keys WHERE revoked_at IS NULL GROUP BY vault_id ORDER BY vault_id',
      )
      .all();
    return {
      accounts: Number(database.prepare('SELECT count(*) FROM accounts').pluck().get()),
      movedTo: read.movedTo(),
      damage: verdict === 'ok' ? undefined : verdict,
      clock: clockProblem(read.lastSeenSeconds(), nowSeconds),
      counters: findCounters(file, read.ledgerId()),
      keysSealedBy: new Map(sealed.map(({ id, keys }) => [id, keys])),
    };
  } finally {
    database.close();
  }
}
