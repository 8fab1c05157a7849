/** Issues API keys and decrypts stored ones. A key is stored sealed; the encryption key is kept elsewhere. */
import { PagegateError } from '../../errors.ts';
import { createApiKey, hashApiKey } from '../store/api-key.ts';
import { findKeyVault, type KeyVault, openKeyVault } from '../store/key-vault.ts';
import type { ClockReading, LedgerStore, Sql } from '../store/ledger-store.ts';
import type { ApiKeyRecord } from '../store/records.ts';
import { keysOf } from './account-rows.ts';

/** An API key in the clear. Only issuing it and `Ledger.showKey` return one. */
export interface IssuedKey {
  readonly key: string;
  readonly record: ApiKeyRecord;
}

/** Seals and unseals the API keys of one ledger store. */
export class KeyIssuer {
  readonly #store: LedgerStore;
  readonly #keyFile: string;
  #vault: KeyVault | undefined;

  /** @param keyFile the file of the encryption key. It must not be in the directory of the ledger's file. */
  constructor(store: LedgerStore, keyFile: string) {
    this.#store = store;
    this.#keyFile = keyFile;
  }

  /**
   * Creates and stores a key for an account.
   *
   * @param isKeyFileNew the nodes of a fleet use another encryption key from now on.
   * @throws PagegateError bad_key_file, ledger_unavailable
   */
  async issue(sql: Sql, accountId: number, { seconds }: ClockReading, isKeyFileNew = false): Promise<IssuedKey> {
    const key = createApiKey();
    const vault = await this.#sealer(sql, isKeyFileNew);
    const insert = 'INSERT INTO api_keys (account_id, hash, vault_id, created_at) VALUES (?, ?, ?, ?) RETURNING id';
    const { id } = (await sql.row<{ id: number }>(insert, accountId, hashApiKey(key), vault.id, seconds))!;
    await sql.run('UPDATE api_keys SET sealed = ? WHERE id = ?', vault.seal(key, accountId, id), id);
    return { key, record: (await keysOf(sql, accountId)).find((record) => record.id === id)! };
  }

  /** Decrypts a stored key. @throws PagegateError key_not_readable, bad_key_file, ledger_unavailable */
  async show(sql: Sql, record: ApiKeyRecord): Promise<IssuedKey> {
    const row = (await sql.row<{ sealed: Uint8Array; vault_id: string }>(
      'SELECT sealed, vault_id FROM api_keys WHERE id = ?',
      record.id,
    ))!;
    // Do not create an encryption key here: it could decrypt nothing, and would be in the way when the right file is put back.
    const { vault, description } = this.#existingVault();
    if (vault?.id === row.vault_id) return { key: vault.open(row.sealed, record.accountId, record.id), record };
    const what = `Key ${record.id} was sealed by ${row.vault_id}; ${description}. Put the file back that it was sealed with, or rotate the key.`;
    throw new PagegateError('key_not_readable', what, { path: this.#keyFile, expected: row.vault_id, got: vault?.id });
  }

  /** The vault, if it exists already, and a clause for messages that says which it is. */
  #existingVault(): { readonly vault: KeyVault | undefined; readonly description: string } {
    const vault = this.#vault ?? findKeyVault(this.#keyFile, this.#store.name);
    const description = vault === undefined ? `there is no ${this.#keyFile}` : `${vault.file} is ${vault.id}`;
    return { vault, description };
  }

  /**
   * Returns the vault that seals new keys. All nodes of a fleet must seal with the same encryption key: the one that sealed the newest API key.
   *
   * @throws PagegateError bad_key_file if a node has another encryption key, or none. It does not create one then.
   */
  async #sealer(sql: Sql, isNew: boolean): Promise<KeyVault> {
    if (this.#store.isFleet && !isNew) {
      const { vault, description } = this.#existingVault();
      const newest = await sql.row<{ vault_id: string }>('SELECT vault_id FROM api_keys ORDER BY id DESC LIMIT 1');
      if (newest !== undefined && newest.vault_id !== vault?.id) {
        const what =
          `The fleet’s API keys are sealed by ${newest.vault_id}; ${description}. Copy the file of another node here. ` +
          'Where it is lost on all of them, run pagegate key rotate ACCOUNT --new-ledger-key once, and copy that file to all nodes.';
        throw new PagegateError('bad_key_file', what, {
          path: this.#keyFile,
          expected: newest.vault_id,
          got: vault?.id,
        });
      }
    }
    this.#vault ??= openKeyVault(this.#keyFile, this.#store.name);
    return this.#vault;
  }
}
