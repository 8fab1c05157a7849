/** Where accounts live: in SQLite on this host, or in PostgreSQL for a fleet. The same statements run in both. */
import type { Account, CycleUsage } from '../quota.ts';

export type SqlValue = string | number | bigint | Uint8Array | null;

/** Runs statements. A value stands as `?` in the text. */
export interface Sql {
  rows<T>(text: string, ...values: readonly SqlValue[]): Promise<T[]>;
  /** The first row; undefined where there is none. */
  row<T>(text: string, ...values: readonly SqlValue[]): Promise<T | undefined>;
  /** Returns how many rows were changed. */
  run(text: string, ...values: readonly SqlValue[]): Promise<number>;
}

/** What the clock of a ledger store says. */
export interface ClockReading {
  /** Seconds since 1970. */
  readonly seconds: number;
  /** The latest second ever seen: what has expired stays so when a clock is set back. */
  readonly latestSeconds: number;
  /** Why the clock is not believed, in words. */
  readonly problem: string | undefined;
}

/** Statements of one transaction. */
export interface Transaction extends Sql {
  /** What accounts have used in the highest cycle that was charged in, by their ids. */
  usage(accounts: readonly Account[]): Promise<ReadonlyMap<number, CycleUsage>>;
}

/** Keeps accounts, keys, payments, usage and their audit. */
export interface LedgerStore extends Transaction {
  /** Where it is, for messages. */
  readonly name: string;
  /** Whether many nodes charge here. */
  readonly isFleet: boolean;
  /** One transaction; what it throws undoes it. Transactions run one after the other. */
  transaction<T>(task: (sql: Transaction) => Promise<T>): Promise<T>;
  moment(): Promise<ClockReading>;
  /** The usage by day since a day (since 1970-01-01), of one account or of all, oldest first. */
  usageByDay(since: number, name: string | null): Promise<{ account: string; day: number; lookups: number }[]>;
  /**
   * Waits, for some seconds at most, until the running servers follow a revision.
   *
   * @returns the names of servers that do not follow.
   */
  followed(revision: number, options?: { readonly untilReady?: boolean }): Promise<readonly string[]>;
  close(): Promise<void>;
}
