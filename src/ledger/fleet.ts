/** What an operator sees and does of a fleet. */
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

/** Whether the address of a fleet's database can be read; nothing is opened. @throws PagegateError bad_ledger_url */
export const checkLedgerUrl = (url: string): void => void parseEngineUrl(url);

/** What the fleet knows the node by whose copy this is; undefined where it has never joined. @throws PagegateError ledger_unavailable */
export const nodeIdOf = (copyFile: string): string | undefined => readIdentity(copyFile)?.ledgerId;

/** A node as the fleet's ledger knows it. */
export interface NodeView {
  readonly id: string;
  readonly name: string;
  /** `silent`: not heard, and not stopped in an orderly way; what it holds counts as used. */
  readonly state: 'live' | 'silent' | 'stopped' | 'retired';
  /** Seconds since 1970. */
  readonly seen: number;
  readonly program: string;
  /** The data that it serves; empty where it serves none. */
  readonly generation: string;
  /** Lookups that it may spend without asking, in all present cycles. */
  readonly held: number;
  /** Accounts with a change that it has not taken over. */
  readonly behind: number;
}

/** Lookups that nobody serves: a silent node holds them. */
export interface StrandedLookups {
  readonly account: string;
  readonly node: string;
  readonly lookups: number;
}

export interface FleetView {
  readonly nodes: readonly NodeView[];
  readonly stranded: readonly StrandedLookups[];
  /** Nothing is granted: the engine has lost commits, and nodes tell what they hold. */
  readonly learning: boolean;
  /** Times that the engine has lost commits. */
  readonly history: number;
  /** Live nodes serve different data. */
  readonly differs: boolean;
}

/** The state of a fleet. @throws PagegateError fleet_only, ledger_unavailable */
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
 * Gives a node up for good: should it come back, it starts over. What it held stays used, unless the operator knows that it was not spent.
 *
 * @param wanted the node's name or id.
 * @param giveBack gives what it had not reported as spent back to the accounts.
 * @throws PagegateError fleet_only, node_not_found, node_alive, ledger_unavailable
 */
export async function retireNode(
  ledger: Ledger,
  wanted: string,
  { giveBack = false, actor, maxStalenessSeconds }: { giveBack?: boolean; actor: string; maxStalenessSeconds: number },
): Promise<{ node: NodeView; lookups: number }> {
  const { nodes } = await fleetStatus(ledger, maxStalenessSeconds);
  const found = nodes.filter(({ id, name, state }) => id === wanted || (name === wanted && state !== 'retired'));
  const [node] = found;
  if (node === undefined) throw new PagegateError('node_not_found', `Got "${wanted}".`);
  if (found.length > 1)
    throw new PagegateError('node_not_found', `${found.length} nodes are called "${wanted}"; give the id.`);
  if (node.state === 'live') throw new PagegateError('node_alive', `${node.name} is ${node.state}.`);
  if (node.state === 'retired') throw new PagegateError('node_not_found', `${node.name} is retired already.`);
  const lookups = await ledger.store.transaction(async (sql) => {
    // The locks under which blocks are granted, in the order of the grants.
    await sql.rows(
      `SELECT 1 AS one FROM cycles WHERE (account_id, cycle) IN (SELECT account_id, cycle FROM grants WHERE node = ?)
       ORDER BY account_id, cycle FOR UPDATE`,
      node.id,
    );
    const still = await sql.row<{ alive: boolean }>(
      `SELECT ${IS_RUNNING} AND ${isHeardWithin('?')} AS alive FROM nodes WHERE id = ? FOR UPDATE`,
      maxStalenessSeconds,
      node.id,
    );
    if (still?.alive === true) throw new PagegateError('node_alive', `${node.name} came back.`);
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
