/** The designs that metering is compared with: none at all, and the two simpler ones that lost. */
import { cycleAt } from '../../src/ledger/cycle.ts';
import { type Database, openDatabase } from '../../src/ledger/database.ts';
import {
  type AccountRef,
  type ChargeOutcome,
  type Meter,
  type MeterHealth,
  openMeter,
} from '../../src/ledger/meter.ts';
import { planIn } from '../../src/ledger/quota.ts';

export const MODES = ['off', 'relaxed', 'full', 'turn', 'request'] as const;
/** off: nothing is charged. turn: one transaction for an event-loop turn, in the worker. request: one for each request. */
export type Mode = (typeof MODES)[number];

type Done = (outcome: ChargeOutcome) => void;

/** Authenticates like the real one; how it charges is up to the subclass. */
abstract class BenchMeter implements Meter {
  readonly #real: Meter;
  constructor(real: Meter) {
    this.#real = real;
  }
  authenticate(key: string): ReturnType<Meter['authenticate']> {
    return this.#real.authenticate(key);
  }
  quotaLeft(account: AccountRef): ReturnType<Meter['quotaLeft']> {
    return this.#real.quotaLeft(account);
  }
  settle(): void {
    this.#real.settle();
  }
  health(): MeterHealth {
    return this.#real.health();
  }
  flush(): Promise<void> {
    return this.#real.flush();
  }
  close(): Promise<void> {
    return this.#real.close();
  }
  abstract charge(account: AccountRef, done: Done): void;
}

class OffMeter extends BenchMeter {
  charge(_account: AccountRef, done: Done): void {
    done({ charged: true, remaining: 1_000_000 });
  }
}

/** Charges in SQLite, in the worker itself, with its event loop waiting. */
class DirectMeter extends BenchMeter {
  readonly #database: Database;
  readonly #isGrouped: boolean;
  #waiting: { account: AccountRef; done: Done }[] = [];

  constructor(real: Meter, file: string, isGrouped: boolean) {
    super(real);
    this.#database = openDatabase(file, { synchronous: 'FULL' });
    this.#isGrouped = isGrouped;
  }

  charge(account: AccountRef, done: Done): void {
    if (!this.#isGrouped) {
      done(this.#commit([account])[0]!);
      return;
    }
    if (this.#waiting.length === 0) setImmediate(() => this.#flushTurn());
    this.#waiting.push({ account, done });
  }

  override settle(): void {
    this.#flushTurn();
  }

  #flushTurn(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (waiting.length === 0) return;
    const outcomes = this.#commit(waiting.map(({ account }) => account));
    for (const [i, { done }] of waiting.entries()) done(outcomes[i]!);
  }

  #commit(accounts: readonly AccountRef[]): ChargeOutcome[] {
    const read = this.#database.prepare<[number], { cycle: number; used: number }>(
      'SELECT cycle, used FROM meters WHERE account_id = ?',
    );
    const save = this.#database.prepare(
      'UPDATE meters SET cycle = ?, used = ?, total = total + ? WHERE account_id = ?',
    );
    const now = Date.now() / 1000;
    return this.#database
      .transaction(() => {
        const used = new Map<number, { cycle: number; used: number; added: number }>();
        const outcomes = accounts.map((account): ChargeOutcome => {
          const meter = used.get(account.id) ?? { ...read.get(account.id)!, added: 0 };
          used.set(account.id, meter);
          meter.cycle = Math.max(meter.cycle, cycleAt(account.anchor ?? 0, now));
          meter.used += 1;
          meter.added += 1;
          return { charged: true, remaining: (planIn(account, meter.cycle)?.limit ?? 0) - meter.used };
        });
        for (const [id, meter] of used) save.run(meter.cycle, meter.used, meter.added, id);
        return outcomes;
      })
      .immediate();
  }
}

/** The meter of a mode. The real ones need their ledger writer to run. */
export async function openBenchMeter(mode: Mode, file: string): Promise<Meter> {
  const real = await openMeter({ file, durability: mode === 'relaxed' ? 'relaxed' : 'full' });
  if (mode === 'off') return new OffMeter(real);
  if (mode === 'turn' || mode === 'request') return new DirectMeter(real, file, mode === 'turn');
  return real;
}
