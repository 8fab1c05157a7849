/** Encrypts stored API keys: AES-256-GCM with a key file that is not in the directory of the database. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { linkSync, rmSync, type Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fromSystem, PagegateError } from '../../errors.ts';
import { syncPath, writeDurable } from '../../platform/durable-files.ts';
import { makeFolder } from '../../platform/folders.ts';
import { readSmallFileIfAny } from '../../platform/small-file.ts';

const NONCE_SIZE_BYTES = 12;
const TAG_SIZE_BYTES = 16;
const CREDENTIAL_NAME = 'pagegate-ledger-key';
/** More than the 64 digits: an editor may add white space. */
const KEY_FILE_MAX_BYTES = 4096;

/** Seals and unseals API keys. `id` identifies the encryption key without revealing it. */
export interface KeyVault {
  readonly id: string;
  /** The file that holds the encryption key. */
  readonly file: string;
  seal(key: string, accountId: number, keyId: number): Uint8Array;
  /** @throws PagegateError key_not_readable if another encryption key sealed it, or it was altered or moved. */
  open(sealed: Uint8Array, accountId: number, keyId: number): string;
}

/** The associated data that binds a sealed key to its account and number. */
const boundTo = (accountId: number, keyId: number): Buffer => Buffer.from(`pagegate-api-key/1:${accountId}:${keyId}`);

function createVault(file: string, secret: Uint8Array): KeyVault {
  return {
    file,
    id: createHash('sha256').update('pagegate-vault-id').update(secret).digest('hex').slice(0, 16),
    seal(key, accountId, keyId) {
      const nonce = randomBytes(NONCE_SIZE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(boundTo(accountId, keyId));
      return Buffer.concat([nonce, cipher.update(key, 'latin1'), cipher.final(), cipher.getAuthTag()]);
    },
    open(sealed, accountId, keyId) {
      try {
        const tagAt = sealed.length - TAG_SIZE_BYTES;
        const cipher = createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, NONCE_SIZE_BYTES), {
          authTagLength: 16,
        });
        cipher.setAAD(boundTo(accountId, keyId)).setAuthTag(sealed.subarray(tagAt));
        return cipher.update(sealed.subarray(NONCE_SIZE_BYTES, tagAt), undefined, 'latin1') + cipher.final('latin1');
      } catch (cause) {
        throw new PagegateError('key_not_readable', '', { key_id: keyId }, { cause });
      }
    },
  };
}

/** Reads the secret in a file; undefined if there is no file. */
function readSecret(file: string, inspect: (stats: Stats) => void = () => {}): Uint8Array | undefined {
  const bytes = readSmallFileIfAny(file, { code: 'bad_key_file', maxBytes: KEY_FILE_MAX_BYTES, inspect });
  if (bytes === undefined) return undefined;
  const text = bytes.toString('latin1').trim();
  if (!/^[0-9a-f]{64}$/.test(text)) {
    throw new PagegateError('bad_key_file', `${file}: expected 64 hexadecimal digits and nothing else.`);
  }
  return Buffer.from(text, 'hex');
}

function readKeyFile(file: string): Uint8Array | undefined {
  return readSecret(file, ({ mode }) => {
    if ((mode & 0o077) === 0) return;
    const got = (mode & 0o777).toString(8).padStart(4, '0');
    throw new PagegateError('bad_key_file', `${file}: expected mode 0600 or stricter, got ${got}; run chmod 600.`);
  });
}

/** Writes a new secret under a temporary name and links it into place, so that two first runs at the same time use the same one. */
function createSecretFile(file: string): void {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    makeFolder(dirname(file), 0o700);
    writeDurable(temporary, `${randomBytes(32).toString('hex')}\n`, 0o600);
    linkSync(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fromSystem('bad_key_file', file, error);
  } finally {
    rmSync(temporary, { force: true });
  }
  // What it seals is on the disk soon. The name of this file must survive a power failure, too.
  syncPath(dirname(file));
}

/**
 * Returns the vault if it exists already; creates nothing.
 *
 * @param ledgerFile the ledger whose keys are sealed; the key file must not be in its directory.
 * @throws PagegateError bad_key_file if the file is readable by others, or has other content.
 */
export function findKeyVault(keyFile: string, ledgerFile?: string): KeyVault | undefined {
  if (ledgerFile !== undefined && dirname(resolve(keyFile)) === dirname(resolve(ledgerFile)))
    throw new PagegateError('bad_key_file', `${keyFile} lies beside the ledger; one backup would carry both.`);
  const credentials = process.env['CREDENTIALS_DIRECTORY'];
  const credentialFile = credentials === undefined ? undefined : join(credentials, CREDENTIAL_NAME);
  const credential = credentialFile === undefined ? undefined : readSecret(credentialFile);
  if (credentialFile !== undefined && credential !== undefined) return createVault(credentialFile, credential);
  const secret = readKeyFile(keyFile);
  return secret === undefined ? undefined : createVault(keyFile, secret);
}

/**
 * Opens the vault with the systemd credential if there is one, otherwise with the key file, which is created on first use.
 *
 * @param ledgerFile the ledger whose keys are sealed; the key file must not be in its directory.
 * @throws PagegateError bad_key_file if the file is readable by others, has other content, or cannot be created.
 */
export function openKeyVault(keyFile: string, ledgerFile?: string): KeyVault {
  const found = findKeyVault(keyFile, ledgerFile);
  if (found !== undefined) return found;
  createSecretFile(keyFile);
  const made = readKeyFile(keyFile);
  if (made !== undefined) return createVault(keyFile, made);
  throw new PagegateError('bad_key_file', `${keyFile} cannot be made: it is a link to nothing.`, { path: keyFile });
}
