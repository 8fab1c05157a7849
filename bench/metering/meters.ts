/** The meters that the program's metering is compared with: no metering, and one transaction per request. */
import { cycleAt } from '../../src/ledger/cycle.ts';
import { type ChargeOutcome, Meter } from '../../src/ledger/meter.ts';
import { type Account, planIn } from '../../src/ledger/quota.ts';
import { openDatabase } from '../../src/ledger/store/database.ts';
import type { Database } from '../../src/platform/sqlite.ts';

export const MODES = ['off', 'charged', 'request'] as const;
/** off: nothing is charged. charged: the program's metering. request: one transaction per request, in the worker. */
export type Mode = (typeof MODES)[number];

class OffMeter extends Meter {
  override charge(): ChargeOutcome {
    return 1_000_000;
  }
}

/** Charges in SQLite, synchronously in the worker. */
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

/** Opens the meter of a mode. The ledger writer must be running. */
export function openBenchMeter(mode: Mode, file: string): Meter {
  if (mode === 'off') return new OffMeter({ file });
  return mode === 'request' ? new DirectMeter(file) : new Meter({ file });
}
