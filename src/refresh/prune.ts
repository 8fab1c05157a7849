/** Removes what is no longer needed: old generations beyond the number to keep. The served one always stays. */
import { rename, rm } from 'node:fs/promises';
import { buildingDirectory, listGenerations } from './store.ts';

/**
 * Removes the oldest generations so that `keep` remain, the served one among them; the caller holds the store's lock.
 * A server that still has one mapped keeps reading it: a file lives until its last reader is done. Returns their numbers.
 */
export async function pruneGenerations(store: string, keep: number): Promise<number[]> {
  const all = listGenerations(store);
  const others = all.filter((one) => !one.current).map((one) => one.generation);
  const keepOthers = Math.max(0, keep - (others.length < all.length ? 1 : 0));
  const surplus = others.slice(0, Math.max(0, others.length - keepOthers));
  for (const generation of surplus) {
    const doomed = buildingDirectory(store, generation);
    await rm(doomed, { recursive: true, force: true });
    // First it loses its number, so that a half-removed generation is never taken for a complete one.
    await rename(all.find((one) => one.generation === generation)!.directory, doomed);
    await rm(doomed, { recursive: true, force: true });
  }
  return surplus;
}
