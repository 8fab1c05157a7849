/** The designs that metering is compared with: none at all, and the obvious one. */
import { cycleAt } from '../../src/ledger/cycle.ts';
import { type ChargeOutcome, Meter } from '../../src/ledger/meter.ts';
import { type Account, planIn } from '../../src/ledger/quota.ts';
import { openDatabase } from '../../src/ledger/store/database.ts';
import type { Database } from '../../src/platform/sqlite.ts';

export const MODES = ['off', 'charged', 'request'] as const;
/** off: nothing is charged. charged: as the program does it. request: one transaction for each request, in the worker. */
export type Mode = (typeof MODES)[number];

class OffMeter extends Meter {
  override charge(): ChargeOutcome {
    return 1_000_000;
  }
}

/** Charges in SQLite, in the worker itself, with its event loop waiting. */
class DirectMeter extends Meter {
  readonly #database: Database;

  constructor(file: string) {
    super({ file });
    this.#database = openDatabase(file);
  }

  override charge(account: Account): ChargeOutcome {
    const read = this.#database.prepare<[number], { cycle: number; used: number }>(
      'SELECT cycle, used FROM meters WHERE account_id = ?',
    );
    const save = this.#database.prepare(
      'UPDATE meters SET cycle = ?, used = ?, reserved = max(reserved, ?), total = total + 1 WHERE account_id = ?',
    );
    return this.#database
      .transaction(() => {
        const meter = read.get(account.id)!;
        const cycle = Math.max(meter.cycle, cycleAt(account.anchor ?? 0, Date.now() / 1000));
        save.run(cycle, meter.used + 1, meter.used + 1, account.id);
        return (planIn(account, cycle)?.limit ?? 0) - meter.used - 1;
      })
      .immediate();
  }
}

/** The meter of a mode; the ledger writer must run. */
export function openBenchMeter(mode: Mode, file: string): Meter {
  if (mode === 'off') return new OffMeter({ file });
  return mode === 'request' ? new DirectMeter(file) : new Meter({ file });
}
