/** Parses numbers on the command line: decimal digits only. */
import { InvalidArgumentError } from 'commander';
import { LIMITS } from '../../limits.ts';

/** Parses a whole number from 0. @throws InvalidArgumentError */
export function parseWhole(text: string): number {
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at most 15 digits.');
}

/** Parses a count, from 1. @throws InvalidArgumentError */
export function parsePositive(text: string): number {
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number from 1, of at most 15 digits.');
}

/** Parses the number of a generation, from 1. @throws InvalidArgumentError */
export function parseGeneration(text: string): number {
  const generation = parsePositive(text);
  if (generation > LIMITS.generationNumber.value)
    throw new InvalidArgumentError(`It must be at most ${LIMITS.generationNumber.value}.`);
  return generation;
}

/** The bounds of a number of threads, for the help. */
export const THREADS = `at most ${LIMITS.workers.value}; with 0 the main thread does the work`;

/** Parses a number of threads besides the main one; with 0 the main thread does the work. @throws InvalidArgumentError */
export function parseThreads(text: string): number {
  const count = parseWhole(text);
  if (count > LIMITS.workers.value) throw new InvalidArgumentError(`It must be at most ${LIMITS.workers.value}.`);
  return count;
}
