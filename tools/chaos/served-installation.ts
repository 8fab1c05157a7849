/** An installation served by the real program, with access to its ledger, for runs that break things on purpose. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { freePort } from '../free-port.ts';
import { activate, createInstallation, type Installation } from '../installation.ts';
import { askOnce } from './counting-client.ts';
import { childrenOf, commandOf, leaveNothing } from './leftovers.ts';
import { keepStarting, ServerProcess, START_DEADLINE_MS } from './server-process.ts';

const PAGE_TYPES = ['login', 'pricing', 'docs', 'contact', 'about', 'careers', 'blog'];

export interface ServedOptions {
  readonly workers: number;
  /** Number of records in the index; 1 by default. */
  readonly records?: number;
}

export class ServedInstallation {
  readonly ledger: Ledger;
  port = 0;
  readonly #place: Installation;
  readonly #options: ServedOptions;
  #server: ServerProcess | undefined;

  private constructor(place: Installation, ledger: Ledger, options: ServedOptions) {
    this.#place = place;
    this.#options = options;
    this.ledger = ledger;
  }

  /** Creates an installation with an index and no accounts, without starting a server. */
  static async create(options: ServedOptions): Promise<ServedInstallation> {
    const place = createInstallation({ config: { burst: { exempt: ['127.0.0.1'] } } });
    leaveNothing(place.root);
    await activate(place, {
      revision: 1,
      domains: options.records ?? 1,
      pages: (domain) => Object.fromEntries(PAGE_TYPES.map((type) => [type, `https://${domain}/${type}`])),
    });
    const [file, keyFile] = [join(place.state, 'ledger/ledger.sqlite'), join(place.state, 'keys/ledger.key')];
    return new ServedInstallation(place, await openLedger({ file, keyFile, actor: 'chaos' }), options);
  }

  /** The installation's folder. A run may put other files there, too. */
  get root(): string {
    return this.#place.root;
  }

  get ledgerFile(): string {
    return join(this.#place.state, 'ledger/ledger.sqlite');
  }

  get configFile(): string {
    return this.#place.configFile;
  }

  /** Creates an account with a limit and returns its key. */
  async createAccount(name: string, limit: number): Promise<string> {
    await this.ledger.createAccount(name);
    return (await this.ledger.subscribe(name, 'custom', `PAY-${name}`, limit)).issued!.key;
  }

  /** The lookups charged so far, as an administrator sees them. */
  async used(name: string): Promise<number> {
    return (await this.ledger.view(name)).quota.quota_used;
  }

  get primary(): number {
    return this.#server?.pid ?? 0;
  }

  get ledgerWriter(): number {
    return childrenOf(this.primary).find((pid) => commandOf(pid).includes('writer/main')) ?? 0;
  }

  get workers(): number[] {
    return childrenOf(this.primary).filter((pid) => commandOf(pid).includes('worker-process'));
  }

  async start(): Promise<void> {
    this.port = this.port === 0 ? await freePort() : this.port;
    const { workers } = this.#options;
    await keepStarting(() => {
      this.#server = new ServerProcess(this.configFile, { port: this.port, workers });
      return this.#server;
    });
  }

  /** Waits until all workers and the ledger writer run and lookups are served again. */
  async recovered(key: string): Promise<void> {
    const deadline = Date.now() + START_DEADLINE_MS;
    for (;;) {
      if (this.ledgerWriter !== 0 && this.workers.length === this.#options.workers) {
        const answers = await Promise.all(Array.from({ length: 4 }, () => askOnce(this.port, key).catch(() => 0)));
        if (answers.every((status) => status === 200)) return;
      }
      if (Date.now() > deadline) throw new Error(`The server did not recover:\n${this.#server?.log}`);
      await sleep(20);
    }
  }

  /** Resolves when the primary process has ended. */
  async ended(): Promise<void> {
    await this.#server?.ended();
  }

  /** Stops the server. Returns a description of the problem if that failed, otherwise an empty string. */
  async stop(): Promise<string> {
    return (await this.#server?.stop()) ?? '';
  }

  async remove(): Promise<void> {
    await this.stop();
    await this.ledger.close();
    this.#place.remove();
  }
}
