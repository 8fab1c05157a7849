/** Users, their one-time links, and what was done with them. */
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { Database } from '../../platform/sqlite.ts';
import { createToken, hashPassword, hashToken, isPassword } from './passwords.ts';

/** operator changes, viewer looks, account sees only the account whose API key it signed in with. */
export type UserRole = 'operator' | 'viewer';

export interface User {
  readonly name: string;
  readonly role: UserRole;
  readonly hasPassword: boolean;
  /** Seconds since 1970. */
  readonly createdAt: number;
}

export interface Event {
  readonly id: number;
  /** Seconds since 1970. */
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly detail: string;
}

const USER_NAME = /^[a-z0-9][a-z0-9._@-]{0,63}$/;
export const ROLES: readonly UserRole[] = ['operator', 'viewer'];
/** How long a one-time link may be used, in seconds. */
export const LINK_SECONDS = LIMITS.consoleLinkSeconds.value;
const USERS_MAX = LIMITS.consoleUsers.value;
const LINKS_MAX = LIMITS.consoleLinks.value;
const EVENTS_MAX = LIMITS.consoleEvents.value;

interface UserRow {
  readonly name: string;
  readonly role: UserRole;
  readonly password: string | null;
  readonly created_at: number;
}

const toUser = ({ name, role, password, created_at }: UserRow): User => ({
  name,
  role,
  hasPassword: password !== null,
  createdAt: created_at,
});

/** The users in a console's file. */
export class Users {
  readonly #database: Database;
  readonly #now: () => number;

