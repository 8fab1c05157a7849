/** Sessions of users and accounts. Only the hash of a session's token is stored. */

import { LIMITS } from '../../limits.ts';
import type { Database } from '../../platform/sqlite.ts';
import { createToken, hashToken } from './passwords.ts';
import type { Role } from './roles.ts';

export interface Session {
  /** The hash of its token. It identifies the session, but nobody can sign in with it. */
  readonly hash: string;
  readonly role: Role;
  /** The name of the user or the account. */
  readonly name: string;
  /** The id of the API key with which an account signed in; null for users. */
  readonly keyId: number | null;
  readonly address: string;
  /** Seconds since 1970. */
  readonly createdAt: number;
  readonly seenAt: number;
}

/** An unused session ends after this time, in seconds. */
export const IDLE_SECONDS = LIMITS.consoleIdleSeconds.value;
/** Every session ends after this time, in seconds. */
export const SESSION_SECONDS = LIMITS.consoleSessionSeconds.value;
/** The latest use is stored at most this often, in seconds, so that not every request is a write. */
const SEEN_STEP_SECONDS = 60;
const SESSIONS_MAX_PER_NAME = LIMITS.consoleSessionsOfName.value;
const SESSIONS_MAX = LIMITS.consoleSessions.value;

interface SessionRow {
  readonly hash: string;
  readonly role: Role;
  readonly name: string;
  readonly key_id: number | null;
  readonly address: string;
  readonly created_at: number;
  readonly seen_at: number;
}

const toSession = (row: SessionRow): Session => ({
  hash: row.hash,
  role: row.role,
  name: row.name,
  keyId: row.key_id,
  address: row.address,
  createdAt: row.created_at,
  seenAt: row.seen_at,
});

/** The sessions in the console's database. */
export class Sessions {
  readonly #database: Database;
  readonly #now: () => number;

  /** @param now seconds since 1970 */
  constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** Begins a session; returns its token, which exists nowhere else. */
  begin({ role, name, keyId, address }: Pick<Session, 'role' | 'name' | 'keyId' | 'address'>): string {
    const token = createToken();
    const now = this.#now();
    const run = (text: string, ...values: readonly (string | number | null)[]): void =>
      void this.#database.prepare(text).run(...values);
    this.#database
      .transaction(() => {
        const hasEnded = 'abs(? - created_at) >= ? OR abs(? - seen_at) >= ?';
        run(`DELETE FROM sessions WHERE ${hasEnded}`, now, SESSION_SECONDS, now, IDLE_SECONDS);
        const oldest = 'ORDER BY seen_at DESC LIMIT -1 OFFSET ?';
        run(
          `DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE role = ? AND name = ? ${oldest})`,
          role,
          name,
          SESSIONS_MAX_PER_NAME - 1,
        );
        run(`DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions ${oldest})`, SESSIONS_MAX - 1);
        run(
          'INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)',
          hashToken(token),
          role,
          name,
          keyId,
          address,
          now,
          now,
        );
      })
      .immediate();
    return token;
  }

  /**
   * Returns the session of a token; undefined if it has ended.
   *
   * @param isUse whether the user made the request: a page that renews itself does not keep a session alive.
   */
  find(token: string, isUse: boolean): Session | undefined {
    const hash = hashToken(token);
    const row = this.#database.prepare<[string], SessionRow>('SELECT * FROM sessions WHERE hash = ?').get(hash);
    if (row === undefined) return undefined;
    if (!this.#runs(row)) {
      this.end(hash);
      return undefined;
    }
    const now = this.#now();
    if (isUse && now >= row.seen_at + SEEN_STEP_SECONDS)
      this.#database.prepare('UPDATE sessions SET seen_at = ? WHERE hash = ?').run(now, hash);
    return toSession(row);
  }

  /** Returns the session with this hash; undefined if it has ended. */
  get(hash: string): Session | undefined {
    return this.#running('hash = ?', hash)[0];
  }

  /** Whether there is a session with this hash. */
  has(hash: string): boolean {
    return this.#database.prepare('SELECT 1 FROM sessions WHERE hash = ?').get(hash) !== undefined;
  }

  end(hash: string): void {
    this.#database.prepare('DELETE FROM sessions WHERE hash = ?').run(hash);
  }

  /** Ends all other sessions of the same user or account. Returns how many. */
  endOthers({ role, name, hash }: Pick<Session, 'role' | 'name' | 'hash'>): number {
    return this.endOf(role === 'account' ? 'account' : 'user', name, hash);
  }

  /** Ends all sessions of a user or an account except the one with the hash `kept`. Returns how many. */
  endOf(kind: 'user' | 'account', name: string, kept = ''): number {
    const end = "DELETE FROM sessions WHERE (role = 'account') = ? AND name = ? AND hash <> ?";
    return this.#database.prepare(end).run(kind === 'account' ? 1 : 0, name, kept).changes;
  }

  /** Binds an account's session to the key that replaced its own. */
  rebind(hash: string, keyId: number): void {
    this.#database.prepare('UPDATE sessions SET key_id = ? WHERE hash = ?').run(keyId, hash);
  }

  /** Returns the current sessions of one user or account, the most recently used first. */
  list({ role, name }: Pick<Session, 'role' | 'name'>): Session[] {
    return this.#running('role = ? AND name = ?', role, name);
  }

  /** Returns all current sessions, the most recently used first. */
  all(): Session[] {
    return this.#running('true');
  }

  #running(condition: string, ...values: readonly string[]): Session[] {
    const text = `SELECT * FROM sessions WHERE ${condition} ORDER BY seen_at DESC, hash`;
    const rows = this.#database.prepare<string[], SessionRow>(text).all(...values);
    return rows.filter((row) => this.#runs(row)).map(toSession);
  }

  /** Whether a session is still valid. One that was used while the clock was far ahead is not: how long ago that was is unknown. */
  #runs({ created_at, seen_at }: SessionRow): boolean {
    const now = this.#now();
    return Math.abs(now - created_at) < SESSION_SECONDS && Math.abs(now - seen_at) < IDLE_SECONDS;
  }
}
