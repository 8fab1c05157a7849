/** A console next to a real server, and a visitor that keeps cookies as a browser does. */
import { ConsoleProcess, WarningLog } from '../../src/console/start.ts';
import { ConsoleUsers, type UserRole } from '../../src/console/users.ts';
import { startTestServer, type TestServer, type TestServerOptions } from './server.ts';

export interface TestConsole {
  readonly server: TestServer;
  /** Includes the base path and ends with a slash. */
  readonly url: string;
  readonly process: ConsoleProcess;
  readonly users: ConsoleUsers;
  /** A visitor who is not signed in. */
  visitor(): Visitor;
  /** Adds a user with this role and signs in with the user's link. */
  signIn(role: UserRole): Promise<Visitor>;
  /** Signs in with an account's API key. */
  signInWithKey(key: string): Promise<Visitor>;
  stop(): Promise<void>;
}

/** @param prepare prepares data after the server has started and before the console starts */
export async function startTestConsole(
  options: TestServerOptions = {},
  prepare: (server: TestServer) => void | Promise<void> = () => {},
): Promise<TestConsole> {
  const config = { ...options.config, console: { enabled: true, port: 0, ...options.config?.['console'] } };
  const server = await startTestServer({ ...options, config });
  await prepare(server);
  const { log, warnings } = new WarningLog(() => {});
  const process = new ConsoleProcess({ config: server.config, server: server.server, log, warnings });
  const url = await process.listening;
  const users = new ConsoleUsers(server.config, 'test');
  let added = 0;
  const visitor = (): Visitor => new Visitor(url);
  return {
    server,
    url,
    process,
    users,
    visitor,
    signIn: async (role) => {
      added += 1;
      const { link } = users.add(`${role}-${added}`, role);
      const signed = visitor();
      const page = await signed.get(`sign-in/link${new URL(link).search}`);
      await signed.submit('sign-in/link', formFields(page.text));
      return signed;
    },
    signInWithKey: async (key) => {
      const signed = visitor();
      await signed.get('sign-in');
      await signed.submit('sign-in/key', { key });
      return signed;
    },
    stop: async () => {
      users.close();
      await process.stop();
      await server.stop();
    },
  };
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A client that keeps cookies as a browser does and does not follow redirects. */
export class Visitor {
  readonly url: string;
  readonly cookies = new Map<string, string>();
  /** The CSRF token in the forms of the latest page. */
  csrf = '';
  #forms = 0;

  constructor(url: string) {
    this.url = url;
  }

  async get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    return this.#fetch(path, { headers });
  }

  /** Submits a form as if its page had just been loaded: with a new CSRF token, unless `fields` contains one. */
  async submit(
    path: string,
    fields: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> {
    if (this.csrf === '') await this.get(this.isSignedIn ? 'you' : 'sign-in');
    this.#forms += 1;
    const csrf = `${this.csrf.split('.', 1)[0]}.${this.#forms}`;
    const body = new URLSearchParams({ csrf, ...fields });
    return this.#fetch(path, { method: 'POST', body, headers });
  }

  get isSignedIn(): boolean {
    return this.session !== undefined;
  }

  /** The session token; undefined if the visitor is not signed in. */
  get session(): string | undefined {
    return this.cookies.get(this.#sessionCookie);
  }

  set session(token: string) {
    this.cookies.set(this.#sessionCookie, token);
  }

  get #sessionCookie(): string {
    const { port, pathname } = new URL(this.url);
    return ['__Host-pagegate', port, ...pathname.split('/')].filter((part) => part !== '').join('-');
  }

  async #fetch(path: string, init: RequestInit): Promise<Reply> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(init.headers as Record<string, string>), ...(cookie === '' ? {} : { cookie }) };
    const response = await fetch(new URL(path, this.url), { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';', 1);
      const at = pair.indexOf('=');
      if (/Max-Age=0/.test(line)) this.cookies.delete(pair.slice(0, at));
      else this.cookies.set(pair.slice(0, at), pair.slice(at + 1));
      this.csrf = '';
    }
    const text = await response.text();
    this.csrf = /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? this.csrf;
    return { status: response.status, headers: response.headers, text };
  }
}

/** The hidden fields of a page's forms, by name. */
export function formFields(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  );
}
