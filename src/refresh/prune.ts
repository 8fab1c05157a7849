/** Removes old generations beyond the number to keep. The served generation always stays. */
import { rename, rm } from 'node:fs/promises';
import { buildingDirectory, listGenerations } from './store.ts';

/**
 * Removes the oldest generations so that `keep` remain, including the served one. The caller must hold the store's lock.
 * A server that still has one mapped can keep reading it, because the file exists until its last user closes it.
 *
 * @returns the numbers of the removed generations.
 */
export async function pruneGenerations(store: string, keep: number): Promise<number[]> {
  const all = listGenerations(store);
  const others = all.filter((one) => !one.current).map((one) => one.generation);
  const keepOthers = Math.max(0, keep - (others.length < all.length ? 1 : 0));
  const surplus = others.slice(0, Math.max(0, others.length - keepOthers));
  for (const generation of surplus) {
    const unnumbered = buildingDirectory(store, generation);
    await rm(unnumbered, { recursive: true, force: true });
    // Rename it first, so that a half-removed generation is never mistaken for a complete one.
    await rename(all.find((one) => one.generation === generation)!.directory, unnumbered);
    await rm(unnumbered, { recursive: true, force: true });
  }
  return surplus;
}
