/** The vendor's side: signs the manifest of a finished drop. */
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
 * @throws PagegateError signing_key_invalid. Its message never contains any part of the key
 */
export function readSigningKey(path: string, pem: string): KeyObject {
  try {
    return parseEd25519Key(pem, 'private');
  } catch (error) {
    throw new PagegateError('signing_key_invalid', `${path}: ${(error as Error).message}.`, { path });
  }
}

/**
 * Signs the bytes of a checked manifest and writes `manifest.json.sig`. With `add`, it keeps the existing signatures. Returns the path of the
 * file.
 *
 * @throws PagegateError drop_signature_file if the result would be invalid, because the existing file is not a signature file or is full.
 *   The file is then unchanged
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
