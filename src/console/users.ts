/** Management of the console's users, for the command line. */
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { isLoopback, withBrackets } from '../network/address.ts';
import { currentUser } from '../platform/user.ts';
import type { UserRole } from './store/roles.ts';
import { ConsoleStore } from './store/store.ts';
import type { User } from './store/users.ts';

export type { UserRole } from './store/roles.ts';

/** The fact that holds the address on which the console listens. */
export const ADDRESS_FACT = 'address';

/** Whether the console itself uses TLS. On loopback it does not: clients there are a proxy, a tunnel or a local browser, and no certificate names loopback. */
export const speaksTls = ({ console }: Config): boolean => !isLoopback(console.host);

/** Returns the console's address for a browser: with its first configured name, if any. */
export function consoleUrl(config: Config, port: number): string {
  const { host, names, base_path } = config.console;
  if (speaksTls(config)) {
    const [name = host] = [...names, ...config.tls.names];
    return `https://${withBrackets(name)}:${port}${base_path}`;
  }
  // The name of a console on loopback is that of the proxy in front of it. Browsers accept its cookies only over TLS.
  const [proxy] = names;
  return proxy === undefined ? `http://${withBrackets(host)}:${port}${base_path}` : `https://${proxy}${base_path}`;
}

/** Returns a one-time sign-in link at a console's address. */
export const linkAt = (address: string, token: string): string => `${address}sign-in/link?token=${token}`;

/** A user, and a link that signs them in once. */
export interface Invitation {
  readonly user: User;
  readonly link: string;
}

/** The console's users, and changes of them on behalf of one actor. */
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

  /** Changes the role, and ends the user's sessions. @throws PagegateError bad_console_user, console_user_not_found */
  setRole(name: string, role: UserRole): User {
    return this.#store.users.setRole(name, role, this.#actor);
  }

  /** @throws PagegateError console_user_not_found */
  remove(name: string): void {
    this.#store.users.remove(name, this.#actor);
  }

  /** Removes the password, ends all sessions, and creates a link. @throws PagegateError console_user_not_found */
  reset(name: string): Invitation {
    this.#store.users.reset(name, this.#actor);
    return { user: this.#store.users.find(name)!, link: this.link(name) };
  }

  /** Creates a link that signs a user in once, within an hour. @throws PagegateError console_user_not_found */
  link(name: string): string {
    const token = this.#store.users.createLink(name, this.#actor);
    const known = this.#store.fact(ADDRESS_FACT);
    const { port } = this.#config.console;
    // If the port is chosen at the start (0), the running console has recorded its address.
    const address = port === 0 && typeof known === 'string' ? known : consoleUrl(this.#config, port);
    return linkAt(address, token);
  }

  close(): void {
    this.#store.close();
  }
}
