/** Numbers on the command line: decimal digits and nothing else. */
import { InvalidArgumentError } from 'commander';
import { LIMITS } from '../../limits.ts';

/** Reads a number from 0. */
export function parseWhole(text: string): number {
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at most 15 digits.');
}

/** Reads a count, from 1. */
export function parsePositive(text: string): number {
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number from 1, of at most 15 digits.');
}

/** Reads the number of a generation, from 1. */
export function parseGeneration(text: string): number {
  const generation = parsePositive(text);
  if (generation > LIMITS.generationNumber.value)
    throw new InvalidArgumentError(`At most ${LIMITS.generationNumber.value} is possible.`);
  return generation;
}

/** How many threads there may be, for the help. */
export const THREADS = `at most ${LIMITS.workers.value}; with 0 the command works without any`;

/** Reads a number of threads beside the main one; with 0 that one does the work. */
export function parseThreads(text: string): number {
  const count = parseWhole(text);
  if (count > LIMITS.workers.value) throw new InvalidArgumentError(`At most ${LIMITS.workers.value} are possible.`);
  return count;
}
