/** Connects to PostgreSQL. Only this file uses the driver. */
import pg from 'pg';
import { ERRORS, PagegateError } from '../../errors.ts';
import { withBrackets } from '../../network/address.ts';
import {
  type Engine,
  type EngineAddress,
  type EngineOptions,
  type EngineSource,
  parseEngineUrl,
  readEngine,
} from './engine.ts';

const CONNECT_TIMEOUT_MS = 3_000;
/** If a statement has no answer within this time, the connection is closed. */
const QUERY_TIMEOUT_MS = 5_000;
/** A pooler that has a free session lends it within this time. */
const LENT_TIMEOUT_MS = 1_000;
/** Oldest supported version of PostgreSQL. */
const VERSION_MIN = 130_000;
/** The type of 64-bit integers. All values in our tables are below 2^53. */
const INT8_OID = 20;

/**
 * Settings of each session, whatever the defaults of role and database are. The rules of grants need each statement to see what others have
 * committed. With repeatable read, a statement that has waited for a lock would grant by stale data.
 */
const SESSION = [
  'SET search_path = pagegate',
  "SET default_transaction_isolation = 'read committed'",
  'SET lock_timeout = 4000',
  // Shorter than our own timeout, so that the engine reports what became of the statement. Not a connection parameter: poolers refuse that.
  `SET statement_timeout = ${QUERY_TIMEOUT_MS - 500}`,
  'SET tcp_keepalives_idle = 10',
  // A program that hangs, or whose host is gone, must not hold a lock for which the nodes wait.
  'SET idle_in_transaction_session_timeout = 30000',
].join('; ');

/** The error code of a statement that writes in a read-only session. */
const READ_ONLY = '25006';

/** Error codes with which the engine ends the session: it shuts down, has crashed, or was told to. The statement may have been executed. */
const SESSION_ENDED = /^(?:08|57P0)/;

/** The code of a generic warning. Of our statements, only one that waited for a standby causes it. */
const STANDBY_WARNING = '01000';

const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

/** Converts an error of the driver to one whose message has advice. */
function failure(error: unknown, name: string): PagegateError {
  if (error instanceof PagegateError) return error;
  const { message, code = '' } = error as Error & { code?: string };
  const advice: Readonly<Record<string, string>> = {
    '28P01': 'Check ledger.password_file or PAGEGATE_LEDGER_PASSWORD.',
    '28000': 'Check the user in ledger.url and the engine’s pg_hba.conf.',
    '3D000': 'Create the database, or name another one in ledger.url.',
    [READ_ONLY]: 'It is set to read only; name the primary, or set default_transaction_read_only to off.',
    '42501': 'Give the user of ledger.url the right to create a schema in its database, or own the schema pagegate.',
    ECONNREFUSED: 'Check host and port in ledger.url, and that the engine runs.',
    ENOTFOUND: 'Check the host in ledger.url.',
    SELF_SIGNED_CERT_IN_CHAIN: 'Name the authority’s certificate in ledger.ca_file.',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'Name the certificate in ledger.ca_file.',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'Name the authority’s certificate in ledger.ca_file.',
  };
  const text = message === '' ? code : message;
  const hint = advice[code] ?? (/password|SASL/.test(text) ? advice['28P01']! : '');
  return new PagegateError('ledger_unavailable', `${name}: ${text}.${hint === '' ? '' : ` ${hint}`}`, { name });
}

class PgEngine implements Engine {
  readonly name: string;
  isOpen = true;
  /** Process id of this session in the engine. Behind a pooler, the driver has another number. */
  backendPid = 0;
  readonly #client: pg.Client;
  /** The engine has stopped waiting for its standby and has committed nevertheless. */
  #isDoubtful = false;

  constructor(client: pg.Client, name: string) {
    this.#client = client;
    this.name = name;
    client.on('error', () => {
      this.isOpen = false;
    });
    client.on('notice', ({ code }) => {
      this.#isDoubtful ||= code === STANDBY_WARNING;
    });
    client.on('end', () => {
      this.isOpen = false;
    });
  }

