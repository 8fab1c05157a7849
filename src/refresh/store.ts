/**
 * The index store: the generations that were built, and which of them is served.
 *
 *     <store>/generations/<n>/{index.pgx, manifest.json, manifest.json.sig, report.json, rejects.ndjson}
 *     <store>/current            → generations/<n>
 *     <store>/last-number        the highest number that a generation has had
 *     <store>/withdrawn.json     manifests that were rolled back; a refresh does not activate them again by itself
 *
 * Invariant: a directory whose name is a number is complete and never changes. The name of an unfinished one begins with a dot. So a process
 * that is killed at any moment leaves either nothing, or litter that {@link removeLitter} recognizes.
 */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { CURRENT_LINK, INDEX_FILE } from '../config/paths.ts';
import { fromSystem, PagegateError } from '../errors.ts';
import { parseDocument } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { renameDurable, syncPath } from '../platform/durable-files.ts';
import { readSmallFile } from '../platform/small-file.ts';

export const REPORT_FILE = 'report.json';
export const REJECTS_FILE = 'rejects.ndjson';
const GENERATIONS = 'generations';
/** Error codes for small files of the store: one that cannot be read, and one with content that pagegate did not write. */
export const STORE_FILE = { code: 'store_unavailable', kindCode: 'store_damaged', sizeCode: 'store_damaged' } as const;
/** Far above the usual size of a report, a few thousand bytes. */
const REPORT_MAX_BYTES = 1024 * 1024;
/** Name prefixes of everything that is not finished. */
const BUILDING = '.building-';
const SWITCHING = '.current-';
/** A generation's number has at most nine digits, so that every number type can hold it exactly. */
export const GENERATION_NAME = /^[1-9][0-9]{0,8}$/;
export const GENERATION_MAX = LIMITS.generationNumber.value;

/** The record that a refresh stores beside an index. */
export interface GenerationReport {
  readonly format: 'pagegate-generation/1';
  readonly generation: number;
  readonly dataset: string;
  readonly revision: number;
  /** Creation time of the drop, RFC 3339. */
  readonly created: string;
  readonly manifestSha256: string;
  /** Name of the trusted key that signed the drop; null for one that was accepted unsigned. */
  readonly signedBy: string | null;
  readonly recordCount: number;
  readonly sizeBytes: number;
  /** When the generation was finished, RFC 3339. */
  readonly builtAt: string;
  readonly build: unknown;
}

/** Returns the numbers of rejects of a generation's build, by reason. */
export function rejectsOf({ build }: Pick<GenerationReport, 'build'>): Readonly<Record<string, number>> {
  const { rejects } = (build ?? {}) as { rejects?: unknown };
  return typeof rejects === 'object' && rejects !== null ? (rejects as Record<string, number>) : {};
}

export interface Generation {
  readonly generation: number;
  readonly directory: string;
  readonly indexFile: string;
  readonly current: boolean;
  /** Undefined if the report is missing or unreadable. Such a generation cannot be activated. */
  readonly report: GenerationReport | undefined;
}

/** What to do about a `current` that is no link of ours, as after a copy that followed links. */
const LINK_REMEDY = 'Move it away, then serve one of `pagegate generations list` again: pagegate rollback --to N.';

const currentLink = (store: string): string => join(store, CURRENT_LINK);
export const generationDirectory = (store: string, generation: number): string =>
  join(store, GENERATIONS, String(generation));
export const buildingDirectory = (store: string, generation: number): string =>
  join(store, GENERATIONS, `${BUILDING}${generation}`);

const notALink = (store: string): PagegateError =>
  new PagegateError('store_damaged', `${currentLink(store)} is not a symbolic link. ${LINK_REMEDY}`);

/**
 * Returns the number of the generation to which `current` points; undefined if there is no link.
 *
 * @throws PagegateError store_damaged for any other target, store_unavailable
 */
