/** Checks a delivered drop before it is used: the signature over its manifest, the manifest, and the parts. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { readDropFile, readManifestBytes, SIGNATURE_FILE } from './drop-files.ts';
import { LineCounter } from './line-counter.ts';
import { checkParts, type Manifest, parseManifest } from './manifest.ts';
import { readPart } from './part-reader.ts';
import { type TrustedKey, verifySignature } from './signature.ts';

/** A drop whose manifest can be trusted. */
export interface CheckedDrop {
  readonly manifest: Manifest;
  readonly manifestBytes: Buffer;
  readonly manifestSha256: string;
  readonly signature: Buffer | undefined;
  /** Name of the trusted key that signed it; null if it was accepted unsigned. */
  readonly signedBy: string | null;
}

export interface DropCheckOptions {
  readonly drop: string;
  readonly trustedKeys: readonly TrustedKey[];
  /** Accepts a drop without a signature. A signature that exists must still be valid, unless there are no trusted keys. */
  readonly unsigned?: boolean;
}

/** Returns the bytes of a drop's signature file; undefined if it has none. */
export const readSignatureFile = (drop: string): Buffer | undefined =>
  readDropFile(drop, SIGNATURE_FILE, LIMITS.signatureFileBytes.value);

/**
 * Reads the manifest once, and every later step uses only these bytes. Checks the signature over them, then names, kinds and sizes of the
 * parts. Does not check the contents of the parts: their reader does.
 *
 * @throws PagegateError drop_unsigned, drop_signature_invalid, no_trusted_keys, and whatever `readManifestBytes`, `parseManifest` and
 *   `checkParts` throw
 */
export function checkDrop(options: DropCheckOptions): CheckedDrop {
  const { drop, trustedKeys, unsigned } = options;
  const manifestBytes = readManifestBytes(drop);
  const signature = readSignatureFile(drop);
  let signedBy: string | null = null;
  if (signature === undefined) {
    if (unsigned !== true) throw new PagegateError('drop_unsigned', `Looked for ${join(drop, SIGNATURE_FILE)}.`);
  } else if (trustedKeys.length > 0 || unsigned !== true) {
    signedBy = verifySignature(manifestBytes, signature.toString('latin1'), trustedKeys);
  }
  const manifest = parseManifest(manifestBytes);
  checkParts(drop, manifest);
  const manifestSha256 = createHash('sha256').update(manifestBytes).digest('hex');
  return { manifest, manifestBytes, manifestSha256, signature, signedBy };
}

export interface PartReport {
  readonly name: string;
  readonly sizeBytes: number;
  readonly unpackedSizeBytes: number;
}

/**
 * Reads every part completely. Checks its checksum, its unpacked size and its number of lines.
 *
 * @throws PagegateError drop_part_records and whatever `readPart` throws, for the first part that is wrong
 */
export async function checkPartContents(
  drop: string,
  manifest: Manifest,
  options: { readonly signal?: AbortSignal | undefined; readonly onPart?: (name: string) => void } = {},
): Promise<PartReport[]> {
  const reports: PartReport[] = [];
  for (const part of manifest.files) {
    options.onPart?.(part.name);
    let unpackedSizeBytes = 0;
    const lines = new LineCounter(part);
    for await (const chunk of readPart(drop, part)) {
      options.signal?.throwIfAborted();
      unpackedSizeBytes += chunk.length;
      lines.push(chunk);
    }
    lines.end();
    reports.push({ name: part.name, sizeBytes: part.bytes, unpackedSizeBytes });
  }
  return reports;
}
