/** The meters in the ledger: what is charged and reserved for each account, and the usage by day. */
import type { Database } from '../../platform/sqlite.ts';
import type { SlotView } from '../counters/counters.ts';

/** A meter, as it is stored durably. */
export interface MeterRow {
  readonly cycle: number;
  /** Lookups charged in the cycle; at most `reserved`. */
  readonly used: number;
  /** Lookups of the cycle that may be spent without asking the ledger. */
  readonly reserved: number;
  /** Lookups charged ever. */
  readonly total: number;
  /** The day of the last charge (days since 1970-01-01), and the lookups charged in it. Earlier days are in usage_days. */
  readonly day: number;
  readonly dayUsed: number;
}

/** An operator's correction, which the ledger stores until it is applied. */
export interface RequestedCorrection {
  readonly id: number;
  readonly accountId: number;
  /** The cycle to move to; null to keep the cycle. */
  readonly cycle: number | null;
  /** Lookups that count as used; null to keep their number, or to set it to 0 if the cycle is given. */
  readonly used: number | null;
  /** Lookups to give back. */
  readonly credit: number;
}

/** Returns the row with more lookups in the total and on the day. */
export function charged(row: MeterRow, lookups: number, today: number): MeterRow {
  const day = Math.max(row.day, today);
  const dayUsed = (day === row.day ? row.dayUsed : 0) + lookups;
  return lookups === 0 ? row : { ...row, total: row.total + lookups, day, dayUsed };
}

/** The present day (days since 1970-01-01), and the latest cycle of an account that any clock can have reached. */
export interface MeterMoment {
  readonly today: number;
  readonly latestCycle: number;
}

/**
 * Returns an account's meter with what it has used according to the ledger and to its slot in the shared counters. If there is no slot, or
 * its content is impossible, all that was reserved counts as used.
 */
export function knownUsage(row: MeterRow, slot: SlotView | undefined, { today, latestCycle }: MeterMoment): MeterRow {
  const lost = { ...charged(row, row.reserved - row.used, today), used: row.reserved };
  if (slot === undefined) return row.used === row.reserved ? row : lost;
  // The row's cycle was committed but never published, so nothing of it can have been spent.
  if (slot.cycle < row.cycle) return row;
  const used = slot.reserved - slot.left;
  const isSame = slot.cycle === row.cycle;
  if (isSame && used === row.used) return row;
  if (isSame && used > row.used && used <= row.reserved) return { ...charged(row, used - row.used, today), used };
  if (isSame ? used < row.used : slot.cycle > latestCycle) return lost;
  // The ledger is older than the counters: the file was replaced by an older copy.
  return { ...charged(row, isSame ? used - row.used : used, today), cycle: slot.cycle, used, reserved: used };
}

/** The audit action of a correction that was applied; its line has the meter before and after. */
export const METER_CORRECTED = 'ledger.correct';

export const METER_COLUMNS = 'cycle, used, reserved, total, day, day_used AS dayUsed';

/** Reads and writes meters. The statements are prepared once per connection. */
export function createMeterStore(database: Database) {
  const all = database.prepare<[], MeterRow & { id: number }>(`SELECT account_id AS id, ${METER_COLUMNS} FROM meters`);
  const one = database.prepare<[number], MeterRow>(`SELECT ${METER_COLUMNS} FROM meters WHERE account_id = ?`);
  const save = database.prepare(
    'UPDATE meters SET cycle = ?, used = ?, reserved = ?, total = ?, day = ?, day_used = ? WHERE account_id = ?',
  );
  const correct = database.prepare(
    'UPDATE meters SET corrections = corrections + 1, cycle = ?, used = ?, reserved = ? WHERE account_id = ?',
  );
  const corrections = database.prepare<[], RequestedCorrection>(
    'SELECT id, account_id AS accountId, cycle, used, credit FROM corrections ORDER BY id',
  );
  const forgetCorrection = database.prepare('DELETE FROM corrections WHERE id = ?');
  const commits = database.prepare<[], number>('SELECT commits FROM ledger').pluck();
  const saveCommit = database.prepare('UPDATE ledger SET commits = ?, last_seen_at = max(last_seen_at, ?)');
  const forgetDays = database.prepare('DELETE FROM usage_days WHERE day <= ?');
  const audit = database.prepare(
    "INSERT INTO audit (at, actor, action, account_id, before, after) VALUES (?, 'ledger writer', ?, ?, ?, ?)",
  );
  const closeDay = database.prepare(
    'INSERT INTO usage_days VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET lookups = max(lookups, excluded.lookups)',
  );
  return {
    all: () => all.all(),
    one: (accountId: number): MeterRow | undefined => one.get(accountId),
    /** Replaces a row. If the day has changed, the usage of the day before goes to usage_days. */
    save: (accountId: number, before: MeterRow, after: MeterRow): void => {
      if (before.day !== after.day && before.dayUsed > 0) closeDay.run(accountId, before.day, before.dayUsed);
      save.run(after.cycle, after.used, after.reserved, after.total, after.day, after.dayUsed, accountId);
    },
    corrections: (): RequestedCorrection[] => corrections.all(),
    /** Sets a meter as an operator has requested. Only this may lower it. */
    correct: (accountId: number, { cycle, used, reserved }: MeterRow, correctionId: number): void => {
      correct.run(cycle, used, reserved, accountId);
      forgetCorrection.run(correctionId);
    },
    /** Number of the latest commit. */
    commits: (): number => commits.get() ?? 0,
    saveCommit: (number: number, seconds: number): void => void saveCommit.run(number, seconds),
    /** Deletes the usage of a day and of all earlier days. */
    forgetDaysBefore: (day: number): void => void forgetDays.run(day),
    /** Writes an audit line about a meter that was set without a charge. */
    audit: (seconds: number, action: string, accountId: number, before: MeterRow, after: MeterRow): void => {
      const summary = ({ cycle, used, reserved }: MeterRow): string => JSON.stringify({ cycle, used, reserved });
      audit.run(seconds, action, accountId, summary(before), summary(after));
    },
  };
}

export type MeterStore = ReturnType<typeof createMeterStore>;
