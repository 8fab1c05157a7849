/** One-time sign-in links. Only the hash of a link's token is stored. */
import { LIMITS } from '../../limits.ts';
import type { Database } from '../../platform/sqlite.ts';
import { createToken, hashToken } from './passwords.ts';

/** How long a link is valid, in seconds. */
export const LINK_SECONDS = LIMITS.consoleLinkSeconds.value;
const LINKS_MAX = LIMITS.consoleLinks.value;

/** The links in the console's database. */
export class Links {
  readonly #database: Database;
  readonly #now: () => number;

  /** @param now seconds since 1970 */
  constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** Creates a link for a user, valid for {@link LINK_SECONDS}; returns its token. If there are too many links, the oldest are removed. */
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

  /** Uses up a link; returns its user’s name, undefined if the link is unknown, used or expired. */
  use(token: string): string | undefined {
    const link = this.#database
      .prepare<[string], { name: string; expires_at: number }>(
        'DELETE FROM links WHERE hash = ? RETURNING name, expires_at',
      )
      .get(hashToken(token));
    // A link that was made while the clock was far ahead must not be valid for longer than others.
    const leftSeconds = (link?.expires_at ?? 0) - this.#now();
    return leftSeconds > 0 && leftSeconds < 2 * LINK_SECONDS ? link?.name : undefined;
  }

  /** Ends all links of a user. */
  endOf(name: string): void {
    this.#database.prepare('DELETE FROM links WHERE name = ?').run(name);
  }
}
