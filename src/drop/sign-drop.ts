/** The vendor's side: the signature over the manifest of a finished drop. */
import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';
import { parseEd25519Key } from '../platform/ed25519.ts';
import { readSignatureFile } from './check-drop.ts';
import { SIGNATURE_FILE, writeDropFile } from './drop-files.ts';
import { signatureFileProblem, signManifest } from './signature.ts';

/**
 * Reads an Ed25519 private key (PEM, PKCS #8).
 *
 * @throws PagegateError signing_key_invalid; its message never holds a part of the key
 */
export function readSigningKey(path: string, pem: string): KeyObject {
  try {
    return parseEd25519Key(pem, 'private');
  } catch (error) {
    throw new PagegateError('signing_key_invalid', `${path}: ${(error as Error).message}.`, { path });
  }
}

/**
 * Signs the manifest bytes that were checked and writes `manifest.json.sig`; with `add`, beside the signatures that are
 * already there. Returns the file's path.
 *
 * @throws PagegateError drop_signature_file where nobody could read the result, as the file that is there is no signature file or is full;
 *   it stays as it is
 * @throws PagegateError drop_not_written
 */
export function writeSignature(drop: string, manifestBytes: Uint8Array, key: KeyObject, add: boolean): string {
  const line = signManifest(manifestBytes, key).trimEnd();
  const existing = add ? (readSignatureFile(drop)?.toString('latin1') ?? '') : '';
  const kept = existing.split('\n').filter((one) => one !== '' && one !== line);
  const path = join(drop, SIGNATURE_FILE);
  const text = [...kept, line, ''].join('\n');
  const problem = signatureFileProblem(text);
  if (problem !== undefined) throw new PagegateError('drop_signature_file', `${path}: ${problem}.`, { path });
  return writeDropFile(drop, SIGNATURE_FILE, text);
}
