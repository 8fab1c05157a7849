/** The folder that a generated drop goes into. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../src/platform/folders.ts';

/** What the manifest of every generated drop says. */
export const DATASET_ID = 'pagegate-made-up';

const MANIFEST = 'manifest.json';
const PART = /^[A-Za-z0-9][A-Za-z0-9._-]*\.ndjson(?:\.gz|\.zst)?$/;

/**
 * Makes the folder, and clears it for parts of these names: a drop that was generated there before goes, its manifest first. Throws where
 * the folder cannot be made, or holds the manifest or parts of something else; then nothing is changed.
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

/** Names of the parts of a drop that was generated. Throws where it was not. */
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
