/** Whether a ledger is what it should be: all of its bytes, or what is quickly seen. */
import { dirname } from 'node:path';
import { findCounters } from './counters/location.ts';
import { clockProblem } from './store/clock.ts';
import { openDatabase, refuseNetworkFileSystem } from './store/database.ts';
import { isMissingOrEmpty, refuseLostLedger, requireLedger } from './store/identity.ts';
import { createReader } from './store/records.ts';
import { asLedgerError } from './store/sqlite-failures.ts';

export { findKeyVault } from './store/key-vault.ts';
export { refuseNetworkFileSystem };

/** What a full look at a ledger file found. */
export interface LedgerCheck {
  readonly ok: boolean;
  /** In SQLite's words; empty when all is well. */
  readonly problems: readonly string[];
}

/** Reads the whole file: structure, foreign keys. @throws PagegateError no_ledger, ledger_unavailable when it cannot be opened at all. */
export function checkLedger(file: string): LedgerCheck {
  requireLedger(file);
  const database = openDatabase(file, { readonly: true });
  try {
    const lines = database.prepare<[], string>('PRAGMA integrity_check(20)').pluck().all();
    const dangling = database.prepare<[], { table: string; rowid: number }>('PRAGMA foreign_key_check').all();
    const problems = [
      ...lines.filter((line) => line !== 'ok'),
      ...dangling.slice(0, 20).map(({ table, rowid }) => `${table}, row ${rowid}: its account is missing`),
    ];
    return { ok: problems.length === 0, problems };
  } catch (error) {
    throw asLedgerError(error, file);
  } finally {
    database.close();
  }
}

/** What is known of a ledger without reading all of it. */
export interface LedgerFacts {
  readonly accounts: number;
  /** Where it is served from now; null where that is here. */
  readonly movedTo: string | null;
  /** In words; undefined when all is well. */
  readonly damage: string | undefined;
  /** Why the clock is refused, in words. */
  readonly clock: string | undefined;
  /** Where the shared counters lie; undefined while no server runs. */
  readonly counters: { readonly path: string; readonly isInMemory: boolean } | undefined;
  /** How many keys of accounts that are not revoked each encryption key has sealed, by its id. */
  readonly keysSealedBy: ReadonlyMap<string, number>;
}

/** Looks at a ledger without reading all of it; undefined where there never was one. @throws PagegateError ledger_unavailable */
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
