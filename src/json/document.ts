/** A JSON document that somebody else wrote, read strictly: what `JSON.parse` would take in silence is refused, with its place. */
import { type ErrorCode, PagegateError } from '../errors.ts';
import { DEPTH_MAX, fieldPath, readJson } from './reader.ts';
import { hasRepeatedName } from './repeated.ts';

/** Complaints that one message holds. */
const PROBLEMS_MAX = 5;
/** A complaint quotes names and numbers; a name may be as long as the document. */
const PROBLEM_MAX_LENGTH = 500;

/**
 * The value of a JSON document in UTF-8; a byte order mark before it does not count.
 *
 * @param name what the message calls it.
 * @throws PagegateError with the given code for bytes that are not UTF-8, a text that is not JSON, a name that an object has twice, nesting
 * deeper than any document needs, and numbers that no double holds; `details.problems` has a line for each place.
 */
export function parseDocument(bytes: Uint8Array, code: ErrorCode, name: string): unknown {
  const { value, problems: found } = read(bytes);
  if (found.length === 0) return value;
  const problems = found.map(shortened);
  const more = problems.length > PROBLEMS_MAX ? ` (and ${problems.length - PROBLEMS_MAX} more)` : '';
  const what = `${name} is no sound JSON: ${problems.slice(0, PROBLEMS_MAX).join('; ')}${more}.`;
  throw new PagegateError(code, what, { source: name, problems });
}

const shortened = (problem: string): string =>
  problem.length > PROBLEM_MAX_LENGTH ? `${problem.slice(0, PROBLEM_MAX_LENGTH)}…` : problem;

interface Reading {
  readonly value?: unknown;
  /** Empty where the value can be taken. */
  readonly problems: readonly string[];
}

function read(bytes: Uint8Array): Reading {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { problems: ['it is not UTF-8 text'] };
  }
  if (text.trim() === '') return { problems: ['it is empty'] };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problems: problemsOf(text) };
  }
  const isContainer = typeof value === 'object' && value !== null;
  const isSound = isPlain(value) && !(isContainer && hasRepeatedName(text, value as object));
  return { value, problems: isSound ? [] : problemsOf(text) };
}

/** Whether it is nested no deeper than the reader goes, and its numbers are finite. */
function isPlain(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX || level.some((one) => one === Infinity || one === -Infinity)) return false;
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
  return true;
}

/** What the reader, which takes its time, finds wrong with a text that is not sound. */
function problemsOf(text: string): readonly string[] {
  const source = readJson(text, { places: false });
  if ('problem' in source) {
    const { line, column, message } = source.problem;
    return [`line ${line}, column ${column}: ${message}`];
  }
  // Both checks agree; if ever they did not, the text would be refused all the same.
  if (source.repeated.length === 0) return ['it is not JSON'];
  // Of a name that is there three times the last line counts.
  const repeated = new Map(source.repeated.map(({ pointer, line }) => [pointer, line]));
  return [...repeated].map(([pointer, line]) => `${fieldPath(pointer)} is set more than once (line ${line})`);
}
