/** Manifests whose generation an operator rolled back: a timer must not bring them again. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceDurable } from '../platform/durable.ts';

export interface WithdrawnManifest {
  readonly manifestSha256: string;
  readonly generation: number;
  readonly revision: number;
  /** RFC 3339. */
  readonly withdrawnAt: string;
}

/** Older marks are forgotten: the revision check covers them. */
const MARKS_MAX = 64;
const fileOf = (store: string): string => join(store, 'withdrawn.json');

function isMark(value: unknown): value is WithdrawnManifest {
  if (typeof value !== 'object' || value === null) return false;
  const { manifestSha256, generation } = value as Partial<WithdrawnManifest>;
  return typeof manifestSha256 === 'string' && Number.isSafeInteger(generation);
}

/** The marks, oldest first; none where the file is missing or unreadable. */
export function readWithdrawn(store: string): WithdrawnManifest[] {
  try {
    const value: unknown = JSON.parse(readFileSync(fileOf(store), 'utf8'));
    return Array.isArray(value) ? value.filter(isMark) : [];
  } catch {
    return [];
  }
}

function writeWithdrawn(store: string, marks: readonly WithdrawnManifest[]): void {
  replaceDurable(fileOf(store), `${JSON.stringify(marks.slice(-MARKS_MAX), null, 2)}\n`, 0o644);
}

/** Marks a manifest as rolled back. */
export function withdraw(store: string, mark: WithdrawnManifest): void {
  const others = readWithdrawn(store).filter((one) => one.manifestSha256 !== mark.manifestSha256);
  writeWithdrawn(store, [...others, mark]);
}

/** Takes the mark away: the operator activated the generation again. */
export function reinstate(store: string, manifestSha256: string): void {
  const marks = readWithdrawn(store);
  const rest = marks.filter((one) => one.manifestSha256 !== manifestSha256);
  if (rest.length < marks.length) writeWithdrawn(store, rest);
}
