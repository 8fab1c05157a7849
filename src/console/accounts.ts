/** The console's access to the ledger: one connection for reading, and one for each change, under the name of its actor. */
import type { Config } from '../config/config.ts';
import { ledgerLocation, statePaths } from '../config/paths.ts';
import { PagegateError } from '../errors.ts';
import type { Ledger, LedgerOptions } from '../ledger/ledger.ts';
import { openLedger } from '../ledger/open.ts';
import { loadCatalog, type Plan } from '../ledger/plans.ts';

const READER = 'console';

type ChangeOptions = Partial<Pick<LedgerOptions, 'actingKeyId' | 'expectedState'>> & { readonly create?: boolean };

/** Opens the ledger for reading and for changes. */
export class Accounts {
  readonly #config: Config;
  #reader: Promise<Ledger> | undefined;

  /** @param config locates the ledger; nothing is opened yet */
  constructor(config: Config) {
    this.#config = config;
  }

  /** @throws PagegateError bad_plan_catalogue */
  plans(): readonly Plan[] {
    return loadCatalog(this.#config.state_dir);
  }

  /** Reads from the ledger. @throws PagegateError no_ledger, ledger_unavailable, and what the task throws */
  async read<T>(task: (ledger: Ledger) => Promise<T>): Promise<T> {
    this.#reader ??= this.#openReader();
    try {
      return await task(await this.#reader);
    } catch (error) {
      // The file may have been replaced; the next read opens it again.
      if (error instanceof PagegateError && (error.code === 'ledger_unavailable' || error.code === 'no_ledger'))
        await this.close();
      throw error;
    }
  }

  /** The same; undefined if there is no ledger yet. */
  async readIfAny<T>(task: (ledger: Ledger) => Promise<T>): Promise<T | undefined> {
    try {
      return await this.read(task);
    } catch (error) {
      if (error instanceof PagegateError && error.code === 'no_ledger') return undefined;
      throw error;
    }
  }

  /**
   * Changes the ledger.
   *
   * @param actor who is named in the audit table
   * @param by.create creates the ledger if there is none
   * @param by.actingKeyId the API key of the session; the change is refused if this key is about to end
   * @param by.expectedState the state for which the form was made; the change is refused if the account was changed since
   * @throws PagegateError no_ledger, ledger_unavailable, and what the task throws
   */
  async change<T>(actor: string, task: (ledger: Ledger) => Promise<T>, by: ChangeOptions = {}): Promise<T> {
    const ledger = await this.#open(actor, by);
    try {
      return await task(ledger);
    } finally {
      await ledger.close();
    }
  }

  async close(): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    await (await reader?.catch(() => undefined))?.close();
  }

  /** If opening fails, the next read tries again. */
  #openReader(): Promise<Ledger> {
    const reader = this.#open(READER, {});
    reader.catch(() => {
      this.#reader = undefined;
    });
    return reader;
  }

  #open(actor: string, by: ChangeOptions): Promise<Ledger> {
    const { ledgerKeyFile: keyFile } = statePaths(this.#config);
    return openLedger({
      ...ledgerLocation(this.#config),
      keyFile,
      actor,
      plans: () => this.plans(),
      create: false,
      ...by,
    });
  }
}
