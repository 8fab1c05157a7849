/** PostgreSQL inside the test process: the same statements, without a server. */
import { PGlite } from '@electric-sql/pglite';
import { PagegateError } from '../../src/errors.ts';
import type { Engine } from '../../src/ledger/postgres/engine.ts';
import type { EngineHarness } from './suite.ts';

/** One database. Its connections share a session, because the package has only one. */
export class Pglite implements EngineHarness {
  readonly database: PGlite;
  /** Set by tests that cut the connection. */
  isDown = false;
  readonly #engines = new Set<PgliteEngine>();

  private constructor(database: PGlite) {
    this.database = database;
  }

  static readonly start = async (): Promise<Pglite> => new Pglite(await PGlite.create({ parsers: { 20: Number } }));

  readonly connect = async (): Promise<Engine> => {
    if (this.isDown) throw new PagegateError('ledger_unavailable', 'The engine is cut off.');
    const engine = await this.connectAside();
    this.#engines.add(engine);
    return engine;
  };

  /** Returns a connection that {@link cut} does not end. */
  async connectAside(): Promise<PgliteEngine> {
    await this.database.exec('SET search_path = pagegate');
    return new PgliteEngine(this);
  }

  /** Deletes all data. */
  async clear(): Promise<void> {
    this.isDown = false;
    await this.database.exec('DROP SCHEMA IF EXISTS pagegate CASCADE');
  }

  /** Whether a connection reaches the engine. */
  reaches(engine: PgliteEngine): boolean {
    return engine.isOpen && !(this.isDown && this.#engines.has(engine));
  }

  /** Ends all connections, as a crash of the engine does. */
  async cut(): Promise<void> {
    this.isDown = true;
    for (const engine of this.#engines) engine.isOpen = false;
  }

  async run(text: string): Promise<void> {
    await this.database.exec(text);
  }

  async stop(): Promise<void> {
    await this.database.close();
  }
}

class PgliteEngine implements Engine {
  readonly name = 'postgres://pagegate@pglite/test';
  isOpen = true;
  readonly #home: Pglite;
  #unlisten: (() => Promise<void>) | undefined;

  constructor(home: Pglite) {
    this.#home = home;
  }

  async query<T>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    this.#look();
    return this.#answer(async () => (await this.#home.database.query<T>(text, [...values])).rows);
  }

  async script(text: string): Promise<void> {
    this.#look();
    await this.#answer(() => this.#home.database.exec(text));
  }

  async listen(onChange: () => void): Promise<void> {
    this.#unlisten = await this.#home.database.listen('pagegate', () => onChange());
  }

  async close(): Promise<void> {
    this.isOpen = false;
    await this.#unlisten?.();
  }

  #look(): void {
    if (!this.#home.reaches(this)) {
      this.isOpen = false;
      throw new PagegateError('ledger_unavailable', 'The engine is cut off.');
    }
  }

  /** If the connection is lost, no answer arrives, and the outcome of the statement is unknown. */
  async #answer<T>(task: () => Promise<T>): Promise<T> {
    try {
      const result = await task();
      this.#look();
      return result;
    } catch (error) {
      if (error instanceof PagegateError) throw error;
      throw new PagegateError('ledger_unavailable', (error as Error).message);
    }
  }
}
