/** Accounts in PostgreSQL, for a fleet of nodes. */
import { PagegateError } from '../../errors.ts';
import type { Engine } from '../postgres/engine.ts';
import { IS_RUNNING, isHeardWithin, NOW } from '../postgres/fragments.ts';
import { prepareSchema } from '../postgres/schema.ts';
import type { Account, CycleUsage } from '../quota.ts';
import { clockProblem } from './clock.ts';
import type { ClockReading, LedgerStore, SqlValue, Transaction } from './ledger-store.ts';

export interface PostgresStoreOptions {
  /** Seconds without contact to the database after which a node stops answering lookups. */
  readonly maxStalenessSeconds: number;
  /** Creates the tables if there are none; true by default. */
  readonly create?: boolean;
}

/** How long a command waits until the nodes have applied a change, in milliseconds. */
const FOLLOW_MS = 5_000;
const FOLLOW_STEP_MS = 50;

/** Replaces `?` by the numbered placeholders of PostgreSQL. Statements are written for both stores; `?` has no other use in them. */
function numbered(text: string): string {
  let count = 0;
  return text.replaceAll('?', () => {
    count += 1;
    return `$${count}`;
  });
}

/** The ledger of a fleet. */
export class PostgresStore implements LedgerStore {
  readonly name: string;
  readonly ledgerId: string;
  readonly isFleet = true;
  readonly engine: Engine;
  readonly #maxStaleness: number;
  /** Settles when the latest transaction has ended. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(engine: Engine, ledgerId: string, maxStalenessSeconds: number) {
    this.engine = engine;
    this.ledgerId = ledgerId;
    this.name = engine.name;
    this.#maxStaleness = maxStalenessSeconds;
  }

  /** @throws PagegateError no_ledger, ledger_version, ledger_moved, ledger_unavailable */
  static async open(
    engine: Engine,
    { maxStalenessSeconds, create = true }: PostgresStoreOptions,
  ): Promise<PostgresStore> {
    try {
      const ledgerId = await prepareSchema(engine, { create });
      return new PostgresStore(engine, ledgerId, maxStalenessSeconds);
    } catch (error) {
      await engine.close();
      throw error;
    }
  }

  rows<T>(text: string, ...values: readonly SqlValue[]): Promise<T[]> {
    return this.engine.query<T>(numbered(text), values);
  }

  async row<T>(text: string, ...values: readonly SqlValue[]): Promise<T | undefined> {
    return (await this.rows<T>(text, ...values))[0];
  }

  async run(text: string, ...values: readonly SqlValue[]): Promise<number> {
    // With `RETURNING 1` a statement returns one row per change.
    return (await this.rows(`${text} RETURNING 1`, ...values)).length;
  }

  transaction<T>(task: (sql: Transaction) => Promise<T>): Promise<T> {
    const run = this.#last.then(async () => {
      await this.engine.script('BEGIN');
      try {
        // This row lock serializes changes of accounts over all nodes.
        await this.rows('SELECT 1 FROM ledger FOR UPDATE');
        const result = await task(this);
        await this.#commit();
        return result;
      } catch (error) {
        await this.engine.script('ROLLBACK').catch(() => {});
        throw error;
      }
    });
    this.#last = run.catch(() => {});
    return run;
  }

  /** @throws PagegateError ledger_unavailable; if the connection was lost, the engine may have committed nevertheless */
  async #commit(): Promise<void> {
    try {
      await this.engine.script('COMMIT');
    } catch (error) {
      if (this.engine.isOpen || !(error instanceof PagegateError)) throw error;
      const what = `${error.what} The change may have been made: look whether it is there before you repeat it.`;
      throw new PagegateError('ledger_unavailable', what, error.details, { cause: error });
    }
  }

  async moment(): Promise<ClockReading> {
    const row = await this.row<{ now: number; seen: number }>(
      `SELECT floor(${NOW})::int8 AS now, last_seen_at AS seen FROM ledger`,
    );
    if (row === undefined) throw new PagegateError('ledger_unavailable', `${this.name}: the ledger’s own row is gone.`);
    const { now, seen } = row;
    return { seconds: now, latestSeconds: Math.max(now, seen), problem: clockProblem(seen, now) };
  }

  async usage(accounts: readonly Account[]): Promise<ReadonlyMap<number, CycleUsage>> {
    const rows = await this.engine.query<{ id: number; cycle: number; used: number }>(
      `SELECT DISTINCT ON (c.account_id) c.account_id AS id, c.cycle,
         greatest(0, coalesce((SELECT sum(CASE WHEN n.retired_at IS NULL AND ${isHeardWithin('$2')} THEN g.spent ELSE g.granted END) FROM grants g JOIN nodes n ON n.id = g.node
           WHERE g.account_id = c.account_id AND g.cycle = c.cycle), 0) - c.credit)::int8 AS used
       FROM cycles c WHERE c.account_id = ANY($1) ORDER BY c.account_id, c.cycle DESC`,
      [accounts.map(({ id }) => id), this.#maxStaleness],
    );
    return new Map(rows.map(({ id, cycle, used }) => [id, { cycle, used }]));
  }

  usageByDay(since: number, name: string | null): Promise<{ account: string; day: number; lookups: number }[]> {
    return this.rows(
      `SELECT accounts.name AS account, day, sum(lookups)::int8 AS lookups
       FROM usage_days JOIN accounts ON accounts.id = account_id
       WHERE day >= ? ${name === null ? '' : 'AND account_id = (SELECT id FROM accounts WHERE name = ?)'}
       GROUP BY accounts.name, day ORDER BY day, account`,
      since,
      ...(name === null ? [] : [name]),
    );
  }

  async followed(revision: number): Promise<readonly string[]> {
    const deadline = performance.now() + FOLLOW_MS;
    for (;;) {
      const behind = await this.engine.query<{ name: string }>(
        `SELECT name FROM nodes WHERE ${IS_RUNNING} AND revision < $1 AND ${isHeardWithin('$2')} ORDER BY name`,
        [revision, this.#maxStaleness],
      );
      if (behind.length === 0 || performance.now() > deadline) return behind.map(({ name }) => name);
      await new Promise((resolve) => setTimeout(resolve, FOLLOW_STEP_MS));
    }
  }

  async close(): Promise<void> {
    await this.#last;
    await this.engine.close();
  }
}
