/** One round: load on all nodes, one fault, and a check of the counts of a new account afterwards. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Account } from '../../../src/ledger/quota.ts';
import type { Random } from '../../random.ts';
import { waitUntil } from '../../wait-until.ts';
import { type Excuse, FLEET_FAULTS, type Grant, grantsOf } from './faults.ts';
import { FleetClients } from './fleet-clients.ts';
import type { FleetUnderTest } from './fleet-under-test.ts';

/** A limit that no round uses up. */
const LARGE_LIMIT = 1_000_000_000;
const BOUNDARY_SECONDS = 3;
const DRAIN_MS = 60_000;
const SETTLE_MS = 20_000;

export interface RoundReport {
  readonly fault: string;
  readonly read: number;
  readonly charged: number;
  readonly unanswered: number;
  readonly unavailable: number;
  /** Number of 200 answers beyond the limit. */
  readonly oversold: number;
  readonly isDrained: boolean;
  readonly failures: readonly string[];
}

export async function runRound(
  fleet: FleetUnderTest,
  random: Random,
  name: string,
  fault: string,
): Promise<RoundReport> {
  const plan = FLEET_FAULTS[fault]!;
  const isDrained = plan.isDrained === true || random.chance(40);
  const limit = isDrained ? 1_000 + random.below(3_000) : LARGE_LIMIT;
  const { id, key } = await fleet.createAccount(name, limit);
  const boundaryMs = plan.hasBoundary ? await fleet.endCycleSoon(id, BOUNDARY_SECONDS) : undefined;
  const { account } = await fleet.ledger.view(name);
  const lostBefore = (await fleet.history()).lost;
  const clients = new FleetClients(key);
  for (const node of fleet.nodes) clients.join(node);
  const failures: string[] = [];
  let excuse: Excuse = {};
  try {
    await sleep(300 + random.below(700));
    const node = random.pick(fleet.nodes);
    const spareKey = async () => {
      const spare = await fleet.createAccount(`${name}-spare`, LARGE_LIMIT);
      return { key: spare.key, revoke: () => fleet.ledger.revokeKey(`${name}-spare`, spare.keyId) };
    };
    excuse = await plan.run({ fleet, random, account, clients, node, spareKey, boundaryMs });
    await sleep(random.below(300));
  } finally {
    fleet.heal();
    await clients.stop();
  }
  // With a small quota, 503 is allowed: requests may wait too long near its end.
  if (plan.isSeamless && !isDrained && clients.count(503) > 0) failures.push(`${clients.count(503)} answers 503`);
  await fleet.recovered();
  await waitUntil('the database has learned', async () => !(await fleet.history()).isLearning);
  if (isDrained && !(await clients.drain(fleet.nodes, DRAIN_MS)))
    failures.push(`the quota of ${limit} was not used up`);
  return {
    ...(await count(fleet, { account, clients, limit, boundaryMs, excuse, isDrained, lostBefore, failures })),
    fault,
  };
}

/** A round that is over, to be checked. */
interface FinishedRound {
  readonly account: Account;
  readonly clients: FleetClients;
  readonly limit: number;
  readonly boundaryMs: number | undefined;
  readonly excuse: Excuse;
  readonly isDrained: boolean;
  readonly lostBefore: number;
  readonly failures: string[];
}

/** Waits until the database and every node agree on an account's usage. Returns descriptions of the remaining differences. */
async function settle(fleet: FleetUnderTest, account: Account): Promise<string[]> {
  let differences: string[] = [];
  const agree = async (): Promise<boolean> => {
    const grants = await grantsOf(fleet, account.id);
    differences = [];
    for (const node of fleet.nodes) {
      const charged = await node.charged(account);
      const grant = grants.find(
        ({ name, isRetired, cycle }) => name === node.name && !isRetired && cycle === charged?.cycle,
      );
      if ((charged?.used ?? 0) !== (grant?.spent ?? 0))
        differences.push(`${node.name} has charged ${charged?.used}, the database knows ${grant?.spent}`);
    }
    return differences.length === 0;
  };
  await waitUntil('settled', agree, SETTLE_MS).catch(() => {});
  return differences;
}

