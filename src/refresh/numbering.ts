/** Numbers of generations: none is given twice, also when the generation that had it was removed. Clients cache by them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceDurable } from '../platform/durable.ts';
import { GENERATION_NAME, type Generation } from './store.ts';
import { readWithdrawn } from './withdrawn.ts';

const fileOf = (store: string): string => join(store, 'last-number');

/** The highest number that was given here; 0 where the file is missing or unreadable. */
function readLastNumber(store: string): number {
  try {
    const text = readFileSync(fileOf(store), 'latin1').trim();
    return GENERATION_NAME.test(text) ? Number(text) : 0;
  } catch {
    return 0;
  }
}

/** The number of the next generation. */
export function nextNumber(store: string, generations: readonly Generation[]): number {
  const given = [...generations, ...readWithdrawn(store)].map((one) => one.generation);
  return 1 + Math.max(readLastNumber(store), 0, ...given);
}

/** Notes a number as given; to be called before a generation gets it. */
export function noteNumber(store: string, generation: number): void {
  replaceDurable(fileOf(store), `${generation}\n`, 0o644);
}
