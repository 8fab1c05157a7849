/** A PostgreSQL server for the rules of a fleet. */
import { PagegateError } from '../../src/errors.ts';
import { connectEngine } from '../../src/ledger/postgres/connect.ts';
import type { Engine } from '../../src/ledger/postgres/engine.ts';
import { PostgresCluster, type PostgresServer } from '../../tools/fleet/postgres.ts';
import type { EngineHarness } from './suite.ts';

export class PostgresHarness implements EngineHarness {
  isDown = false;
  readonly #cluster: PostgresCluster;
  readonly #server: PostgresServer;

  constructor(cluster: PostgresCluster, server: PostgresServer) {
    this.#cluster = cluster;
    this.#server = server;
  }

  static readonly start = async (): Promise<PostgresHarness> => {
    const cluster = new PostgresCluster();
    return new PostgresHarness(cluster, await cluster.primary(['fsync = off']));
  };

  readonly connect = (): Promise<Engine> => {
    if (this.isDown) throw new PagegateError('ledger_unavailable', 'The engine is cut off.');
    return this.connectAside();
  };

  async connectAside(): Promise<Engine> {
    const { url, password } = this.#server;
    return connectEngine({ url, password });
  }

  async clear(): Promise<void> {
    this.isDown = false;
    await this.run('DROP SCHEMA IF EXISTS pagegate CASCADE');
  }

  /** Sessions that listen belong to nodes. */
  async cut(): Promise<void> {
    this.isDown = true;
    await this.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pagegate' AND query ~ 'LISTEN|sync'",
    );
  }

  async run(text: string): Promise<void> {
    await this.#server.sql(text);
  }

  async stop(): Promise<void> {
    this.#cluster.stop();
  }
}
