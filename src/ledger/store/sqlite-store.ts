/** Accounts in a SQLite file on this host. */

import type { Database } from '../../platform/sqlite.ts';
import { readCounters } from '../counters/location.ts';
import { awaitPublished } from '../counters/wait-for-writer.ts';
import { cycleAt, dayOf } from '../cycle.ts';
import type { Account, CycleUsage } from '../quota.ts';
import { CLOCK_LEAP_SECONDS, clockProblem } from './clock.ts';
import { openDatabase } from './database.ts';
import {
  inodeOf,
  refuseForeignLedger,
  refuseLostLedger,
  refuseMovedLedger,
  refuseReplacedLedger,
  requireLedger,
} from './identity.ts';
import type { ClockReading, LedgerStore, SqlValue, Transaction } from './ledger-store.ts';
import { createMeterStore, knownUsage } from './meters.ts';
import { createReader, type Reader } from './records.ts';
import { asLedgerError } from './sqlite-failures.ts';

export interface SqliteStoreOptions {
  readonly file: string;
  /** Creates the file if there never was one; true by default. */
  readonly create?: boolean;
  readonly readonly?: boolean;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
}

/** The ledger of a single host. */
export class SqliteStore implements LedgerStore {
  readonly name: string;
  readonly isFleet = false;
  readonly database: Database;
  readonly read: Reader;
  readonly #now: () => number;
  readonly #ledgerId: string;
  readonly #inode: string;
  /** Settles when the latest transaction has ended. */
  #last: Promise<unknown> = Promise.resolve();

  /** @throws PagegateError no_ledger, ledger_unavailable, ledger_on_network, ledger_version, ledger_in_use */
  constructor({ file, create = true, readonly = false, now = Date.now }: SqliteStoreOptions) {
    this.name = file;
    this.#now = now;
    (create ? refuseLostLedger : requireLedger)(file);
    const before = inodeOf(file);
    this.database = openDatabase(file, { readonly, mustExist: !create });
    this.#inode = before === '0' ? inodeOf(file) : before;
    try {
      this.read = createReader(this.database);
      this.#ledgerId = this.read.ledgerId();
      refuseForeignLedger(file, this.#ledgerId);
      refuseMovedLedger(file, this.read.movedTo());
    } catch (error) {
      this.database.close();
      throw asLedgerError(error, file);
    }
  }

  async rows<T>(text: string, ...values: readonly SqlValue[]): Promise<T[]> {
    return this.#guard(() => this.database.prepare<SqlValue[], T>(text).all(...values));
  }

  async row<T>(text: string, ...values: readonly SqlValue[]): Promise<T | undefined> {
    return this.#guard(() => this.database.prepare<SqlValue[], T>(text).get(...values));
  }

  async run(text: string, ...values: readonly SqlValue[]): Promise<number> {
    return this.#guard(() => this.database.prepare(text).run(...values).changes);
  }

  transaction<T>(task: (sql: Transaction) => Promise<T>): Promise<T> {
    const run = this.#last.then(async () => {
      this.#guard(() => this.database.exec('BEGIN IMMEDIATE'));
      try {
        // A restore or a move that held the lock until now has taken all that was in this file: what came later would be lost.
        refuseReplacedLedger(this.name, this.#inode);
        refuseMovedLedger(this.name, this.read.movedTo());
        const result = await task(this);
        this.#guard(() => this.database.exec('COMMIT'));
        return result;
      } catch (error) {
        if (this.database.inTransaction) this.database.exec('ROLLBACK');
        throw error;
      }
    });
    this.#last = run.catch(() => {});
    return run;
  }

  async moment(): Promise<ClockReading> {
    const seconds = Math.floor(this.#now() / 1000);
    const lastSeen = this.#guard(() => this.read.lastSeenSeconds());
    return { seconds, latestSeconds: Math.max(seconds, lastSeen), problem: clockProblem(lastSeen, seconds) };
  }

  async usage(accounts: readonly Account[]): Promise<ReadonlyMap<number, CycleUsage>> {
    const { seconds, latestSeconds } = await this.moment();
    const counters = readCounters(this.name, this.#ledgerId);
    const meters = createMeterStore(this.database);
    const usage = new Map<number, CycleUsage>();
    for (const { id, anchor } of accounts) {
      const row = this.#guard(() => meters.one(id));
      if (row === undefined || anchor === null) continue;
      const moment = { today: dayOf(seconds), latestCycle: cycleAt(anchor, latestSeconds + CLOCK_LEAP_SECONDS) };
      // The same rule as in the ledger writer: the shared counters if their content is possible, otherwise all that is reserved.
      usage.set(id, knownUsage(row, counters?.view(id), moment));
    }
    return usage;
  }

  usageByDay(since: number, name: string | null): Promise<{ account: string; day: number; lookups: number }[]> {
    return this.rows(
      `SELECT accounts.name AS account, day, sum(lookups) AS lookups FROM (
         SELECT account_id, day, lookups FROM usage_days
         UNION ALL SELECT account_id, day, day_used FROM meters WHERE day_used > 0
       ) JOIN accounts ON accounts.id = account_id
       WHERE day >= ? ${name === null ? '' : 'AND account_id = (SELECT id FROM accounts WHERE name = ?)'}
       GROUP BY account_id, day ORDER BY day, account`,
      since,
      ...(name === null ? [] : [name]),
    );
  }

  async followed(revision: number, options: { readonly untilReady?: boolean } = {}): Promise<readonly string[]> {
    return awaitPublished(this.name, this.#ledgerId, revision, options) ? [] : ['this host'];
  }

  async close(): Promise<void> {
    await this.#last;
    this.database.close();
  }

  #guard<T>(task: () => T): T {
    try {
      return task();
    } catch (error) {
      throw asLedgerError(error, this.name);
    }
  }
}
