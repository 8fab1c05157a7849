/** Checks a delivered drop before anything is made of it: its manifest, read once, the signature over it, and its parts. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { checkParts, type Manifest, parseManifest } from '../builder/manifest.ts';
import { readPart } from '../builder/part-reader.ts';
import { PagegateError } from '../errors.ts';
import { SIGNATURE_FILE_MAX_BYTES, type TrustedKey, verifySignature } from './signature.ts';
import { MANIFEST_FILE, SIGNATURE_FILE } from './store.ts';

const MANIFEST_MAX_BYTES = 8 * 2 ** 20;

/** A drop whose manifest can be believed. */
export interface CheckedDrop {
  readonly manifest: Manifest;
  readonly manifestBytes: Buffer;
  readonly manifestSha256: string;
  readonly signature: Buffer | undefined;
  /** Name of the trusted key that signed it; null where it was accepted unsigned. */
  readonly signedBy: string | null;
}

export interface DropCheckOptions {
  readonly drop: string;
  readonly trustedKeys: readonly TrustedKey[];
  /** Accepts a drop without a signature. One that is there must fit all the same, unless no key is trusted at all. */
  readonly unsigned?: boolean;
}

/** Reads a small file of a drop whole; refuses links, devices and what is larger than the limit. */
async function readSmallFile(drop: string, name: string, sizeMaxBytes: number): Promise<Buffer | undefined> {
  const path = join(drop, name);
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code === 'ELOOP') throw new PagegateError('drop_file_kind', `${path} is a link.`, { file: name });
    throw new PagegateError('manifest_missing', `${path} cannot be read (${code}).`, { file: name }, { cause: error });
  });
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new PagegateError('drop_file_kind', `${path} is not a regular file.`, { file: name });
    if (stats.size <= sizeMaxBytes) return await handle.readFile();
    const what = `${path} has ${stats.size} bytes, allowed are ${sizeMaxBytes}.`;
    throw new PagegateError('drop_too_large', what, { file: name });
  } finally {
    await handle.close();
  }
}

/** The bytes of a drop's signature file; undefined where it has none. */
export const readSignatureFile = (drop: string): Promise<Buffer | undefined> =>
  readSmallFile(drop, SIGNATURE_FILE, SIGNATURE_FILE_MAX_BYTES);

/**
 * Reads the manifest once (every later step believes these bytes and no others), checks the signature over them, then names,
 * kinds and sizes of the parts. What the parts hold is checked by whoever reads them.
 */
export async function checkDrop(options: DropCheckOptions): Promise<CheckedDrop> {
  const { drop, trustedKeys, unsigned } = options;
  const manifestBytes = await readSmallFile(drop, MANIFEST_FILE, MANIFEST_MAX_BYTES);
  if (manifestBytes === undefined)
    throw new PagegateError('manifest_missing', `Looked for ${join(drop, MANIFEST_FILE)}.`);
  const signature = await readSignatureFile(drop);
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

/** Reads every part to its end: its checksum, and that it unpacks within its cap. Throws at the first that is wrong. */
export async function checkPartContents(
  drop: string,
  manifest: Manifest,
  options: { readonly signal?: AbortSignal | undefined; readonly onPart?: (name: string) => void } = {},
): Promise<PartReport[]> {
  const reports: PartReport[] = [];
  for (const part of manifest.files) {
    options.onPart?.(part.name);
    let unpackedSizeBytes = 0;
    for await (const chunk of readPart(drop, part)) {
      options.signal?.throwIfAborted();
      unpackedSizeBytes += chunk.length;
    }
    reports.push({ name: part.name, sizeBytes: part.bytes, unpackedSizeBytes });
  }
  return reports;
}
