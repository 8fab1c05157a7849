/** How much disk a build needs, and whether it is there. */
import { statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { withCommas } from '../../counted.ts';
import type { Manifest } from '../../drop/manifest.ts';
import { isPacked } from '../../drop/part-reader.ts';
import { PagegateError } from '../../errors.ts';

/**
 * Bytes a record takes in the temporary files and in the index. Facts are small and alike; the pages are what differs, and
 * they take a small share of their text in the drop, where sites are built like others.
 */
const RECORD_MIN_BYTES = 40;
const SHARE_OF_TEXT = 0.15;
/** What a part unpacks to for each byte as delivered, roughly. */
const UNPACKED_FACTOR = 8;
const SLACK_BYTES = 4 << 20;

/** What the parts of a drop unpack to, in bytes: of packed ones roughly. */
export function estimateTextBytes({ files }: Manifest): number {
  return files.reduce((sum, { name, bytes }) => sum + bytes * (isPacked(name) ? UNPACKED_FACTOR : 1), 0);
}

/** What a build will take, in bytes: the temporary files, and the index about the same again. About twice what ordinary data takes. */
function estimateTempBytes(manifest: Manifest): number {
  const records = manifest.files.reduce((sum, part) => sum + part.records, 0);
  return Math.ceil(SLACK_BYTES + records * RECORD_MIN_BYTES + estimateTextBytes(manifest) * SHARE_OF_TEXT);
}

/**
 * Returns an estimate of the temporary files, in bytes.
 *
 * @throws PagegateError build_no_space where a folder's file system has less free than the build needs
 */
export async function checkSpace(manifest: Manifest, tempFolder: string, outFolder: string): Promise<number> {
  const tempBytes = estimateTempBytes(manifest);
  const isSame = statSync(tempFolder).dev === statSync(outFolder).dev;
  await checkFolder(tempFolder, isSame ? 2 * tempBytes : tempBytes);
  if (!isSame) await checkFolder(outFolder, tempBytes);
  return tempBytes;
}

async function checkFolder(folder: string, neededBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes) return;
  const mb = (bytes: number): string => `${withCommas(Math.ceil(bytes / 1e6))} MB`;
  const what = `${folder} has ${mb(freeBytes)} free, the build may need ${mb(neededBytes)}.`;
  throw new PagegateError('build_no_space', what, { folder, free_bytes: freeBytes, needed_bytes: neededBytes });
}
