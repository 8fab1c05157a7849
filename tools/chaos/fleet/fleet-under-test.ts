/** Three nodes, a database with a standby, and relays for all connections between them. */
import { CYCLE_SECONDS } from '../../../src/ledger/cycle.ts';
import { fleetStatus } from '../../../src/ledger/fleet.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';
import { connectEngine } from '../../../src/ledger/postgres/connect.ts';
import { PostgresStore } from '../../../src/ledger/store/postgres-store.ts';
import { PostgresCluster, type PostgresServer } from '../../fleet/postgres.ts';
import { waitUntil } from '../../wait-until.ts';
import { askOnce } from '../counting-client.ts';
import { ChaosNode, MAX_STALENESS_SECONDS } from './node.ts';
import { Relay } from './relay.ts';

const NAMES = ['one', 'two', 'three'] as const;
const PROBE_LIMIT = 1_000_000_000;

export interface NewAccount {
  readonly id: number;
  readonly key: string;
  readonly keyId: number;
}

export class FleetUnderTest {
  readonly nodes: ChaosNode[] = [];
  /** The relay through which the standby follows the primary. */
  replication!: Relay;
  primary!: PostgresServer;
  standby!: PostgresServer;
  /** Connected to the primary directly, without a relay. */
  ledger!: Ledger;
  /** The key of an account that every healthy node serves. */
  probe = '';
  #witnesses = 0;
  readonly #cluster = new PostgresCluster();

  /** @param options.hasOwnClock whether the clocks of nodes can be set wrong; true by default. */
  static async create({ hasOwnClock = true } = {}): Promise<FleetUnderTest> {
    const fleet = new FleetUnderTest();
    try {
      await fleet.#setUp(hasOwnClock);
      return fleet;
    } catch (error) {
      await fleet.remove();
      throw error;
    }
  }

  async #setUp(hasOwnClock: boolean): Promise<void> {
    this.primary = await this.#cluster.primary(['fsync = off', "log_min_messages = 'fatal'"]);
    this.replication = await Relay.open(this.primary.port);
    this.standby = await this.#cluster.standby(this.primary, this.replication.port);
    await this.replicate('synchronous');
    const servers = [this.primary.port, this.standby.port];
    for (const name of NAMES) {
      const keyFile = this.nodes[0]?.keyFile;
      const { password } = this.primary;
      const shared = keyFile === undefined ? {} : { keyFile };
      this.nodes.push(await ChaosNode.create({ name, password, servers, hasOwnClock, ...shared }));
      if (this.nodes.length === 1) await this.connect();
      if (this.nodes.length === 1) this.probe = (await this.createAccount('probe', PROBE_LIMIT)).key;
    }
    await Promise.all(this.nodes.map((node) => node.start()));
    await this.recovered();
  }

  /** Sets whether a commit waits until the standby has it. */
  async replicate(how: 'synchronous' | 'asynchronous'): Promise<void> {
    const names = how === 'synchronous' ? '*' : '';
    await this.primary.sql(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await this.primary.sql('SELECT pg_reload_conf()');
  }

  /** Connects to the current primary. */
  async connect(): Promise<void> {
    await this.ledger?.close().catch(() => {});
    const { url, password } = this.primary;
    const store = await PostgresStore.open(await connectEngine({ url, password }), {
      maxStalenessSeconds: MAX_STALENESS_SECONDS,
    });
    this.ledger = new Ledger(store, { keyFile: this.nodes[0]!.keyFile, actor: 'chaos' });
  }

  /** Creates an account with a key. Returns when the nodes know it. */
  async createAccount(name: string, limit: number): Promise<NewAccount> {
    const { id } = await this.ledger.createAccount(name);
    const { key, record } = (await this.ledger.subscribe(name, 'custom', `PAY-${name}`, limit)).issued!;
    return { id, key, keyId: record.id };
  }

  /** Makes a change and waits until every node has applied it. */
  async witness(): Promise<void> {
    this.#witnesses += 1;
    await this.ledger.createAccount(`witness-${this.#witnesses}`);
    if (this.ledger.lag !== undefined) throw new Error(this.ledger.lag);
  }

  /** Makes the cycle of an unused account end soon. Returns when, in milliseconds since 1970. */
  async endCycleSoon(accountId: number, inSeconds: number): Promise<number> {
    const { store } = this.ledger;
    const end = Math.floor(Date.now() / 1_000) + inSeconds;
    const revision = await store.transaction(async (sql) => {
      await sql.run('UPDATE accounts SET cycle_anchor = ? WHERE id = ?', end - CYCLE_SECONDS, accountId);
      await sql.run('UPDATE ledger SET revision = revision + 1');
      return (await sql.row<{ revision: number }>('SELECT revision FROM ledger'))!.revision;
    });
    await store.followed(revision);
    return end * 1_000;
  }

  /** What the database knows about losses of its own commits. */
  async history(): Promise<{ readonly lost: number; readonly isLearning: boolean }> {
    const { history, learning } = await fleetStatus(this.ledger, MAX_STALENESS_SECONDS);
    return { lost: history, isLearning: learning };
  }

  /** Kills the primary and promotes the standby. {@link rebuild} then creates the next standby. */
  async promote(): Promise<void> {
    await this.primary.kill();
    await this.standby.promote();
    [this.primary, this.standby] = [this.standby, this.primary];
    await this.connect();
  }

  /** Creates the standby again from the primary. */
  async rebuild(): Promise<void> {
    this.replication.state = 'cut';
    this.replication.target = this.primary.port;
    this.replication.state = 'open';
    await this.standby.follow(this.primary, this.replication.port);
    await this.replicate('synchronous');
  }

  /** Repairs all connections. */
  heal(): void {
    for (const line of this.nodes.flatMap(({ lines }) => lines)) {
      line.delayMs = 0;
      line.state = 'open';
    }
    this.replication.state = 'open';
  }

  /** Waits until all nodes serve lookups. */
  async recovered(nodes: readonly ChaosNode[] = this.nodes): Promise<void> {
    for (const node of nodes) {
      await waitUntil(`${node.name} serves`, async () => (await askOnce(node.port, this.probe)) === 200).catch(
        (error) => {
          throw new Error(`${(error as Error).message}\n${node.log.slice(-3_000)}`);
        },
      );
    }
  }

  async remove(): Promise<void> {
    await this.ledger?.close().catch(() => {});
    for (const node of this.nodes) await node.remove();
    await this.replication?.close();
    this.#cluster.stop();
  }
}
