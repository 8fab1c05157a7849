/** Time series: minutes for a day, hours for a quarter. Bounded in size, and kept across restarts. */

import { LIMITS } from '../../limits.ts';
import type { Database } from '../../platform/sqlite.ts';

/** What a server counted in one time step. */
export interface Sample {
  /** The beginning of the step, in seconds since 1970. */
  readonly at: number;
  /** Answered requests by HTTP status. */
  readonly requests: Readonly<Record<string, number>>;
  /** Verdicts served: allow, flag, deny. */
  readonly verdicts: Readonly<Record<string, number>>;
  /** Lookups by latency: one count for each bucket of the histogram, the last for those above all bounds. */
  readonly latency: readonly number[];
}

export const MINUTE = 60;
export const HOUR = 3_600;
const MINUTES_KEPT = LIMITS.consoleMinutesSeconds.value / MINUTE;
const HOURS_KEPT = LIMITS.consoleHoursSeconds.value / HOUR;

/** The time series in the console's database. */
export class Series {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Adds minutes that are not stored yet, and adds them to their hours. */
  add(samples: readonly Sample[]): void {
    if (samples.length === 0) return;
    const find = this.#database
      .prepare<[number, number], string>('SELECT data FROM samples WHERE step = ? AND at = ?')
      .pluck();
    const put = this.#database.prepare('INSERT OR REPLACE INTO samples VALUES (?, ?, ?)');
    this.#database
      .transaction(() => {
        for (const sample of samples) {
          if (find.get(MINUTE, sample.at) !== undefined) continue;
          put.run(MINUTE, sample.at, toText(sample));
          const at = sample.at - (sample.at % HOUR);
          const before = find.get(HOUR, at);
          put.run(
            HOUR,
            at,
            toText(before === undefined ? { ...sample, at } : mergeSamples(at, [fromText(at, before), sample])),
          );
        }
        this.#prune(MINUTE, MINUTES_KEPT, samples.at(-1)!.at);
        this.#prune(HOUR, HOURS_KEPT, samples.at(-1)!.at);
      })
      .immediate();
  }

  /** Returns the beginning of the latest minute, in seconds since 1970; 0 if there is none. */
  latest(): number {
    return (
      this.#database
        .prepare<[number], number | null>('SELECT max(at) FROM samples WHERE step = ?')
        .pluck()
        .get(MINUTE) ?? 0
    );
  }

  /**
   * Removes samples by number and not by age, so that a clock that was far ahead for a moment removes nothing. Samples ahead of `latest`
   * are removed.
   */
  #prune(step: number, most: number, latest: number): void {
    this.#database.prepare('DELETE FROM samples WHERE step = ? AND at > ?').run(step, latest);
    const surplus = 'SELECT at FROM samples WHERE step = ? ORDER BY at DESC LIMIT -1 OFFSET ?';
    this.#database.prepare(`DELETE FROM samples WHERE step = ? AND at IN (${surplus})`).run(step, step, most);
  }

  /** Returns the samples since a time in seconds, oldest first. Steps in which no server ran are missing. */
  since(step: number, at: number): Sample[] {
    const rows = this.#database.prepare<[number, number], { at: number; data: string }>(
      'SELECT at, data FROM samples WHERE step = ? AND at >= ? ORDER BY at',
    );
    return rows.all(step, at).map((row) => fromText(row.at, row.data));
  }
}

const toText = ({ at: _, ...counts }: Sample): string => JSON.stringify(counts);
const fromText = (at: number, text: string): Sample => ({ at, ...(JSON.parse(text) as Omit<Sample, 'at'>) });

/** Merges the samples of several steps into one. */
export function mergeSamples(at: number, samples: readonly Sample[]): Sample {
  const sum = (pick: (sample: Sample) => Readonly<Record<string, number>>): Record<string, number> => {
    const total: Record<string, number> = {};
    for (const sample of samples)
      for (const [name, count] of Object.entries(pick(sample))) total[name] = (total[name] ?? 0) + count;
    return total;
  };
  const buckets = Math.max(0, ...samples.map(({ latency }) => latency.length));
  return {
    at,
    requests: sum(({ requests }) => requests),
    verdicts: sum(({ verdicts }) => verdicts),
    latency: Array.from({ length: buckets }, (_, i) =>
      samples.reduce((total, { latency }) => total + (latency[i] ?? 0), 0),
    ),
  };
}
