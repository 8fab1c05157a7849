/** Numbers on the command line: decimal digits and nothing else. */
import { InvalidArgumentError } from 'commander';
import { WORKERS_MAX } from '../../platform/threads.ts';

/** Reads a number from 0. */
export function parseWhole(text: string): number {
  if (/^[0-9]{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at most 9 digits.');
}

/** Reads a count or a generation number, from 1. */
export function parsePositive(text: string): number {
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number from 1, of at most 15 digits.');
}

/** Reads a number of threads beside the main one; with 0 that one does the work. */
export function parseThreads(text: string): number {
  const count = parseWhole(text);
  if (count > WORKERS_MAX) throw new InvalidArgumentError(`At most ${WORKERS_MAX} are possible.`);
  return count;
}
