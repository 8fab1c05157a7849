/** The vendor's side: checks a finished drop as a licensee will, then signs its manifest. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';
import { checkPartContent, type DropLimits, type PartEntry, readSmallFile } from './drop-files.ts';
import { replaceDurable } from './durable.ts';
import { SIGNATURE_FILE_MAX_BYTES, signManifest } from './signature.ts';
import { SIGNATURE_FILE } from './store.ts';

/** Reads an Ed25519 private key (PEM, PKCS #8). Throws `signing_key_invalid`; the message never holds a part of the key. */
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

export interface PartReport {
  readonly name: string;
  readonly sizeBytes: number;
  readonly unpackedSizeBytes: number;
}

/** Reads every part to its end: checksums, and that each unpacks within its cap. Throws at the first that is wrong. */
export async function checkAllParts(
  drop: string,
  parts: readonly PartEntry[],
  options: {
    readonly signal?: AbortSignal | undefined;
    readonly limits?: DropLimits;
    readonly onPart?: (name: string) => void;
  } = {},
): Promise<PartReport[]> {
  const reports: PartReport[] = [];
  for (const part of parts) {
    options.onPart?.(part.name);
    const unpackedSizeBytes = await checkPartContent(drop, part, options);
    reports.push({ name: part.name, sizeBytes: part.bytes, unpackedSizeBytes });
  }
  return reports;
}

/**
 * Signs the manifest bytes that were checked and writes `manifest.json.sig`; with `add`, beside the signatures that are
 * already there. Returns the file's path.
 */
export async function writeSignature(
  drop: string,
  manifest: Uint8Array,
  key: KeyObject,
  add: boolean,
): Promise<string> {
  const path = join(drop, SIGNATURE_FILE);
  const line = signManifest(manifest, key);
  const existing = add ? (await readSmallFile(path, SIGNATURE_FILE, SIGNATURE_FILE_MAX_BYTES)).toString('latin1') : '';
  const kept = existing.split('\n').filter((one) => one !== '' && `${one}\n` !== line);
  await replaceDurable(path, [...kept, line.trimEnd(), ''].join('\n'));
  return path;
}
