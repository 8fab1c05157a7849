/** Numbers of generations. None is used twice, even if its generation was removed: clients cache by them. */
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';
import { replaceDurable } from '../platform/durable-files.ts';
import { readSmallFileIfAny } from '../platform/small-file.ts';
import { GENERATION_MAX, GENERATION_NAME, type Generation, STORE_FILE } from './store.ts';
import { readWithdrawn } from './withdrawn-drops.ts';

const FILE_MAX_BYTES = 64;
const fileOf = (store: string): string => join(store, 'last-number');

/**
 * The highest number that was given here; 0 where nothing says so.
 *
 * @throws PagegateError store_damaged where the file holds something else, store_unavailable where it cannot be read
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
 * The number of the next generation.
 *
 * @throws PagegateError store_damaged where what was given cannot be read, or no number is left
 */
export function nextNumber(store: string, generations: readonly Generation[]): number {
  const given = [...generations, ...readWithdrawn(store)].map((one) => one.generation);
  const next = 1 + Math.max(readLastNumber(store), 0, ...given);
  if (next <= GENERATION_MAX) return next;
  throw new PagegateError('store_damaged', `${store}: no generation's number is left after ${GENERATION_MAX}.`);
}

/** Notes a number as given; to be called before a generation gets it. */
export function noteNumber(store: string, generation: number): void {
  replaceDurable(fileOf(store), `${generation}\n`, 0o644);
}
