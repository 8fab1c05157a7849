/** Users of the console, and how they authenticate. */
import { counted } from '../../counted.ts';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { Database } from '../../platform/sqlite.ts';
import type { Events } from './events.ts';
import type { Links } from './links.ts';
import { checkPassword } from './password-rules.ts';
import { hashPassword, isPassword } from './passwords.ts';
import { ROLES, type UserRole } from './roles.ts';
import type { Sessions } from './sessions.ts';

export interface User {
  readonly name: string;
  readonly role: UserRole;
  readonly hasPassword: boolean;
  /** Seconds since 1970. */
  readonly createdAt: number;
  /** The latest sign-in, in seconds since 1970; null if there was none. */
  readonly signedInAt: number | null;
}

const USER_NAME = /^[a-z0-9][a-z0-9._@-]{0,63}$/;

interface UserRow {
  readonly name: string;
  readonly role: UserRole;
  readonly password: string | null;
  readonly created_at: number;
  readonly signed_in_at: number | null;
}

const toUser = ({ name, role, password, created_at, signed_in_at }: UserRow): User => ({
  name,
  role,
  hasPassword: password !== null,
  createdAt: created_at,
  signedInAt: signed_in_at,
});

function checkRole(role: UserRole): void {
  if (!ROLES.includes(role)) throw new PagegateError('bad_console_user', `Got the role "${String(role)}".`);
}

/** Other tables about users. */
export interface UserParts {
  readonly sessions: Sessions;
  readonly links: Links;
  readonly events: Events;
}

/** The users in the console's database. */
export class Users {
  readonly #database: Database;
  readonly #parts: UserParts;
  readonly #now: () => number;

  /** @param now seconds since 1970 */
  constructor(database: Database, parts: UserParts, now: () => number) {
    this.#database = database;
    this.#parts = parts;
    this.#now = now;
  }

  list(): User[] {
    return this.#database.prepare<[], UserRow>('SELECT * FROM users ORDER BY name').all().map(toUser);
  }

  find(name: string): User | undefined {
    const row = this.#row(name);
    return row && toUser(row);
  }

  /** @throws PagegateError console_user_not_found */
  get(name: string): User {
    const user = this.find(name);
    if (user === undefined) throw new PagegateError('console_user_not_found', `Got "${name.slice(0, 80)}".`);
    return user;
  }

