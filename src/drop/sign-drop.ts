/** The vendor's side: the signature over the manifest of a finished drop. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { replaceDurable } from '../platform/durable-files.ts';
import { readSignatureFile } from './check-drop.ts';
import { SIGNATURE_FILE } from './drop-files.ts';
import { signManifest } from './signature.ts';

/**
 * Reads an Ed25519 private key (PEM, PKCS #8).
 *
 * @throws PagegateError signing_key_invalid; its message never holds a part of the key
 */
export function readPrivateKey(path: string, pem: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    throw new PagegateError('signing_key_invalid', `${path} cannot be read.`, { path });
  }
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw new PagegateError('signing_key_invalid', `${path} is of type ${key.asymmetricKeyType}.`, { path });
}

/**
 * Signs the manifest bytes that were checked and writes `manifest.json.sig`; with `add`, beside the signatures that are
 * already there. Returns the file's path.
 *
 * @throws PagegateError drop_not_written
 */
export function writeSignature(drop: string, manifestBytes: Uint8Array, key: KeyObject, add: boolean): string {
  const line = signManifest(manifestBytes, key).trimEnd();
  const existing = add ? (readSignatureFile(drop)?.toString('latin1') ?? '') : '';
  const kept = existing.split('\n').filter((one) => one !== '' && one !== line);
  const path = join(drop, SIGNATURE_FILE);
  try {
    replaceDurable(path, [...kept, line, ''].join('\n'), 0o644);
  } catch (error) {
    throw fromSystem('drop_not_written', path, error);
  }
  return path;
}