  async query<T>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    try {
      const { rows } = await this.#client.query(text, [...values]);
      this.#refuseDoubt();
      return rows as T[];
    } catch (error) {
      throw this.#failed(error);
    }
  }

  async script(text: string): Promise<void> {
    try {
      await this.#client.query(text);
      this.#refuseDoubt();
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /**
   * Closes the connection after an error, unless the engine has refused the statement and the session continues. Without an answer it is unknown
   * what became of the statement. If the session is read-only now, another host may accept writes.
   */
  #failed(error: unknown): PagegateError {
    const { severity, code = '' } = error as { severity?: string; code?: string };
    const isAnswered = severity !== undefined || error instanceof PagegateError;
    if (!isAnswered || code === READ_ONLY || SESSION_ENDED.test(code)) void this.close();
    return failure(error, this.name);
  }

  /** Refuses a commit that no standby has confirmed: a failover would lose it. @throws PagegateError ledger_unavailable */
  #refuseDoubt(): void {
    if (!this.#isDoubtful) return;
    this.#isDoubtful = false;
    throw new PagegateError(
      'ledger_unavailable',
      `${this.name}: the change is committed there, but no standby has confirmed it in time. Look whether it is there before you repeat it, ` +
        'and whether the standby of synchronous_standby_names runs.',
    );
  }

  async listen(onChange: () => void): Promise<void> {
    this.#client.on('notification', ({ processId }) => {
      // Ignore this connection's own changes.
      if (processId !== this.backendPid) onChange();
    });
    await this.script('LISTEN pagegate');
  }

  async close(): Promise<void> {
    this.isOpen = false;
    // A half-open connection would never end by itself.
    const { stream } = (this.#client as unknown as { connection: { stream: { destroy(): void } } }).connection;
    const late = setTimeout(() => stream.destroy(), 1_000);
    await this.#client.end().catch(() => {});
    clearTimeout(late);
  }
}

/**
 * Refuses a pooler that shares the engine's sessions between transactions: settings, locks and subscriptions of a session would then affect
 * other clients. A pooler that lends a session to one client until it disconnects is accepted.
 */
async function refuseLentSession(engine: PgEngine, other: pg.Client): Promise<void> {
  const PID = 'SELECT pg_backend_pid() AS pid';
  let otherPid: number | undefined;
  try {
    await other.connect();
    otherPid = (await other.query<{ pid: number }>(PID)).rows[0]?.pid;
  } catch {
    // The second client got no session, so ours was not lent to it.
  } finally {
    await other.end().catch(() => {});
  }
  const [now] = await engine.query<{ pid: number }>(PID);
  if (now?.pid === engine.backendPid && otherPid !== engine.backendPid) return;
  throw new PagegateError(
    'ledger_unavailable',
    `${engine.name}: a pooler that assigns a session for one transaction only. Name PostgreSQL itself, or set the pooler to sessions (pool_mode = session).`,
  );
}

async function connectTo(
  { host, port }: EngineAddress['hosts'][number],
  { user, database, sslMode }: EngineAddress,
  { password, ca }: EngineOptions,
): Promise<Engine> {
  const name = `postgres://${user}@${withBrackets(host)}:${port}/${database}`;
  const verified = { rejectUnauthorized: true, servername: host, ...(ca === undefined ? {} : { ca }) };
  const settings: pg.ClientConfig = {
    host,
    port,
    user,
    database,
    password,
    ssl: sslMode === 'disable' ? false : sslMode === 'require' ? { rejectUnauthorized: false } : verified,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'pagegate',
    types,
  };
  const client = new pg.Client(settings);
  const engine = new PgEngine(client, name);
  try {
    await client.connect();
    const [state] = await engine.query<{ standby: boolean; fixed: boolean; version: string; pid?: number }>(
      `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS fixed,
         current_setting('server_version_num') AS version, pg_backend_pid() AS pid`,
    );
    if (Number(state?.version) < VERSION_MIN) {
      throw new PagegateError(
        'ledger_unavailable',
        `${name}: PostgreSQL 13 or newer is needed, got version number ${state?.version}. Upgrade it, or name another one.`,
      );
    }
    if (state?.standby === true) {
      throw new PagegateError(
        'ledger_unavailable',
        `${name}: a standby, which takes no writes. Name the primary, too.`,
      );
    }
    if (state?.fixed === true) throw failure({ message: 'a read-only transaction', code: READ_ONLY }, name);
    const { processID: driverPid } = client as unknown as { readonly processID: number | null };
    engine.backendPid = state?.pid ?? 0;
    if (driverPid !== engine.backendPid)
      await refuseLentSession(engine, new pg.Client({ ...settings, query_timeout: LENT_TIMEOUT_MS }));
    await engine.script(SESSION);
    return engine;
  } catch (error) {
    await engine.close();
    throw failure(error, name);
  }
}

/**
 * Connects to the first host that accepts writes. The driver tries only one host; this loop can go when the driver tries several
 * (https://github.com/brianc/node-postgres/pull/3643).
 *
 * @throws PagegateError bad_ledger_url, ledger_unavailable
 */
export async function connectEngine(options: EngineOptions): Promise<Engine> {
  const address = parseEngineUrl(options.url);
  const problems: string[] = [];
  for (const host of address.hosts) {
    try {
      return await connectTo(host, address, options);
    } catch (error) {
      problems.push((error as Error).message.replace(ERRORS.ledger_unavailable.message, '').trim());
    }
  }
  throw new PagegateError('ledger_unavailable', problems.join(' '));
}

/** Connects to the fleet's database that the configuration names. @throws PagegateError bad_ledger_url, ledger_unavailable */
export const connectFleet = async (source: EngineSource): Promise<Engine> => connectEngine(readEngine(source));
