/** Everything that the console stores. */
import type { Database } from '../../platform/sqlite.ts';
import { openConsoleDatabase } from './database.ts';
import { Events } from './events.ts';
import { Links } from './links.ts';
import { Sessions } from './sessions.ts';
import { Series } from './time-series.ts';
import { Users } from './users.ts';

const FACTS_MAX = 500;

/** The console's database with its tables. */
export class ConsoleStore {
  readonly users: Users;
  readonly sessions: Sessions;
  readonly events: Events;
  readonly series: Series;
  readonly #database: Database;
  readonly #now: () => number;

  /** @param now seconds since 1970. @throws PagegateError console_unavailable */
  constructor(file: string, now = () => Math.floor(Date.now() / 1000)) {
    this.#database = openConsoleDatabase(file);
    this.#now = now;
    this.sessions = new Sessions(this.#database, now);
    this.events = new Events(this.#database, now);
    const links = new Links(this.#database, now);
    this.users = new Users(this.#database, { sessions: this.sessions, links, events: this.events }, now);
    this.series = new Series(this.#database);
  }

  /** Returns a stored result, such as the difference of two generations; undefined if there is none. */
  fact(name: string): unknown {
    const text = this.#database.prepare<[string], string>('SELECT value FROM facts WHERE name = ?').pluck().get(name);
    return text === undefined ? undefined : JSON.parse(text);
  }

  setFact(name: string, value: unknown): void {
    this.#database
      .prepare('INSERT OR REPLACE INTO facts VALUES (?, ?, ?)')
      .run(name, JSON.stringify(value), this.#now());
    const surplus = 'DELETE FROM facts WHERE name IN (SELECT name FROM facts ORDER BY at DESC LIMIT -1 OFFSET ?)';
    this.#database.prepare(surplus).run(FACTS_MAX);
  }

  close(): void {
    this.#database.close();
  }
}
