/** One round: load on all nodes, one fault, and a count of its own afterwards. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Account } from '../../../src/ledger/quota.ts';
import type { Random } from '../../random.ts';
import { waitUntil } from '../../wait-until.ts';
import { type Excuse, FLEET_FAULTS, type Grant, grantsOf } from './faults.ts';
import { FleetClients } from './fleet-clients.ts';
import type { FleetUnderTest } from './fleet-under-test.ts';

/** An account that no round uses up. */
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
  /** Answers beyond the limit. */
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
  // With a small quota some requests wait for its end.
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

interface Played {
  readonly account: Account;
  readonly clients: FleetClients;
  readonly limit: number;
  readonly boundaryMs: number | undefined;
  readonly excuse: Excuse;
  readonly isDrained: boolean;
  readonly lostBefore: number;
  readonly failures: string[];
}

/** Waits until the database and every node say the same of an account; returns what differs in the end, in words. */
async function settle(fleet: FleetUnderTest, account: Account): Promise<string[]> {
  let differences: string[] = [];
  const look = async (): Promise<boolean> => {
    const grants = await grantsOf(fleet, account.id);
    differences = [];
    for (const node of fleet.nodes) {
      const own = await node.charged(account);
      const known = grants.find(
        ({ name, isRetired, cycle }) => name === node.name && !isRetired && cycle === own?.cycle,
      );
      if ((own?.used ?? 0) !== (known?.spent ?? 0))
        differences.push(`${node.name} has charged ${own?.used}, the database knows ${known?.spent}`);
    }
    return differences.length === 0;
  };
  await waitUntil('settled', look, SETTLE_MS).catch(() => {});
  return differences;
}

/** Counts what was read against what is charged, granted and allowed. */
async function count(fleet: FleetUnderTest, played: Played): Promise<Omit<RoundReport, 'fault'>> {
  const { account, clients, limit, boundaryMs, excuse, isDrained, lostBefore, failures } = played;
  const { forfeited = 0, oversold: mayOversell = 0, uncounted = 0, mustNotice = false, problems = [] } = excuse;
  failures.push(...problems, ...(await settle(fleet, account)));
  const grants = await grantsOf(fleet, account.id);
  const sum = (pick: (grant: (typeof grants)[number]) => number, of = grants): number =>
    of.reduce((total, grant) => total + pick(grant), 0);
  const read = clients.count(200);
  const { unanswered } = clients;
  // What a cycle's last moment had used may die with a ledger writer; what was charged ever does not.
  const charged = boundaryMs === undefined ? sum(({ spent }) => spent) : await totalOf(fleet, account);
  let oversold = 0;
  for (const cycle of new Set(grants.map((grant) => grant.cycle))) {
    const own = grants.filter((grant) => grant.cycle === cycle);
    const granted = sum((grant) => grant.granted, own);
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

/** What there is to know of a node, for whoever looks for the cause. */
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
