/** The faults that a round can cause in a fleet. */
import { setTimeout as sleep } from 'node:timers/promises';
import { retireNode } from '../../../src/ledger/fleet.ts';
import type { Account } from '../../../src/ledger/quota.ts';
import type { Random } from '../../random.ts';
import { waitUntil } from '../../wait-until.ts';
import { Client } from '../counting-client.ts';
import type { FleetClients } from './fleet-clients.ts';
import type { FleetUnderTest } from './fleet-under-test.ts';
import { type ChaosNode, MAX_STALENESS_SECONDS } from './node.ts';

/** Time after which a node without contact to the database answers only 503, including the time to notice. */
const STALE_MS = MAX_STALENESS_SECONDS * 1_000 + 1_000;

export interface Scene {
  readonly fleet: FleetUnderTest;
  readonly random: Random;
  readonly account: Account;
  readonly clients: FleetClients;
  /** The node that the fault affects. */
  readonly node: ChaosNode;
  /** When the account's cycle ends, in milliseconds since 1970; undefined if it does not end in this round. */
  readonly boundaryMs: number | undefined;
  /** Creates a key of another account, which the round may revoke. */
  readonly spareKey: () => Promise<{ readonly key: string; revoke(): Promise<unknown> }>;
}

/** The deviations that a fault allows. A field that is absent allows none. */
export interface Excuse {
  /** Lookups that may be charged although no client has read them. */
  readonly forfeited?: number;
  /** Lookups that may be served beyond the limit. */
  readonly oversold?: number;
  /** Lookups that may be missing in the database's count: those that a lost node had spent and not reported. */
  readonly uncounted?: number;
  /** The database has lost commits that a node remembers, which must be noticed. Otherwise no loss may be noticed. */
  readonly mustNotice?: boolean;
  /** Failures that the fault itself has found. */
  readonly problems?: readonly string[];
}

export type FleetFault = (scene: Scene) => Promise<Excuse>;

const NOTHING: Excuse = {};

/** What a node holds and has spent of an account, according to the database. */
export interface Grant {
  readonly node: string;
  readonly name: string;
  readonly isRetired: boolean;
  readonly cycle: number;
  readonly granted: number;
  readonly spent: number;
}

export async function grantsOf({ ledger }: FleetUnderTest, accountId: number): Promise<Grant[]> {
  return ledger.store.rows(
    `SELECT n.id AS node, n.name, n.retired_at IS NOT NULL AS "isRetired", g.cycle, g.granted, g.spent
     FROM grants g JOIN nodes n ON n.id = g.node WHERE g.account_id = ? ORDER BY n.name, n.id, g.cycle`,
    accountId,
  );
}

async function restartAfter(node: ChaosNode, pids: readonly number[]): Promise<Excuse> {
  await node.kill(pids);
  await node.start();
  return NOTHING;
}

/** Disturbs and repairs network connections for a while. */
async function trouble({ fleet, random }: Scene): Promise<Excuse> {
  for (let i = 0; i < 4; i += 1) {
    const node = random.pick(fleet.nodes);
    const kind = random.below(4);
    for (const line of node.lines) {
      if (kind === 0) line.delayMs = 5 + random.below(80);
      else if (kind === 1) line.state = 'stalled';
      else if (kind === 2) line.state = 'cut';
      else line.halfOpen(random.pick(['there', 'back']));
    }
    await sleep(100 + random.below(500));
    if (random.chance(50)) for (const line of node.lines) line.state = 'open';
  }
  fleet.heal();
  return NOTHING;
}

async function killEngine({ fleet, random }: Scene): Promise<Excuse> {
  await fleet.primary.kill();
  await sleep(random.below(1_500));
  await fleet.primary.start();
  await fleet.connect();
  return NOTHING;
}

async function promote({ fleet }: Scene): Promise<Excuse> {
  await fleet.promote();
  await sleep(500);
  await fleet.rebuild();
  return NOTHING;
}

