/** Checks the database that a fleet shares, and this node's part in it. */
import type { Config } from '../config/config.ts';
import { ledgerLocation } from '../config/paths.ts';
import { counted } from '../counted.ts';
import type { FleetDatabase, LedgerTables } from '../ledger/fleet.ts';
import { type Check, type CheckOutcome, ok, problem, skipped, warning } from './check.ts';

async function checkFleet(config: Config): Promise<readonly CheckOutcome[]> {
  const { file, fleet } = ledgerLocation(config);
  if (fleet === undefined) return [skipped('this host belongs to no fleet')];
  const { connectFleet, readFleetDatabase, nodeIdOf } = await import('../ledger/fleet.ts');
  const engine = await connectFleet(fleet.engine);
  try {
    const found = await readFleetDatabase(engine, nodeIdOf(file), fleet.maxStalenessSeconds);
    return judgeFleet(found);
  } finally {
    await engine.close();
  }
}

/** Returns the findings about a fleet's database and about this node. */
export function judgeFleet(found: FleetDatabase): CheckOutcome[] {
  return [...examineTables(found), ...examineReplication(found)];
}

function examineReplication({ replication }: FleetDatabase): CheckOutcome[] {
  if (replication === undefined) return [ok('commits wait for a standby')];
  return [warning(replication, 'Set up a standby and synchronous_standby_names: see docs/fleet.md.')];
}

function examineTables({ name, server, ledger }: FleetDatabase): CheckOutcome[] {
  const where = `${name}, ${server}`;
  if (ledger === undefined)
    return [warning(`${where}: no tables`, 'The first account creates them: pagegate account create NAME')];
  const { version, expected, movedTo } = ledger;
  if (movedTo !== null) return [problem(`${where}: moved to ${movedTo}`, 'Correct or remove ledger.url.')];
  if (version > expected)
    return [problem(`${where}: tables of version ${version}, expected ${expected}`, 'Upgrade this program.')];
  if (version < expected)
    return [warning(`${where}: tables of version ${version}`, `The next start upgrades them to version ${expected}.`)];
  return [ok(`${where}: ${counted(ledger.accounts, 'account')}`), ...examineNodes(ledger)];
}

function examineNodes({ isLearning, history, stranded, silent, node }: LedgerTables): CheckOutcome[] {
  const outcomes: CheckOutcome[] = [];
  if (isLearning)
    outcomes.push(
      problem(
        'the database has lost commits and grants nothing',
        'Start all nodes, so that they report what they hold.',
      ),
    );
  else if (history > 0)
    outcomes.push(
      warning(
        `the database has lost commits ${counted(history, 'time')}`,
        'See `pagegate account audit`; set up a synchronous standby.',
      ),
    );
  if (silent.length > 0)
    outcomes.push(
      warning(
        `no report from ${silent.join(', ')}, with ${counted(stranded, 'lookup')}`,
        'Start the node again. If it will not return, run `pagegate fleet retire NODE`.',
      ),
    );
  if (node === undefined) return [...outcomes, skipped('this node has not joined yet')];
  if (node.isRetired) return [...outcomes, warning('this node was retired', 'Its next start joins as a new node.')];
  const since = node.isStopped ? 'stopped' : `last report ${node.seenSecondsAgo} s ago`;
  return [...outcomes, ok(`this node: ${since}, start ${node.incarnation}`)];
}

export const FLEET_CHECKS: readonly Check[] = [{ id: 'fleet', run: checkFleet }];
