/** Assigns the numbers of generations. No number is used twice, even if its generation was removed, because clients cache by them. */
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';
import { replaceDurable } from '../platform/durable-files.ts';
import { readSmallFileIfAny } from '../platform/small-file.ts';
import { GENERATION_MAX, GENERATION_NAME, type Generation, STORE_FILE } from './store.ts';
import { readWithdrawn } from './withdrawn-drops.ts';

const FILE_MAX_BYTES = 64;
const fileOf = (store: string): string => join(store, 'last-number');

/**
 * Reads the highest number that was assigned in this store; 0 if there is no record of it.
 *
 * @throws PagegateError store_damaged if the file holds something else, store_unavailable if it cannot be read
 */
function readLastNumber(store: string): number {
  const file = fileOf(store);
  const bytes = readSmallFileIfAny(file, { ...STORE_FILE, maxBytes: FILE_MAX_BYTES });
  if (bytes === undefined) return 0;
  const text = bytes.toString('latin1').trim();
  if (GENERATION_NAME.test(text)) return Number(text);
  const what = `${file}: expected the highest number that a generation has had, 1 to ${GENERATION_MAX}; write it there.`;
  throw new PagegateError('store_damaged', what, { path: file });
}

/**
 * Returns the number of the next generation.
 *
 * @throws PagegateError store_damaged if a record of assigned numbers is damaged or no number is left, store_unavailable
 */
export function nextNumber(store: string, generations: readonly Generation[]): number {
  const known = [...generations, ...readWithdrawn(store)].map(({ generation }) => generation);
  const next = 1 + Math.max(readLastNumber(store), 0, ...known);
  if (next <= GENERATION_MAX) return next;
  throw new PagegateError('store_damaged', `${store}: no generation's number is left after ${GENERATION_MAX}.`);
}

/** Records a number as assigned. Call it before a generation gets the number. */
export function noteNumber(store: string, generation: number): void {
  replaceDurable(fileOf(store), `${generation}\n`, 0o644);
}
