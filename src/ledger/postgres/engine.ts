/** The PostgreSQL engine that a fleet shares: its interface, its settings, and its address. */
import { PagegateError } from '../../errors.ts';
import { isLoopback, withoutBrackets } from '../../network/address.ts';
import { readSmallFile } from '../../platform/small-file.ts';

/** A connection to the engine. */
export interface Engine {
  /** The address for messages, without a password. */
  readonly name: string;
  /** Runs one statement with the placeholders `$1`, `$2` … for values. @throws PagegateError ledger_unavailable */
  query<T>(text: string, values?: readonly unknown[]): Promise<T[]>;
  /** Runs several statements without values. @throws PagegateError ledger_unavailable */
  script(text: string): Promise<void>;
  /** Calls `onChange` when another connection has changed something. @throws PagegateError ledger_unavailable */
  listen(onChange: () => void): Promise<void>;
  /** False once the connection has ended. */
  readonly isOpen: boolean;
  close(): Promise<void>;
}

/** The engine's settings in the configuration. */
export interface EngineSource {
  /** `postgres://user@host:port,host:port/database?sslmode=verify-full`. */
  readonly url: string;
  readonly passwordFile?: string | undefined;
  /** File with the PEM certificates of the authorities that sign the engine's certificate. */
  readonly caFile?: string | undefined;
}

/** The settings of a connection, with the contents of their files. */
export interface EngineOptions {
  readonly url: string;
  readonly password: string;
  readonly ca?: string;
}

/** The environment variable that may hold the engine's password. */
const PASSWORD_VARIABLE = 'PAGEGATE_LEDGER_PASSWORD';
const SMALL_FILE_MAX_BYTES = 64 * 1024;

/** Reads the password and the certificates. @throws PagegateError ledger_unavailable */
export function readEngine({ url, passwordFile, caFile }: EngineSource): EngineOptions {
  const read = (path: string, secretOption: string): string =>
    readSmallFile(path, { code: 'ledger_unavailable', secretOption, maxBytes: SMALL_FILE_MAX_BYTES }).toString('utf8');
  const password =
    passwordFile === undefined
      ? (process.env[PASSWORD_VARIABLE] ?? '')
      : read(passwordFile, 'ledger.password_file').replace(/\r?\n$/, '');
  return { url, password, ...(caFile === undefined ? {} : { ca: read(caFile, 'ledger.ca_file') }) };
}

const SSL_MODES = ['disable', 'verify-full', 'require'] as const;
export type SslMode = (typeof SSL_MODES)[number];

/** A parsed URL of the engine. */
export interface EngineAddress {
  readonly user: string;
  /** Tried in turn; the first that accepts writes is used. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly database: string;
  readonly sslMode: SslMode;
}

const HOSTS_MAX = 8;
const DEFAULT_PORT = 5432;
const URL_FORM =
  /^postgres(?:ql)?:\/\/([A-Za-z0-9_.-]{1,63})(:[^@]*)?@([^/?#]{1,512})\/([A-Za-z0-9_.-]{1,63})(?:\?sslmode=([a-z-]+))?$/;
const HOST_FORM = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;

function refuse(what: string): never {
  throw new PagegateError(
    'bad_ledger_url',
    `ledger.url: ${what} Expected postgres://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE[?sslmode=${SSL_MODES.join('|')}].`,
  );
}

/** Parses a URL of the engine. @throws PagegateError bad_ledger_url */
export function parseEngineUrl(url: string): EngineAddress {
  const [, user, password, list, database, mode] = URL_FORM.exec(url) ?? [];
  if (user === undefined || list === undefined || database === undefined) return refuse('it is not understood.');
  if (password !== undefined)
    return refuse('it holds a password; use ledger.password_file or PAGEGATE_LEDGER_PASSWORD.');
  const hosts = list.split(',').map((part) => {
    const [, host, port] = HOST_FORM.exec(part) ?? [];
    if (host === undefined) return refuse(`the host "${part.slice(0, 80)}" is not understood.`);
    const number = port === undefined ? DEFAULT_PORT : Number(port);
    if (number < 1 || number > 65_535) return refuse(`port ${port} does not exist.`);
    return { host: withoutBrackets(host), port: number };
  });
  if (hosts.length > HOSTS_MAX) return refuse(`at most ${HOSTS_MAX} hosts are tried, got ${hosts.length}.`);
  // Beyond loopback, a connection without TLS must be requested explicitly.
  const isLocal = hosts.every(({ host }) => isLoopback(host));
  const sslMode = (mode ?? (isLocal ? 'disable' : 'verify-full')) as SslMode;
  if (!SSL_MODES.includes(sslMode)) return refuse(`sslmode "${mode}" is not known.`);
  return { user, hosts, database, sslMode };
}
