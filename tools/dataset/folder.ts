/** The output folder of a generated drop. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../src/platform/folders.ts';

/** The dataset name in the manifest of every generated drop. */
export const DATASET_ID = 'pagegate-made-up';

const MANIFEST = 'manifest.json';
const PART = /^[A-Za-z0-9][A-Za-z0-9._-]*\.ndjson(?:\.gz|\.zst)?$/;

/**
 * Creates the folder for parts with these names. Removes a drop that was generated there before, its manifest first.
 *
 * @throws Error if the folder cannot be created, or holds another manifest or other parts. Nothing is changed then.
 */
export function prepareFolder(folder: string, names: readonly string[]): void {
  makeFolder(folder);
  const there = readdirSync(folder);
  const old = there.includes(MANIFEST) ? generatedParts(folder) : [];
  const known = new Set([...names, ...old]);
  const stranger = there.find((name) => PART.test(name) && !known.has(name));
  if (stranger !== undefined) {
    throw new Error(`${folder} holds ${stranger}, which is no part of this drop: remove it, or choose another folder`);
  }
  for (const name of [MANIFEST, `${MANIFEST}.sig`, ...old]) rmSync(join(folder, name), { force: true });
}

/** Returns the names of the parts of a generated drop. @throws Error if the drop was not generated */
function generatedParts(folder: string): string[] {
  const refusal = `${folder} holds a drop that was not generated: remove it, or choose another folder`;
  let manifest: { dataset?: unknown; files?: unknown };
  try {
    manifest = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
  } catch (cause) {
    throw new Error(refusal, { cause });
  }
  if (manifest?.dataset !== DATASET_ID || !Array.isArray(manifest.files)) throw new Error(refusal);
  const names = manifest.files.map((file: { name?: unknown } | null) => String(file?.name));
  return names.filter((name) => PART.test(name));
}