/** Disconnects the standby, so that commits wait for it. */
async function loseStandby({ fleet, random }: Scene): Promise<Excuse> {
  fleet.replication.state = random.pick(['cut', 'stalled']);
  await sleep(500 + random.below(1_500));
  fleet.replication.state = 'open';
  return NOTHING;
}

/** Cuts a node off, or stops it, until the others consider it silent. Checks that it refuses a key that was revoked meanwhile. */
async function beAway(scene: Scene, leave: () => void, comeBack: () => void): Promise<Excuse> {
  const { node, spareKey } = scene;
  const spare = await spareKey();
  const problems: string[] = [];
  const client = new Client(node.port, spare.key, {
    pauseMs: 2,
    onAnswer: (status, sentMs) => {
      if (status === 200 && sentMs > revokedMs) problems.push('a revoked key opened');
    },
  });
  let revokedMs = Number.POSITIVE_INFINITY;
  const running = client.run();
  await sleep(200);
  leave();
  const awaySinceMs = Date.now();
  await spare.revoke();
  await sleep(Math.max(0, STALE_MS - (Date.now() - awaySinceMs)));
  revokedMs = Date.now();
  await sleep(300);
  comeBack();
  await sleep(1_500);
  client.stop();
  await running;
  return { problems: problems.slice(0, 1) };
}

/** Copies a node's state directory and starts a second server from it. */
async function copyState({ fleet, node, clients, random }: Scene): Promise<Excuse> {
  const copy = await node.copy(`${node.name}-copy`);
  try {
    await copy.start();
    await fleet.recovered([copy]);
    clients.join(copy);
    await sleep(500 + random.below(1_000));
    await clients.leave(copy);
    const end = await copy.stop();
    return end === '' ? NOTHING : { problems: [end] };
  } finally {
    await copy.remove();
  }
}

/** Lets the primary fail before the standby has all commits that the primary has acknowledged. */
async function forgetCommits(scene: Scene, during: () => Promise<void> = async () => {}): Promise<Excuse> {
  const { fleet, random } = scene;
  await fleet.replicate('asynchronous');
  await sleep(200);
  fleet.replication.state = 'cut';
  // Every node learns of a change that the standby does not have.
  await fleet.witness();
  await sleep(500 + random.below(1_000));
  await during();
  await fleet.promote();
  await sleep(500);
  await fleet.rebuild();
  return { mustNotice: true };
}

/** Destroys a node for good. Returns its id in the database, and what it had spent of the account. */
async function lose({ fleet, node, account }: Scene): Promise<{ id: string; used: number }> {
  await node.kill(node.pids);
  const used = (await node.charged(account))?.used ?? 0;
  const id = (await fleet.ledger.store.row<{ id: string }>(
    'SELECT id FROM nodes WHERE name = ? AND retired_at IS NULL ORDER BY seen_at DESC',
    node.name,
  ))!.id;
  node.forget();
  return { id, used };
}

/** Retires a lost node and starts a new one in its place. */
async function replace(scene: Scene, { id, used }: { id: string; used: number }, giveBack: boolean): Promise<Excuse> {
  const { fleet, account, node } = scene;
  const options = { actor: 'chaos', giveBack, maxStalenessSeconds: MAX_STALENESS_SECONDS };
  await waitUntil(`${node.name} counts as silent`, () => retireNode(fleet.ledger, id, options).then(() => true));
  const grants = await grantsOf(fleet, account.id);
  const counted = grants.reduce((sum, grant) => sum + (grant.node === id ? grant.granted : 0), 0);
  await node.start();
  const missing = Math.max(0, used - counted);
  return { forfeited: Math.max(0, counted - used), uncounted: missing, oversold: missing };
}

async function retire(scene: Scene): Promise<Excuse> {
  return replace(scene, await lose(scene), scene.random.chance(50));
}

/** Loses commits and a node. What the node had spent since the standby was disconnected is lost, too. */
async function forgetCommitsAndNode(scene: Scene): Promise<Excuse> {
  let lost = { id: '', used: 0 };
  const excuse = await forgetCommits(scene, async () => {
    lost = await lose(scene);
  });
  return { ...excuse, ...(await replace(scene, lost, false)) };
}