export function currentGeneration(store: string): number | undefined {
  let target: string;
  try {
    target = readlinkSync(currentLink(store));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code !== 'EINVAL') throw fromSystem('store_unavailable', store, error);
    throw notALink(store);
  }
  const [folder, name, ...rest] = target.split('/');
  if (folder !== GENERATIONS || name === undefined || rest.length > 0 || !GENERATION_NAME.test(name)) {
    const what = `${currentLink(store)} points to ${target}, not to generations/<number>.`;
    throw new PagegateError('store_damaged', `${what} ${LINK_REMEDY}`);
  }
  return Number(name);
}

function readReport(directory: string): GenerationReport | undefined {
  try {
    const file = join(directory, REPORT_FILE);
    const bytes = readSmallFile(file, { code: 'store_damaged', maxBytes: REPORT_MAX_BYTES });
    const value = parseDocument(bytes, 'store_damaged', file);
    return isReport(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isReport(value: unknown): value is GenerationReport {
  if (typeof value !== 'object' || value === null) return false;
  const report = value as { readonly [name in keyof GenerationReport]?: unknown };
  return (
    report.format === 'pagegate-generation/1' &&
    [report.generation, report.revision, report.recordCount, report.sizeBytes].every(Number.isSafeInteger) &&
    [report.dataset, report.created, report.manifestSha256, report.builtAt].every((one) => typeof one === 'string') &&
    (report.signedBy === null || typeof report.signedBy === 'string')
  );
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw fromSystem('store_unavailable', directory, error);
  }
}

/** Returns all complete generations, oldest first. */
export function listGenerations(store: string): Generation[] {
  const current = currentGeneration(store);
  return entries(join(store, GENERATIONS))
    .filter((name) => GENERATION_NAME.test(name))
    .map(Number)
    .sort((a, b) => a - b)
    .map((generation) => {
      const directory = generationDirectory(store, generation);
      return {
        generation,
        directory,
        indexFile: join(directory, INDEX_FILE),
        current: generation === current,
        report: readReport(directory),
      };
    });
}

/**
 * Returns the generation with a number.
 *
 * @throws PagegateError generation_missing
 */
export function findGeneration(store: string, generation: number): Generation {
  const all = listGenerations(store);
  const found = all.find((one) => one.generation === generation);
  if (found !== undefined) return found;
  const known = all.map((one) => one.generation).join(', ');
  throw new PagegateError('generation_missing', `Generation ${generation} is not kept; kept: ${known || 'none'}.`);
}

/** Returns paths that an interrupted refresh or switch has left behind. */
export function listLitter(store: string): string[] {
  const unfinished = entries(join(store, GENERATIONS)).filter((name) => name.startsWith(BUILDING));
  const links = entries(store).filter((name) => name.startsWith(SWITCHING) || name.endsWith('.tmp'));
  return [...unfinished.map((name) => join(store, GENERATIONS, name)), ...links.map((name) => join(store, name))];
}

/** Removes what interrupted runs have left behind. The caller must hold the store's lock. Returns the removed paths. */
export async function removeLitter(store: string): Promise<string[]> {
  const litter = listLitter(store);
  for (const path of litter) await rm(path, { recursive: true, force: true });
  return litter;
}

/** Renames a finished build to its number. From then on, the generation exists. */
export function commitGeneration(store: string, generation: number): void {
  const building = buildingDirectory(store, generation);
  syncPath(building);
  renameDurable(building, generationDirectory(store, generation));
}

/** Points `current` to a generation, atomically: a reader always sees either the old one or the new one. */
export async function switchCurrent(store: string, generation: number): Promise<void> {
  const link = currentLink(store);
  const existing = lstatSync(link, { throwIfNoEntry: false });
  if (existing !== undefined && !existing.isSymbolicLink()) throw notALink(store);
  const next = join(store, `${SWITCHING}${process.pid}`);
  await rm(next, { force: true });
  await symlink(`${GENERATIONS}/${generation}`, next);
  renameDurable(next, link);
}
