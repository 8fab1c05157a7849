/** Issues API keys and shows them again: a key is stored sealed, by an encryption key that lies elsewhere. */
import { PagegateError } from '../../errors.ts';
import { createApiKey, hashApiKey } from '../store/api-key.ts';
import { findKeyVault, type KeyVault, openKeyVault } from '../store/key-vault.ts';
import type { ClockReading, LedgerStore, Sql } from '../store/ledger-store.ts';
import type { ApiKeyRecord } from '../store/records.ts';
import { keysOf } from './account-rows.ts';

/** A key at the moment it is issued: the only time that it is returned beside `Ledger.showKey`. */
export interface IssuedKey {
  readonly key: string;
  readonly record: ApiKeyRecord;
}

/** Seals and opens the keys of one ledger store. */
export class KeyIssuer {
  readonly #store: LedgerStore;
  readonly #keyFile: string;
  #vault: KeyVault | undefined;

  /** @param keyFile the encryption key; it must lie in another directory than a ledger's file. */
  constructor(store: LedgerStore, keyFile: string) {
    this.#store = store;
    this.#keyFile = keyFile;
  }

  /**
   * Makes a key for an account.
   *
   * @param isKeyFileNew in a fleet, the nodes' encryption key is another one from now on
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

  /** A stored key in the clear. @throws PagegateError key_not_readable, bad_key_file, ledger_unavailable */
  async show(sql: Sql, record: ApiKeyRecord): Promise<IssuedKey> {
    const row = (await sql.row<{ sealed: Uint8Array; vault_id: string }>(
      'SELECT sealed, vault_id FROM api_keys WHERE id = ?',
      record.id,
    ))!;
    // A new encryption key would open nothing, and stand in the way of the one that is put back.
    const { vault, says } = this.#vaultHere();
    if (vault?.id === row.vault_id) return { key: vault.open(row.sealed, record.accountId, record.id), record };
    const what = `Key ${record.id} was sealed by ${row.vault_id}; ${says}. Put the file back that it was sealed with, or rotate the key.`;
    throw new PagegateError('key_not_readable', what, { path: this.#keyFile, expected: row.vault_id, got: vault?.id });
  }

  /** The vault, where there is one already, and in words which it is. */
  #vaultHere(): { readonly vault: KeyVault | undefined; readonly says: string } {
    const vault = this.#vault ?? findKeyVault(this.#keyFile, this.#store.name);
    return { vault, says: vault === undefined ? `there is no ${this.#keyFile}` : `${vault.file} is ${vault.id}` };
  }

  /**
   * What seals. All nodes of a fleet seal with the same: that of the newest key.
   *
   * @throws PagegateError bad_key_file where a node has another, or none; it makes none of its own then
   */
  async #sealer(sql: Sql, isNew: boolean): Promise<KeyVault> {
    if (this.#store.isFleet && !isNew) {
      const { vault, says } = this.#vaultHere();
      const newest = await sql.row<{ vault_id: string }>('SELECT vault_id FROM api_keys ORDER BY id DESC LIMIT 1');
      if (newest !== undefined && newest.vault_id !== vault?.id) {
        const what =
          `The fleet’s API keys are sealed by ${newest.vault_id}; ${says}. Copy the file of another node here. ` +
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
