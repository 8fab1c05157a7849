/** Events for the audit: what was done or tried in the console. */
import { LIMITS } from '../../limits.ts';
import type { Database } from '../../platform/sqlite.ts';

export interface Event {
  readonly id: number;
  /** Seconds since 1970. */
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly detail: string;
}

/** SQL condition for events that others than users of the console can cause, in any number. */
const OUTSIDE = "(action = 'sign_in.refused' OR actor LIKE 'account:%')";
/** Old rows are removed only after this many new ones, to save queries. */
const PRUNE_EVERY = 100;

/** The events in the console's database. */
export class Events {
  readonly #database: Database;
  readonly #now: () => number;

  /** @param now seconds since 1970 */
  constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** Records an event. If there are too many, the oldest are removed; events of outsiders have their own limit, so they cannot displace others. */
  note(actor: string, action: string, detail: string): void {
    const insert = 'INSERT INTO events (at, actor, action, detail) VALUES (?, ?, ?, ?)';
    const { lastInsertRowid } = this.#database
      .prepare(insert)
      .run(this.#now(), actor.slice(0, 64), action, detail.slice(0, 200));
    if (Number(lastInsertRowid) % PRUNE_EVERY !== 0) return;
    for (const [which, most] of [
      [OUTSIDE, LIMITS.consoleOutsideEvents.value],
      ['true', LIMITS.consoleEvents.value],
    ] as const) {
      const surplus = `SELECT id FROM events WHERE ${which} ORDER BY id DESC LIMIT -1 OFFSET ?`;
      this.#database.prepare(`DELETE FROM events WHERE id IN (${surplus})`).run(most);
    }
  }

  /** Returns the latest events, newest first. */
  latest(count: number): Event[] {
    return this.#database.prepare<[number], Event>('SELECT * FROM events ORDER BY id DESC LIMIT ?').all(count);
  }
}
