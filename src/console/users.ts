/** Users of the console, for the command line. */
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { isLoopback, withBrackets } from '../network/address.ts';
import { currentUser } from '../platform/user.ts';
import type { UserRole } from './store/roles.ts';
import { ConsoleStore } from './store/store.ts';
import type { User } from './store/users.ts';

export type { UserRole } from './store/roles.ts';

/** Where the console said that it listens. */
export const ADDRESS_FACT = 'address';

/** Whether the console speaks TLS itself. On loopback it does not: a proxy comes there, a tunnel, or a browser of this host, which no certificate names. */
export const speaksTls = ({ console }: Config): boolean => !isLoopback(console.host);

/** The console's address for a browser: by its first name where it has one. */
export function consoleUrl(config: Config, port: number): string {
  const { host, names, base_path } = config.console;
  if (speaksTls(config)) {
    const [name = host] = [...names, ...config.tls.names];
    return `https://${withBrackets(name)}:${port}${base_path}`;
  }
  // A name of a console on loopback is that of the proxy before it. Browsers take its cookies over TLS alone.
  const [proxy] = names;
  return proxy === undefined ? `http://${withBrackets(host)}:${port}${base_path}` : `https://${proxy}${base_path}`;
}

/** A link that signs in, at a console's address. */
export const linkAt = (address: string, token: string): string => `${address}sign-in/link?token=${token}`;

/** A user, and a link that signs it in once. */
export interface Invitation {
  readonly user: User;
  readonly link: string;
}

/** The console's users, under the name of whoever acts. */
export class ConsoleUsers {
  readonly #config: Config;
  readonly #actor: string;
  readonly #store: ConsoleStore;

  /** @throws PagegateError console_unavailable */
  constructor(config: Config, actor: string = currentUser()) {
    this.#config = config;
    this.#actor = actor;
    this.#store = new ConsoleStore(statePaths(config).consoleFile);
  }

  list(): User[] {
    return this.#store.users.list();
  }

  /** @throws PagegateError bad_console_user, console_user_exists */
  add(name: string, role: UserRole): Invitation {
    return { user: this.#store.users.add(name, role, this.#actor), link: this.link(name) };
  }

  /** The sessions that the user has end. @throws PagegateError bad_console_user, console_user_not_found */
  setRole(name: string, role: UserRole): User {
    return this.#store.users.setRole(name, role, this.#actor);
  }

  /** @throws PagegateError console_user_not_found */
  remove(name: string): void {
    this.#store.users.remove(name, this.#actor);
  }

  /** Takes the password away, ends all sessions, and makes a link. @throws PagegateError console_user_not_found */
  reset(name: string): Invitation {
    this.#store.users.reset(name, this.#actor);
    return { user: this.#store.users.find(name)!, link: this.link(name) };
  }

  /** A link that signs a user in once, within an hour. @throws PagegateError console_user_not_found */
  link(name: string): string {
    const token = this.#store.users.createLink(name, this.#actor);
    const known = this.#store.fact(ADDRESS_FACT);
    const { port } = this.#config.console;
    // Where the port is chosen at the start, the running console has written down which.
    const address = port === 0 && typeof known === 'string' ? known : consoleUrl(this.#config, port);
    return linkAt(address, token);
  }

  close(): void {
    this.#store.close();
  }
}
