/** What an operator can see of a fleet and do with it. */
import { PagegateError } from '../errors.ts';
import { touchAccounts } from './accounts/correction.ts';
import type { Ledger } from './ledger.ts';
import { parseEngineUrl } from './postgres/engine.ts';
import {
  GRANTS_AND_ACCOUNTS,
  HELD_LOOKUPS,
  IS_OF_PRESENT_CYCLE,
  IS_RUNNING,
  isHeardWithin,
  NOW,
} from './postgres/fragments.ts';
import { readIdentity } from './store/identity.ts';

export { type FleetDatabase, type LedgerTables, readFleetDatabase } from './fleet/fleet-database.ts';
export { moveToFile, moveToPostgres } from './fleet/move-ledger.ts';
export { connectFleet } from './postgres/connect.ts';

/** Checks that the address of a fleet's database can be parsed. It opens nothing. @throws PagegateError bad_ledger_url */
export const checkLedgerUrl = (url: string): void => void parseEngineUrl(url);

/** The id under which the fleet knows the node with this copy; undefined if the node has never joined. @throws PagegateError ledger_unavailable */
export const nodeIdOf = (copyFile: string): string | undefined => readIdentity(copyFile)?.ledgerId;

/** A node as the fleet's ledger knows it. */
export interface NodeView {
  readonly id: string;
  readonly name: string;
  /** `silent`: it has not reported lately and was not stopped in an orderly way; what it holds counts as used. */
  readonly state: 'live' | 'silent' | 'stopped' | 'retired';
  /** When it reported last, in seconds since 1970. */
  readonly seen: number;
  readonly program: string;
  /** The data that it serves; empty if it serves none. */
  readonly generation: string;
  /** Lookups in current cycles that it may spend without asking. */
  readonly held: number;
  /** Number of accounts with a change that it has not yet applied. */
  readonly behind: number;
}

/** Lookups that no node can serve, because a silent node holds them. */
export interface StrandedLookups {
  readonly account: string;
  readonly node: string;
  readonly lookups: number;
}

export interface FleetView {
  readonly nodes: readonly NodeView[];
  readonly stranded: readonly StrandedLookups[];
  /** The engine has lost commits. It grants nothing until the nodes have reported what they hold. */
  readonly learning: boolean;
  /** How many times the engine has lost commits. */
  readonly history: number;
  /** Whether live nodes serve different data. */
  readonly differs: boolean;
}

/** Reads the state of a fleet. @throws PagegateError fleet_only, ledger_unavailable */
export async function fleetStatus({ store }: Ledger, maxStalenessSeconds: number): Promise<FleetView> {
  if (!store.isFleet) throw new PagegateError('fleet_only');
  const nodes = await store.rows<NodeView>(
    `SELECT id, name, floor(seen_at)::int8 AS seen, program, generation,
       CASE WHEN retired_at IS NOT NULL THEN 'retired' WHEN session = '' THEN 'stopped' WHEN ${isHeardWithin('?')} THEN 'live' ELSE 'silent' END AS state,
       ${HELD_LOOKUPS} AS held, (SELECT count(*) FROM (SELECT id FROM accounts WHERE revision > nodes.revision
         UNION SELECT account_id FROM api_keys WHERE revision > nodes.revision) AS changed) AS behind
     FROM nodes ORDER BY retired_at IS NOT NULL, name, id`,
    maxStalenessSeconds,
  );
  const stranded = await store.rows<StrandedLookups>(
    `SELECT a.name AS account, nodes.name AS node, g.granted - g.spent AS lookups FROM ${GRANTS_AND_ACCOUNTS} JOIN nodes ON nodes.id = g.node
     WHERE ${IS_OF_PRESENT_CYCLE} AND ${IS_RUNNING} AND NOT ${isHeardWithin('?')} AND g.granted > g.spent ORDER BY nodes.name, nodes.id, a.name`,
    maxStalenessSeconds,
  );
  const home = await store.row<{ learning: boolean; history: number }>(
    'SELECT learning_since IS NOT NULL AS learning, history FROM ledger',
  );
  const served = new Set(nodes.filter(({ state }) => state === 'live').map(({ generation }) => generation));
  return { nodes, stranded, learning: home?.learning ?? false, history: home?.history ?? 0, differs: served.size > 1 };
}

/**
 * Gives a node up for good: if it comes back, it starts over. What it held counts as used, unless the operator knows that it was not spent.
 *
 * @param nameOrId the node's.
 * @param giveBack returns to the accounts what the node had not reported as spent.
 * @throws PagegateError fleet_only, node_not_found, node_alive, ledger_unavailable
 */
export async function retireNode(
  ledger: Ledger,
  nameOrId: string,
  { giveBack = false, actor, maxStalenessSeconds }: { giveBack?: boolean; actor: string; maxStalenessSeconds: number },
): Promise<{ node: NodeView; lookups: number }> {
  const { nodes } = await fleetStatus(ledger, maxStalenessSeconds);
  const found = nodes.filter(({ id, name, state }) => id === nameOrId || (name === nameOrId && state !== 'retired'));
  const [node] = found;
  if (node === undefined) throw new PagegateError('node_not_found', `Got "${nameOrId}".`);
  if (found.length > 1)
    throw new PagegateError('node_not_found', `${found.length} nodes are called "${nameOrId}"; give the id.`);
  if (node.state === 'live') throw new PagegateError('node_alive', `${node.name} is ${node.state}.`);
  if (node.state === 'retired') throw new PagegateError('node_not_found', `${node.name} is retired already.`);
  const lookups = await ledger.store.transaction(async (sql) => {
    // The row locks under which blocks are granted, taken in the same order as when granting.
    await sql.rows(
      `SELECT 1 AS one FROM cycles WHERE (account_id, cycle) IN (SELECT account_id, cycle FROM grants WHERE node = ?)
       ORDER BY account_id, cycle FOR UPDATE`,
      node.id,
    );
    const current = await sql.row<{ alive: boolean }>(
      `SELECT ${IS_RUNNING} AND ${isHeardWithin('?')} AS alive FROM nodes WHERE id = ? FOR UPDATE`,
      maxStalenessSeconds,
      node.id,
    );
    if (current?.alive === true) throw new PagegateError('node_alive', `${node.name} came back.`);
    const held = await sql.row<{ lookups: number }>(
      'SELECT coalesce(sum(granted - spent), 0)::int8 AS lookups FROM grants WHERE node = ?',
      node.id,
    );
    if (giveBack) {
      await touchAccounts(sql, 'id IN (SELECT account_id FROM grants WHERE node = ? AND granted > spent)', node.id);
      await sql.run('UPDATE ledger SET revision = revision + 1');
    }
    await sql.run(
      giveBack
        ? 'UPDATE grants SET granted = spent WHERE node = ?'
        : 'UPDATE grants SET spent = granted WHERE node = ?',
      node.id,
    );
    await sql.run(`UPDATE nodes SET retired_at = ${NOW}, session = '' WHERE id = ?`, node.id);
    await sql.run(
      `INSERT INTO audit (at, actor, action, after) VALUES (floor(${NOW}), ?, ?, ?)`,
      actor,
      giveBack ? 'fleet.retire give_back' : 'fleet.retire',
      JSON.stringify({ node: node.id, name: node.name, lookups: held?.lookups ?? 0 }),
    );
    return held?.lookups ?? 0;
  });
  return { node, lookups };
}
