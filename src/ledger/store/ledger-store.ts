/** The interface of the two stores of accounts: SQLite on this host, PostgreSQL for a fleet. The same statements run in both. */
import type { Account, CycleUsage } from '../quota.ts';

export type SqlValue = string | number | bigint | Uint8Array | null;

/** Runs statements. In the text, `?` is the placeholder of a value. */
export interface Sql {
  rows<T>(text: string, ...values: readonly SqlValue[]): Promise<T[]>;
  /** Returns the first row; undefined if there is none. */
  row<T>(text: string, ...values: readonly SqlValue[]): Promise<T | undefined>;
  /** Returns the number of changed rows. */
  run(text: string, ...values: readonly SqlValue[]): Promise<number>;
}

/** A reading of a ledger store's clock. */
export interface ClockReading {
  /** Seconds since 1970. */
  readonly seconds: number;
  /** The latest second ever seen: what has expired stays expired when a clock is set back. */
  readonly latestSeconds: number;
  /** Why the clock is refused, in words; undefined if it is not. */
  readonly problem: string | undefined;
}

/** Statements of one transaction. */
export interface Transaction extends Sql {
  /** What accounts have used in the highest cycle in which anything was charged, by account id. */
  usage(accounts: readonly Account[]): Promise<ReadonlyMap<number, CycleUsage>>;
}

/** Stores accounts, keys, payments, usage and the audit table. */
export interface LedgerStore extends Transaction {
  /** The location of the store, for messages. */
  readonly name: string;
  /** Whether many nodes charge here. */
  readonly isFleet: boolean;
  /** Runs a task in one transaction, which is rolled back if the task throws. Transactions run one after the other. */
  transaction<T>(task: (sql: Transaction) => Promise<T>): Promise<T>;
  moment(): Promise<ClockReading>;
  /** The usage by day, oldest first, from the day `since` (days since 1970-01-01) on; of all accounts if the name is null. */
  usageByDay(since: number, name: string | null): Promise<{ account: string; day: number; lookups: number }[]>;
  /**
   * Waits, at most a few seconds, until the running servers have applied a revision.
   *
   * @returns the names of the servers that have not.
   */
  followed(revision: number, options?: { readonly untilReady?: boolean }): Promise<readonly string[]>;
  close(): Promise<void>;
}
