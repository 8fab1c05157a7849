/** The ledger as the console uses it: one connection for looking, and one for each change, under the name of who makes it. */
import type { Config } from '../config/config.ts';
import { ledgerLocation, statePaths } from '../config/paths.ts';
import { PagegateError } from '../errors.ts';
import type { Ledger, LedgerOptions } from '../ledger/ledger.ts';
import { openLedger } from '../ledger/open.ts';
import { loadCatalog, type Plan } from '../ledger/plans.ts';

const READER = 'console';

type ChangeOptions = Partial<Pick<LedgerOptions, 'actingKeyId' | 'expectedState'>> & { readonly create?: boolean };

/** Opens the ledger for pages and for changes. */
export class Accounts {
  readonly #config: Config;
  #reader: Promise<Ledger> | undefined;

  /** @param config names the ledger; nothing is opened yet */
  constructor(config: Config) {
    this.#config = config;
  }

  /** @throws PagegateError bad_plan_catalogue */
  plans(): readonly Plan[] {
    return loadCatalog(this.#config.state_dir);
  }

  /** Looks at the ledger. @throws PagegateError no_ledger, ledger_unavailable, and what the task throws */
  async read<T>(task: (ledger: Ledger) => Promise<T>): Promise<T> {
    this.#reader ??= this.#openReader();
    try {
      return await task(await this.#reader);
    } catch (error) {
      // The file may have been replaced; the next look opens it again.
      if (error instanceof PagegateError && (error.code === 'ledger_unavailable' || error.code === 'no_ledger'))
        await this.close();
      throw error;
    }
  }

  /** The same; undefined where there is no ledger yet. */
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
   * @param by.create makes the ledger where there is none
   * @param by.actingKeyId the API key that signed in; the change is refused where it is about to end
   * @param by.expectedState what the form was made for; the change is refused where the account was changed since
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

  /** One that could not be opened is opened anew with the next look. */
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
