/** Links that sign a user in once. Only the hash of a link's token is kept. */
import { LIMITS } from '../../limits.ts';
import type { Database } from '../../platform/sqlite.ts';
import { createToken, hashToken } from './passwords.ts';

/** How long a link may be used, in seconds. */
export const LINK_SECONDS = LIMITS.consoleLinkSeconds.value;
const LINKS_MAX = LIMITS.consoleLinks.value;

/** The links in a console's file. */
export class Links {
  readonly #database: Database;
  readonly #now: () => number;

  /** @param now seconds since 1970 */
  constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** Makes a link for a user, good for {@link LINK_SECONDS}; returns its token. The oldest links go when there are too many. */
  create(name: string): string {
    const token = createToken();
    const now = this.#now();
    this.#database.prepare('DELETE FROM links WHERE expires_at <= ?').run(now);
    const surplus =
      'DELETE FROM links WHERE hash IN (SELECT hash FROM links ORDER BY expires_at DESC LIMIT -1 OFFSET ?)';
    this.#database.prepare(surplus).run(LINKS_MAX - 1);
    this.#database.prepare('INSERT INTO links VALUES (?, ?, ?)').run(hashToken(token), name, now + LINK_SECONDS);
    return token;
  }

  /** Uses a link up; returns its user’s name, undefined where the link is unknown, used or expired. */
  use(token: string): string | undefined {
    const link = this.#database
      .prepare<[string], { name: string; expires_at: number }>(
        'DELETE FROM links WHERE hash = ? RETURNING name, expires_at',
      )
      .get(hashToken(token));
    // One that was made while the clock was far ahead is good for no longer than any other.
    const leftSeconds = (link?.expires_at ?? 0) - this.#now();
    return leftSeconds > 0 && leftSeconds < 2 * LINK_SECONDS ? link?.name : undefined;
  }

  /** Ends all links of a user. */
  endOf(name: string): void {
    this.#database.prepare('DELETE FROM links WHERE name = ?').run(name);
  }
}
