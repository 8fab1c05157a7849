/** The hot path of a server worker: who asks, what is left, and one charge for each served lookup. */
import { PagegateError } from '../errors.ts';
import { hashApiKey, isApiKeyShaped } from './api-key.ts';
import { cycleAt, dayOf } from './cycle.ts';
import { asLedgerError, type Database, openDatabase } from './database.ts';
import { type Account, currentMeterage, planIn, type QuotaView, quotaView } from './quota.ts';
import { createReader, isKeyCurrent, type Reader } from './records.ts';

/** An account as a worker holds it between authentication and charge. */
export type AccountRef = Account;

export type AuthResult =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'account'; readonly account: AccountRef; readonly activated: boolean; readonly quota: QuotaView };

export type ChargeOutcome =
  | { readonly charged: true; readonly remaining: number }
  | {
      readonly charged: false;
      readonly error: 'unknown_key' | 'not_activated' | 'quota_exhausted' | 'ledger_unavailable';
      readonly quota?: QuotaView;
    };

/** What a charge waits for: `full` the disk (survives loss of power), `relaxed` shared memory (survives a crash). */
export type Durability = 'full' | 'relaxed';

export interface MeterOptions {
  /** The SQLite file. */
  readonly file: string;
  readonly durability?: Durability;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
}

export interface Meter {
  /** @throws PagegateError ledger_unavailable when the ledger cannot be asked; never answers `unknown` for that. */
  authenticate(key: string): AuthResult;
  /** What is left now, without charging. @throws PagegateError ledger_unavailable */
  quotaLeft(account: AccountRef): QuotaView;
  /** Charges one lookup. `done` is called once, later, when the charge is durable or certain to be refused. */
  charge(account: AccountRef, done: (outcome: ChargeOutcome) => void): void;
  /** Resolves when every charge so far has been answered. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

interface Pending {
  readonly account: AccountRef;
  readonly done: (outcome: ChargeOutcome) => void;
}

const UNAVAILABLE: ChargeOutcome = { charged: false, error: 'ledger_unavailable' };

/** One SQLite transaction for all charges of an event-loop turn. */
class GroupCommitMeter implements Meter {
  readonly #database: Database;
  readonly #read: Reader;
  readonly #file: string;
  readonly #now: () => number;
  readonly #save;
  #pending: Pending[] = [];
  #idle: (() => void)[] = [];

  constructor(options: MeterOptions) {
    this.#file = options.file;
    this.#now = options.now ?? Date.now;
    this.#database = openDatabase(this.#file, { synchronous: options.durability === 'relaxed' ? 'NORMAL' : 'FULL' });
    this.#read = createReader(this.#database);
    this.#save = this.#database.prepare(
      'UPDATE meters SET cycle = @cycle, used = @used, total = total + @n, day_used = iif(day = @day, day_used, 0) + @n, day = @day WHERE account_id = @id',
    );
  }

  authenticate(key: string): AuthResult {
    if (!isApiKeyShaped(key)) return { kind: 'unknown' };
    try {
      const record = this.#read.apiKeyByHash(hashApiKey(key));
      if (record === undefined || !isKeyCurrent(record, this.#seconds())) return { kind: 'unknown' };
      const account = this.#read.accountById(record.accountId);
      if (account === undefined || account.state === 'closed') return { kind: 'unknown' };
      return { kind: 'account', account, activated: account.state === 'active', quota: this.quotaLeft(account) };
    } catch (error) {
      throw asLedgerError(error, this.#file);
    }
  }

  quotaLeft(account: AccountRef): QuotaView {
    return quotaView(account, this.#read.meterage(account.id), this.#seconds());
  }

  charge(account: AccountRef, done: (outcome: ChargeOutcome) => void): void {
    if (this.#pending.length === 0) setImmediate(() => this.#commit());
    this.#pending.push({ account, done });
  }

  async flush(): Promise<void> {
    if (this.#pending.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async close(): Promise<void> {
    await this.flush();
    this.#database.close();
  }

  #seconds(): number {
    return Math.floor(this.#now() / 1000);
  }

  #commit(): void {
    const pending = this.#pending;
    this.#pending = [];
    let outcomes: ChargeOutcome[];
    try {
      outcomes = this.#database.transaction(() => this.#chargeAll(pending)).immediate();
    } catch {
      outcomes = pending.map(() => UNAVAILABLE);
    }
    pending.forEach(({ done }, i) => {
      done(outcomes[i]!);
    });
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  #chargeAll(pending: readonly Pending[]): ChargeOutcome[] {
    const now = this.#seconds();
    const meters = new Map<number, { account: Account; cycle: number; used: number; added: number }>();
    const outcomes = pending.map(({ account: { id } }): ChargeOutcome => {
      let meter = meters.get(id);
      if (meter === undefined) {
        const account = this.#read.accountById(id);
        if (account === undefined) throw new PagegateError('internal', `Account ${id} is gone.`);
        meter = { account, ...currentMeterage(account, this.#read.meterage(id), now), added: 0 };
        meters.set(id, meter);
      }
      const inForce = planIn(meter.account, meter.cycle);
      if (meter.account.state !== 'active' || inForce === null) {
        return { charged: false, error: 'not_activated', quota: quotaView(meter.account, meter, now) };
      }
      if (meter.used >= inForce.limit) {
        return { charged: false, error: 'quota_exhausted', quota: quotaView(meter.account, meter, now) };
      }
      meter.used += 1;
      meter.added += 1;
      return { charged: true, remaining: inForce.limit - meter.used };
    });
    for (const { account, cycle, used, added } of meters.values()) {
      if (added > 0)
        this.#save.run({
          cycle: Math.max(cycle, cycleAt(account.anchor!, now)),
          used,
          n: added,
          day: dayOf(now),
          id: account.id,
        });
    }
    return outcomes;
  }
}

/** Opens the meter of a worker process. @throws PagegateError ledger_unavailable, ledger_on_network, ledger_version. */
export async function openMeter(options: MeterOptions): Promise<Meter> {
  return new GroupCommitMeter(options);
}