/** Keeps commits waiting until their statements time out, and then kills the primary. No acknowledged commit may be lost. */
async function promoteLateStandby({ fleet }: Scene): Promise<Excuse> {
  fleet.replication.state = 'cut';
  await sleep(6_000);
  await fleet.promote();
  await sleep(500);
  await fleet.rebuild();
  return NOTHING;
}

async function setClock({ fleet, node, random }: Scene): Promise<Excuse> {
  node.clockOffsetMs = wrongClock(random);
  await sleep(1_500);
  await fleet.recovered([node]);
  return NOTHING;
}

/** The largest clock offset: an hour in either direction. */
const WRONG_MS = 3_600_000;

export const wrongClock = (random: Random): number => random.below(2 * WRONG_MS) - WRONG_MS;

/** Loads the fleet across the end of a cycle. Another fault may happen shortly before. */
async function crossBoundary(scene: Scene): Promise<Excuse> {
  const { node, random, boundaryMs } = scene;
  const what = random.below(4);
  await sleep(Math.max(0, boundaryMs! - Date.now() - random.below(1_000)));
  if (what === 0) await node.kill([node.ledgerWriter]);
  if (what === 1) await node.restart();
  if (what === 2) await restartAfter(node, node.pids);
  await sleep(Math.max(0, boundaryMs! + 2_500 - Date.now()));
  return NOTHING;
}

/** How a round with a fault is run. */
export interface FaultPlan {
  readonly run: FleetFault;
  /** The account's cycle ends during the round. */
  readonly hasBoundary?: boolean;
  /** The rest of the quota is used afterwards. */
  readonly isDrained?: boolean;
  /** No request may be answered 503. */
  readonly isSeamless?: boolean;
}

export const FLEET_FAULTS: Readonly<Record<string, FaultPlan>> = {
  'bad lines': { run: trouble },
  'kill worker': { run: ({ node }) => node.kill([node.worker]).then(() => NOTHING) },
  'kill ledger writer': { run: ({ node }) => node.kill([node.ledgerWriter]).then(() => NOTHING), isSeamless: true },
  'kill primary process': { run: ({ node }) => restartAfter(node, [node.primary]) },
  'kill node': { run: ({ node }) => restartAfter(node, node.pids) },
  'restart node': { run: ({ node }) => node.restart().then(() => NOTHING), isSeamless: true },
  'restart node cut off': { run: restartCutOff },
  'stop node and start it': { run: stopAndStart },
  'set clock': { run: setClock },
  'kill database': { run: killEngine },
  'lose standby': { run: loseStandby },
  promote: { run: promote },
  'promote a late standby': { run: promoteLateStandby },
  'suspend node': {
    run: (scene) =>
      beAway(
        scene,
        () => scene.node.signal('SIGSTOP'),
        () => scene.node.signal('SIGCONT'),
      ),
  },
  'cut node off': {
    run: (scene) => {
      const set = (state: 'open' | 'cut') => () => {
        for (const line of scene.node.lines) line.state = state;
      };
      return beAway(scene, set('cut'), set('open'));
    },
  },
  'copy state': { run: copyState },
  'cycle boundary': { run: crossBoundary, hasBoundary: true },
  'forget commits': { run: (scene) => forgetCommits(scene), isDrained: true },
  'forget commits, lose node': { run: forgetCommitsAndNode, isDrained: true },
  'retire node': { run: retire },
};

/** Restarts a node without contact to the database. The new server must continue with what the old one held. */
async function restartCutOff({ node, random }: Scene): Promise<Excuse> {
  const state = random.pick(['cut', 'stalled'] as const);
  for (const line of node.lines) line.state = state;
  await node.restart();
  await sleep(random.below(1_000));
  for (const line of node.lines) line.state = 'open';
  return NOTHING;
}

async function stopAndStart({ node }: Scene): Promise<Excuse> {
  const end = await node.stop();
  await node.start();
  return end === '' ? NOTHING : { problems: [end] };
}
