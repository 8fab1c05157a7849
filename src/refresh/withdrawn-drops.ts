/** Marks manifests whose generation an operator rolled back, so that a refresh by timer does not activate them again. */
import { join } from 'node:path';
import { PagegateError } from '../errors.ts';
import { parseDocument } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { replaceDurable } from '../platform/durable-files.ts';
import { readSmallFileIfAny } from '../platform/small-file.ts';
import { GENERATION_MAX, STORE_FILE } from './store.ts';

export interface WithdrawnManifest {
  readonly manifestSha256: string;
  /** Absent in marks of earlier versions. */
  readonly dataset?: string;
  readonly generation: number;
  readonly revision: number;
  /** RFC 3339. */
  readonly withdrawnAt: string;
}

/** The fields that decide which of two drops built here is the older one. */
type Age = Pick<WithdrawnManifest, 'dataset' | 'generation' | 'revision'>;

/** The most marks that are kept. Older ones are dropped: the revision check covers them. */
const MARKS_MAX = LIMITS.withdrawnDrops.value;
const FILE_MAX_BYTES = 1024 * 1024;
/** The file with the marks of a store. */
export const withdrawnFile = (store: string): string => join(store, 'withdrawn.json');

function isMark(value: unknown): value is WithdrawnManifest {
  if (typeof value !== 'object' || value === null) return false;
  const mark = value as { readonly [name in keyof WithdrawnManifest]?: unknown };
  return (
    typeof mark.manifestSha256 === 'string' &&
    (mark.dataset === undefined || typeof mark.dataset === 'string') &&
    typeof mark.generation === 'number' &&
    mark.generation >= 1 &&
    mark.generation <= GENERATION_MAX &&
    [mark.generation, mark.revision].every(Number.isSafeInteger) &&
    typeof mark.withdrawnAt === 'string'
  );
}

/**
 * Reads the marks, oldest first; none if there is no file.
 *
 * @throws PagegateError store_damaged if the file holds something else: without the marks, a timer would reactivate what was rolled back;
 *   store_unavailable if it cannot be read
 */
export function readWithdrawn(store: string): WithdrawnManifest[] {
  const file = withdrawnFile(store);
  const bytes = readSmallFileIfAny(file, { ...STORE_FILE, maxBytes: FILE_MAX_BYTES });
  if (bytes === undefined) return [];
  const marks = parseDocument(bytes, 'store_damaged', file);
  if (Array.isArray(marks) && marks.every(isMark)) return marks;
  const what = `${file}: expected a list of withdrawn manifests. Put it right, or remove it: then no drop is withdrawn.`;
  throw new PagegateError('store_damaged', what, { path: file });
}

function writeWithdrawn(store: string, marks: readonly WithdrawnManifest[]): void {
  replaceDurable(withdrawnFile(store), `${JSON.stringify(marks.slice(-MARKS_MAX), null, 2)}\n`, 0o644);
}

/**
 * Whether one is older than another. Revisions are compared first, because a drop of an earlier revision that is built again gets a higher
 * generation number. Revisions of different datasets cannot be compared.
 */
export function isOlder(one: Age, other: Age): boolean {
  if (one.dataset === other.dataset && one.revision !== other.revision) return one.revision < other.revision;
  return one.generation < other.generation;
}

/** Marks a manifest as rolled back. */
export function withdraw(store: string, mark: WithdrawnManifest): void {
  const others = readWithdrawn(store).filter((one) => one.manifestSha256 !== mark.manifestSha256);
  writeWithdrawn(store, [...others, mark]);
}

/**
 * Marks the served manifest as rolled back if an older one is about to replace it. Call it before the switch: a refresh by timer between the
 * two steps would otherwise undo the switch.
 */
export function withdrawForOlder(
  store: string,
  served: Age & Pick<WithdrawnManifest, 'manifestSha256'>,
  next: Age & Pick<WithdrawnManifest, 'manifestSha256'>,
): void {
  const { manifestSha256, dataset, generation, revision } = served;
  if (manifestSha256 === next.manifestSha256 || !isOlder(next, served)) return;
  const withdrawnAt = new Date().toISOString();
  withdraw(store, { manifestSha256, ...(dataset === undefined ? {} : { dataset }), generation, revision, withdrawnAt });
}

/** Removes the mark of a manifest, because the operator has activated its generation again. */
export function reinstate(store: string, manifestSha256: string): void {
  const marks = readWithdrawn(store);
  const rest = marks.filter((one) => one.manifestSha256 !== manifestSha256);
  if (rest.length < marks.length) writeWithdrawn(store, rest);
}
