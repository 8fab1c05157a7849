/** Reads the state of a fleet's database for `pagegate doctor`. Changes nothing. */
import type { Engine } from '../postgres/engine.ts';
import { HELD_LOOKUPS, IS_RUNNING, isHeardWithin, NOW } from '../postgres/fragments.ts';
import { findLedger, SCHEMA_VERSION } from '../postgres/schema.ts';

/** State of a fleet's database, its ledger and this node. */
export interface FleetDatabase {
  /** The address, without a password. */
  readonly name: string;
  /** PostgreSQL and its version. */
  readonly server: string;
  /** Undefined if there are no tables yet. */
  readonly ledger: LedgerTables | undefined;
  /** Why a failover may lose commits, or why commits wait, in words; undefined if neither is the case. */
  readonly replication: string | undefined;
}

export interface LedgerTables {
  readonly version: number;
  /** The version that this program needs. */
  readonly expected: number;
  readonly movedTo: string | null;
  readonly accounts: number;
  /** Nothing is granted, because commits were lost. */
  readonly isLearning: boolean;
  /** How many times commits were lost. */
  readonly history: number;
  /** Number of lookups held by silent nodes. */
  readonly stranded: number;
  /** Names of the silent nodes. */
  readonly silent: readonly string[];
  /** This node, as the database knows it; undefined if it does not. */
  readonly node:
    | {
        readonly incarnation: number;
        readonly seenSecondsAgo: number;
        readonly isStopped: boolean;
        readonly isRetired: boolean;
      }
    | undefined;
}

/**
 * Reads the state of a fleet's database.
 *
 * @param nodeId this node's id; undefined if it has none yet.
 * @throws PagegateError ledger_unavailable
 */
export async function readFleetDatabase(
  engine: Engine,
  nodeId: string | undefined,
  maxStalenessSeconds: number,
): Promise<FleetDatabase> {
  const [server] = await engine.query<{ version: string; names: string; level: string; standbys: number }>(
    `SELECT current_setting('server_version') AS version, current_setting('synchronous_standby_names') AS names,
       current_setting('synchronous_commit') AS level, (SELECT count(*) FROM pg_stat_replication) AS standbys`,
  );
  const { version = '', names = '', level = '', standbys = 0 } = server ?? {};
  const found = await findLedger(engine);
  const tables =
    found === undefined || found.version !== SCHEMA_VERSION
      ? undefined
      : await readContents(engine, nodeId, maxStalenessSeconds);
  return {
    name: engine.name,
    server: `PostgreSQL ${version}`,
    replication: replicationProblem(names, level, standbys),
    ledger:
      found === undefined
        ? undefined
        : { version: found.version, expected: SCHEMA_VERSION, movedTo: found.moved_to, ...(tables ?? EMPTY) },
  };
}

type Contents = Omit<LedgerTables, 'version' | 'expected' | 'movedTo'>;

const EMPTY: Contents = { accounts: 0, isLearning: false, history: 0, stranded: 0, silent: [], node: undefined };

function replicationProblem(names: string, level: string, standbys: number): string | undefined {
  if (names === '') return 'no synchronous standby: a failover may forget commits';
  if (level === 'off' || level === 'local') return `synchronous_commit is ${level}: a failover may forget commits`;
  return standbys === 0 ? 'no standby is connected: every commit waits' : undefined;
}

async function readContents(engine: Engine, nodeId: string | undefined, maxStaleness: number): Promise<Contents> {
  const [home] = await engine.query<{ accounts: number; learning: boolean; history: number }>(
    'SELECT (SELECT count(*) FROM accounts) AS accounts, learning_since IS NOT NULL AS learning, history FROM ledger',
  );
  const silent = await engine.query<{ name: string; held: number }>(
    `SELECT name, ${HELD_LOOKUPS} AS held FROM nodes WHERE ${IS_RUNNING} AND NOT ${isHeardWithin('$1')} ORDER BY name`,
    [maxStaleness],
  );
  const [node] = await engine.query<{ incarnation: number; ago: number; stopped: boolean; retired: boolean }>(
    `SELECT incarnation, greatest(0, ${NOW} - seen_at)::float8 AS ago, session = '' AS stopped, retired_at IS NOT NULL AS retired
     FROM nodes WHERE id = $1`,
    [nodeId ?? ''],
  );
  return {
    accounts: home?.accounts ?? 0,
    isLearning: home?.learning ?? false,
    history: home?.history ?? 0,
    stranded: silent.reduce((sum, { held }) => sum + held, 0),
    silent: silent.map(({ name }) => name),
    node: node && {
      incarnation: node.incarnation,
      seenSecondsAgo: Math.round(node.ago),
      isStopped: node.stopped,
      isRetired: node.retired,
    },
  };
}