/** Checks the answers that were read against what is charged, granted and allowed. */
async function count(fleet: FleetUnderTest, round: FinishedRound): Promise<Omit<RoundReport, 'fault'>> {
  const { account, clients, limit, boundaryMs, excuse, isDrained, lostBefore, failures } = round;
  const { forfeited = 0, oversold: mayOversell = 0, uncounted = 0, mustNotice = false, problems = [] } = excuse;
  failures.push(...problems, ...(await settle(fleet, account)));
  const grants = await grantsOf(fleet, account.id);
  const sum = (pick: (grant: (typeof grants)[number]) => number, of = grants): number =>
    of.reduce((total, grant) => total + pick(grant), 0);
  const read = clients.count(200);
  const { unanswered } = clients;
  // With a ledger writer, the usage of the last moment of a cycle may be lost; the total of all cycles is not.
  const charged = boundaryMs === undefined ? sum(({ spent }) => spent) : await totalOf(fleet, account);
  let oversold = 0;
  for (const cycle of new Set(grants.map((grant) => grant.cycle))) {
    const ofCycle = grants.filter((grant) => grant.cycle === cycle);
    const granted = sum((grant) => grant.granted, ofCycle);
    const inCycle = clients.readIn(cycle, boundaryMs);
    if (granted > limit + mayOversell) failures.push(`cycle ${cycle}: ${granted} granted of ${limit}`);
    if (inCycle > granted + uncounted) failures.push(`cycle ${cycle}: ${inCycle} read, only ${granted} granted`);
    if (inCycle > limit + mayOversell) failures.push(`cycle ${cycle}: ${inCycle} read of ${limit}`);
    oversold = Math.max(oversold, inCycle - limit);
  }
  for (const { name, cycle, granted, spent } of grants)
    if (spent > granted) failures.push(`${name}, cycle ${cycle}: ${spent} spent of ${granted}`);
  if (read > charged + uncounted) failures.push(`${read} read, only ${charged} charged`);
  if (charged > read + unanswered + forfeited)
    failures.push(`${charged} charged, but ${read} read, ${unanswered} unanswered, ${forfeited} forfeited`);
  if (read === 0) failures.push('nothing was served');
  const latest = Math.max(...grants.map(({ cycle }) => cycle));
  const inLatest = sum(
    ({ spent }) => spent,
    grants.filter(({ cycle }) => cycle === latest),
  );
  if (isDrained && inLatest < limit) failures.push(`403, but ${inLatest} of ${limit} are used`);
  if (!isDrained && clients.count(403) > 0)
    failures.push(`${clients.count(403)} answers 403 of a quota that is not used`);
  for (const status of new Set(clients.answers.map((answer) => answer.status)))
    if (![200, 403, 503].includes(status)) failures.push(`answered ${status}, ${clients.count(status)} times`);
  if (failures.length > 0) failures.push(...grants.map((grant) => describe(grant, clients)));
  const { lost } = await fleet.history();
  if (mustNotice && lost === lostBefore) failures.push('that commits were lost was not noticed');
  if (!mustNotice && lost !== lostBefore) failures.push('commits were taken for lost');
  return {
    read,
    charged,
    unanswered,
    unavailable: clients.count(503),
    oversold: Math.max(0, oversold),
    isDrained,
    failures,
  };
}

/** Describes a node's grant, to help find the cause of a failure. */
function describe({ name, cycle, granted, spent, isRetired }: Grant, clients: FleetClients): string {
  const read = clients.answers.filter(({ node, status }) => node === name && status === 200).length;
  return `${name}${isRetired ? ' (retired)' : ''}, cycle ${cycle}: ${spent} spent of ${granted}; ${read} read from it in all cycles`;
}

async function totalOf({ ledger }: FleetUnderTest, { id }: Account): Promise<number> {
  const row = await ledger.store.row<{ total: number }>(
    'SELECT coalesce(sum(total), 0)::int8 AS total FROM node_totals WHERE account_id = ?',
    id,
  );
  return row?.total ?? 0;
}