  /** @throws PagegateError bad_console_user, console_user_exists */
  add(name: string, role: UserRole, actor: string): User {
    if (!USER_NAME.test(name)) throw new PagegateError('bad_console_user', `Got "${name.slice(0, 80)}".`);
    checkRole(role);
    this.#database
      .transaction(() => {
        if (this.#row(name) !== undefined) throw new PagegateError('console_user_exists', `Got "${name}".`);
        const count = this.#database.prepare<[], number>('SELECT count(*) FROM users').pluck().get() ?? 0;
        if (count >= LIMITS.consoleUsers.value)
          throw new PagegateError('bad_console_user', `There are ${count} users, the most possible.`);
        this.#database.prepare('INSERT INTO users VALUES (?, ?, NULL, ?, NULL)').run(name, role, this.#now());
        this.#parts.events.note(actor, 'user.add', `${name} ${role}`);
      })
      .immediate();
    return this.get(name);
  }

  /** Removes a user with all sessions and links. @throws PagegateError console_user_not_found */
  remove(name: string, actor: string): void {
    this.#database
      .transaction(() => {
        this.get(name);
        this.#database.prepare('DELETE FROM users WHERE name = ?').run(name);
        this.#end(name);
        this.#parts.events.note(actor, 'user.remove', name);
      })
      .immediate();
  }

  /** Changes the role of a user, and ends the sessions with the old role. @throws PagegateError bad_console_user, console_user_not_found */
  setRole(name: string, role: UserRole, actor: string): User {
    checkRole(role);
    this.#database
      .transaction(() => {
        if (this.get(name).role === role) return;
        this.#database.prepare('UPDATE users SET role = ? WHERE name = ?').run(role, name);
        this.#parts.sessions.endOf('user', name);
        this.#parts.events.note(actor, 'user.role', `${name} ${role}`);
      })
      .immediate();
    return this.get(name);
  }

  /**
   * Ends the sessions and links of a user. The user may sign in again.
   *
   * @param kept the hash of a session that stays valid
   * @returns how many sessions have ended
   * @throws PagegateError console_user_not_found
   */
  signOut(name: string, actor: string, kept: string): number {
    return this.#database
      .transaction(() => {
        this.get(name);
        const ended = this.#end(name, kept);
        this.#parts.events.note(actor, 'user.sign_out', `${name} ${counted(ended, 'session')}`);
        return ended;
      })
      .immediate();
  }

  /**
   * Makes changes of users on behalf of an operator, all or nothing.
   *
   * @returns undefined if the operator's session has ended meanwhile; then nothing is changed
   * @throws PagegateError console_last_operator if no operator would be left, and what the changes throw
   */
  asOperator<T>({ hash }: { readonly hash: string }, change: () => T): T | undefined {
    return this.#database
      .transaction(() => {
        if (!this.#parts.sessions.has(hash)) return undefined;
        const result = change();
        const isOperatorLeft =
          this.#database.prepare("SELECT 1 FROM users WHERE role = 'operator'").get() !== undefined;
        if (!isOperatorLeft) throw new PagegateError('console_last_operator');
        return result;
      })
      .immediate();
  }

  /** Records the time of a user's sign-in. */
  noteSignIn(name: string): void {
    this.#database.prepare('UPDATE users SET signed_in_at = ? WHERE name = ?').run(this.#now(), name);
  }

  /** Removes the password, and ends all sessions and links. @throws PagegateError console_user_not_found */
  reset(name: string, actor: string): void {
    this.#database
      .transaction(() => {
        this.get(name);
        this.#database.prepare('UPDATE users SET password = NULL WHERE name = ?').run(name);
        this.#end(name);
        this.#parts.events.note(actor, 'user.reset', name);
      })
      .immediate();
  }

  /**
   * Sets the password of a session's user, and ends the other sessions.
   *
   * @returns false if the session has ended meanwhile, for example by a reset; then nothing is changed
   * @throws PagegateError bad_password, console_busy
   */
  async setPassword(
    { hash, name }: { readonly hash: string; readonly name: string },
    password: string,
  ): Promise<boolean> {
    checkPassword(password, name);
    const kept = await hashPassword(password);
    const { sessions } = this.#parts;
    return this.#database
      .transaction(() => {
        if (!sessions.has(hash)) return false;
        this.#database.prepare('UPDATE users SET password = ? WHERE name = ?').run(kept, name);
        sessions.endOf('user', name, hash);
        this.#parts.events.note(name, 'user.password', name);
        return true;
      })
      .immediate();
  }

  /**
   * Runs `enter` if the password is that of the user.
   *
   * @param enter runs in the transaction that finds the password unchanged, so that a later reset ends the session that it begins
   * @returns the result of `enter`; undefined if there is no such user, or the password is wrong
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

  /** Creates a link that signs the user in once; returns its token. @throws PagegateError console_user_not_found */
  createLink(name: string, actor: string): string {
    this.get(name);
    const token = this.#parts.links.create(name);
    this.#parts.events.note(actor, 'link.create', name);
    return token;
  }

  /**
   * Uses up a link, and runs `enter` for its user.
   *
   * @param enter runs in the same transaction
   * @returns the result of `enter`; undefined if the link is unknown, used or expired
   */
  useLink<T>(token: string, enter: (user: User) => T): T | undefined {
    return this.#database
      .transaction(() => {
        const name = this.#parts.links.use(token);
        const user = name === undefined ? undefined : this.find(name);
        return user && enter(user);
      })
      .immediate();
  }

  #row(name: string): UserRow | undefined {
    return this.#database.prepare<[string], UserRow>('SELECT * FROM users WHERE name = ?').get(name);
  }

  /** Ends sessions and links; returns how many sessions. */
  #end(name: string, kept?: string): number {
    this.#parts.links.endOf(name);
    return this.#parts.sessions.endOf('user', name, kept);
  }
}
