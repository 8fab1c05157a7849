/** The findings of doctor about a fleet's database. `make test-fleet` tests that it reads one. */
import { expect, it } from 'vitest';
import { judgeFleet } from '../../src/doctor/fleet-checks.ts';
import type { FleetDatabase, LedgerTables } from '../../src/ledger/fleet.ts';

const NODE: NonNullable<LedgerTables['node']> = {
  incarnation: 2,
  isRetired: false,
  isStopped: false,
  seenSecondsAgo: 3,
};
const TABLES: LedgerTables = {
  version: 5,
  expected: 5,
  movedTo: null,
  accounts: 1,
  isLearning: false,
  history: 0,
  stranded: 0,
  silent: [],
  node: NODE,
};

/** Returns the findings, each with its status, about a healthy fleet with these differences. */
function findingsOf(tables: Partial<LedgerTables>, fleet: Partial<FleetDatabase> = {}): string[] {
  const found = { name: 'postgres://db/x', server: 'PostgreSQL 17', ledger: { ...TABLES, ...tables }, ...fleet };
  return judgeFleet({ replication: undefined, ...found }).map(({ status, found: text }) => `${status} ${text}`);
}
const node = (change: Partial<typeof NODE>): Partial<LedgerTables> => ({ node: { ...NODE, ...change } });

const WHERE = 'postgres://db/x, PostgreSQL 17';
const GOOD = `ok ${WHERE}: 1 account`;
const HERE = 'ok this node: last report 3 s ago, start 2';
const STANDBY = 'ok commits wait for a standby';

it.each<[string, Partial<LedgerTables>, string[]]>([
  ['is as it should be', {}, [GOOD, HERE, STANDBY]],
  ['was moved', { movedTo: 'ledger.sqlite' }, [`problem ${WHERE}: moved to ledger.sqlite`, STANDBY]],
  ['is newer', { version: 6 }, [`problem ${WHERE}: tables of version 6, expected 5`, STANDBY]],
  ['is older', { version: 4 }, [`warning ${WHERE}: tables of version 4`, STANDBY]],
  [
    'has lost commits and learns',
    { isLearning: true, history: 1 },
    [GOOD, 'problem the database has lost commits and grants nothing', HERE, STANDBY],
  ],
  ['has lost commits', { history: 1 }, [GOOD, 'warning the database has lost commits 1 time', HERE, STANDBY]],
  [
    'does not hear nodes',
    { silent: ['a', 'b'], stranded: 7 },
    [GOOD, 'warning no report from a, b, with 7 lookups', HERE, STANDBY],
  ],
  ['does not know this node', { node: undefined }, [GOOD, 'skipped this node has not joined yet', STANDBY]],
  ['has retired this node', node({ isRetired: true }), [GOOD, 'warning this node was retired', STANDBY]],
  ['knows that this node stopped', node({ isStopped: true }), [GOOD, 'ok this node: stopped, start 2', STANDBY]],
])('a database that %s', (_what, tables, expected) => {
  expect(findingsOf(tables)).toEqual(expected);
});

it('a database without tables, or without a standby, is a warning', () => {
  expect(findingsOf({}, { ledger: undefined })).toEqual([`warning ${WHERE}: no tables`, STANDBY]);
  expect(findingsOf({}, { replication: 'no synchronous standby' })).toEqual([
    GOOD,
    HERE,
    'warning no synchronous standby',
  ]);
});