  /** @param now seconds since 1970 */
  constructor(database: Database, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  list(): User[] {
    return this.#database.prepare<[], UserRow>('SELECT * FROM users ORDER BY name').all().map(toUser);
  }

  find(name: string): User | undefined {
    const row = this.#row(name);
    return row && toUser(row);
  }

  /** @throws PagegateError bad_console_user, console_user_exists */
  add(name: string, role: UserRole, actor: string): User {
    if (!USER_NAME.test(name)) throw new PagegateError('bad_console_user', `Got "${name.slice(0, 80)}".`);
    if (!ROLES.includes(role)) throw new PagegateError('bad_console_user', `Got the role "${String(role)}".`);
    this.#database
      .transaction(() => {
        if (this.#row(name) !== undefined) throw new PagegateError('console_user_exists', `Got "${name}".`);
        const count = this.#database.prepare<[], number>('SELECT count(*) FROM users').pluck().get() ?? 0;
        if (count >= USERS_MAX)
          throw new PagegateError('bad_console_user', `There are ${count} users, the most possible.`);
        this.#database.prepare('INSERT INTO users VALUES (?, ?, NULL, ?)').run(name, role, this.#now());
        this.note(actor, 'user.add', `${name} ${role}`);
      })
      .immediate();
    return this.#existing(name);
  }

  /** Removes a user with all sessions and links. @throws PagegateError console_user_not_found */
  remove(name: string, actor: string): void {
    this.#database
      .transaction(() => {
        this.#existing(name);
        this.#database.prepare('DELETE FROM users WHERE name = ?').run(name);
        this.#end(name);
        this.note(actor, 'user.remove', name);
      })
      .immediate();
  }

  /** Takes the password away and ends all sessions and links. @throws PagegateError console_user_not_found */
  reset(name: string, actor: string): void {
    this.#database
      .transaction(() => {
        this.#existing(name);
        this.#database.prepare('UPDATE users SET password = NULL WHERE name = ?').run(name);
        this.#end(name);
        this.note(actor, 'user.reset', name);
      })
      .immediate();
  }

  /**
   * Sets the password of a session's user, and ends the other sessions.
   *
   * @returns false where the session has ended meanwhile, by a reset for example: nothing is changed then
   * @throws PagegateError bad_password, console_busy
   */
  async setPassword(
    { hash, name }: { readonly hash: string; readonly name: string },
    password: string,
  ): Promise<boolean> {
    const kept = await hashPassword(password);
    const set = 'UPDATE users SET password = ? WHERE name = ? AND EXISTS (SELECT 1 FROM sessions WHERE hash = ?)';
    return this.#database
      .transaction(() => {
        if (this.#database.prepare(set).run(kept, name, hash).changes === 0) return false;
        this.#endSessions(name, hash);
        this.note(name, 'user.password', name);
        return true;
      })
      .immediate();
  }

  /**
   * Lets in who knows the password of a user.
   *
   * @param enter is run in the transaction that finds the password unchanged: what it begins, a reset ends
   * @returns undefined where there is no such user, or the password is another one
   * @throws PagegateError console_busy
   */
  async authenticate<T>(name: string, password: string, enter: (user: User) => T): Promise<T | undefined> {
    const kept = this.#row(name)?.password ?? null;
    if (!(await isPassword(password, kept))) return undefined;
    return this.#database
      .transaction(() => {
        const row = this.#row(name);
        return row?.password === kept ? enter(toUser(row)) : undefined;
      })
      .immediate();
  }

  /** Makes a link's token: it signs the user in once, within {@link LINK_SECONDS}. @throws PagegateError console_user_not_found */
  createLink(name: string, actor: string): string {
    this.#existing(name);
    const token = createToken();
    const now = this.#now();
    this.#database.prepare('DELETE FROM links WHERE expires_at <= ?').run(now);
    const surplus =
      'DELETE FROM links WHERE hash IN (SELECT hash FROM links ORDER BY expires_at DESC LIMIT -1 OFFSET ?)';
    this.#database.prepare(surplus).run(LINKS_MAX);
    this.#database.prepare('INSERT INTO links VALUES (?, ?, ?)').run(hashToken(token), name, now + LINK_SECONDS);
    this.note(actor, 'link.create', name);
    return token;
  }

  /**
   * Uses a link up, and lets its user in.
   *
   * @param enter is run in the same transaction
   * @returns undefined where the link is unknown, used or expired
   */
  useLink<T>(token: string, enter: (user: User) => T): T | undefined {
    const remove = this.#database.prepare<[string], { name: string; expires_at: number }>(
      'DELETE FROM links WHERE hash = ? RETURNING name, expires_at',
    );
    return this.#database
      .transaction(() => {
        const link = remove.get(hashToken(token));
        const user = link === undefined || link.expires_at <= this.#now() ? undefined : this.find(link.name);
        return user && enter(user);
      })
      .immediate();
  }

  /** Writes down what was done, or tried. The oldest lines go when there are too many. */
  note(actor: string, action: string, detail: string): void {
    const insert = 'INSERT INTO events (at, actor, action, detail) VALUES (?, ?, ?, ?)';
    const { lastInsertRowid } = this.#database
      .prepare(insert)
      .run(this.#now(), actor.slice(0, 64), action, detail.slice(0, 200));
    this.#database.prepare('DELETE FROM events WHERE id <= ?').run(Number(lastInsertRowid) - EVENTS_MAX);
  }

  /** The latest lines, newest first. */
  events(count: number): Event[] {
    return this.#database.prepare<[number], Event>('SELECT * FROM events ORDER BY id DESC LIMIT ?').all(count);
  }

  #row(name: string): UserRow | undefined {
    return this.#database.prepare<[string], UserRow>('SELECT * FROM users WHERE name = ?').get(name);
  }

  #existing(name: string): User {
    const user = this.find(name);
    if (user === undefined) throw new PagegateError('console_user_not_found', `Got "${name.slice(0, 80)}".`);
    return user;
  }

  /** Ends a user's sessions, all but the one with that hash. */
  #endSessions(name: string, kept = ''): void {
    this.#database.prepare("DELETE FROM sessions WHERE name = ? AND role <> 'account' AND hash <> ?").run(name, kept);
  }

  #end(name: string): void {
    this.#endSessions(name);
    this.#database.prepare('DELETE FROM links WHERE name = ?').run(name);
  }
}
