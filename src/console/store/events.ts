/** What was done in the console, or tried. */
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

/** What somebody may cause who is no user of the console, as often as they like. */
const OUTSIDE = "(action = 'sign_in.refused' OR actor LIKE 'account:%')";
/** Rows are removed after so many new ones: not each is worth a search. */
const PRUNE_EVERY = 100;

/** The events in a console's file. */
export class Events {
  readonly #database: Database;
  readonly #now: () => number;

  /** @param now seconds since 1970 */
  constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** Writes down what was done. The oldest lines go when there are too many; those of outsiders take no other's place. */
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

  /** The latest lines, newest first. */
  latest(count: number): Event[] {
    return this.#database.prepare<[number], Event>('SELECT * FROM events ORDER BY id DESC LIMIT ?').all(count);
  }
}
