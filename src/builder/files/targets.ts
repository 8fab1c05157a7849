/** The paths that a build writes to, looked at before it begins. */
import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { MANIFEST_FILE, SIGNATURE_FILE } from '../../drop/drop-files.ts';
import { fromSystem, PagegateError } from '../../errors.ts';
import { isIndexFile } from '../../index/read.ts';
import { makeFolder } from '../../platform/folders.ts';
import type { BuildOptions } from '../options.ts';
import { checkRejects } from './rejects-file.ts';

export interface BuildTargets {
  /** Where the index goes. */
  readonly out: string;
  /** Where the report of rejects goes, if one is wanted. */
  readonly rejects: string | undefined;
  /** The folder for temporary files. */
  readonly tempParent: string;
}

/**
 * Makes the folders and returns the paths, absolute and without links on the way.
 *
 * @param parts the file names of the drop
 * @param made gets the folders that were not there
 * @throws PagegateError build_path for one that names no file, a file of the drop itself, or the index's for the rejects
 * @throws PagegateError build_output_exists for one that is taken
 * @throws the system's error where a folder cannot be made
 */
export function prepareTargets(options: BuildOptions, parts: readonly string[], made: string[]): BuildTargets {
  const { drop, out: givenOut, rejectsFile, tempDir } = options;
  checkName(givenOut);
  if (rejectsFile !== undefined) checkName(rejectsFile);
  if (tempDir === '') throw new PagegateError('build_path', 'The folder for temporary files has no name.');
  const out = place(givenOut, made);
  const rejects = rejectsFile === undefined ? undefined : place(rejectsFile, made);
  if (rejects === out || (rejects !== undefined && isSameFile(out, rejects))) {
    throw new PagegateError('build_path', `${rejectsFile} is where the index goes; rejects need another file.`, {
      path: rejectsFile,
    });
  }
  for (const target of rejects === undefined ? [out] : [out, rejects]) checkIsNotInput(target, drop, parts);
  checkOutput(out, options);
  if (rejects !== undefined) checkRejects(rejects);
  const tempParent = resolve(tempDir ?? dirname(out));
  made.push(...makeFolder(tempParent));
  return { out, rejects, tempParent };
}

/** What the system says of a path that can never be written to: part of it is a file, it leads in a circle, a name is too long. */
const PATH_MISTAKES: ReadonlySet<string> = new Set(['ENOTDIR', 'ELOOP', 'ENAMETOOLONG']);

/** A failure of the system as `build_path` where the path itself is the mistake; anything else passes unchanged. */
export function asPathMistake(error: unknown): unknown {
  const { code, path } = error as NodeJS.ErrnoException;
  if (path === undefined || code === undefined || !PATH_MISTAKES.has(code)) return error;
  return fromSystem('build_path', path, error);
}

function checkName(path: string): void {
  if (path === '') throw new PagegateError('build_path', 'A file that the build is to write has no name.');
  if (!/(?:^|\/)\.{0,2}$/.test(path)) return;
  throw new PagegateError('build_path', `${path} names a folder; a file is needed.`, { path });
}

/** Makes the file's folder; returns the file's path by the folder's real name. */
function place(path: string, made: string[]): string {
  const folder = dirname(resolve(path));
  made.push(...makeFolder(folder));
  return join(realpathSync(folder), basename(path));
}

/** Two names can be one file: a hard link, or a file system that does not tell upper from lower case. */
function isSameFile(a: string, b: string): boolean {
  const [first, second] = [a, b].map((path) => lstatSync(path, { throwIfNoEntry: false, bigint: true }));
  return first !== undefined && second !== undefined && first.dev === second.dev && first.ino === second.ino;
}

/** A build reads the drop until its end; what it needs must not be where its result goes. */
function checkIsNotInput(target: string, drop: string, parts: readonly string[]): void {
  const input = [MANIFEST_FILE, SIGNATURE_FILE, ...parts].find((name) => isSameFile(target, join(drop, name)));
  if (input === undefined) return;
  throw new PagegateError('build_path', `${target} is ${input} of the drop itself.`, { path: target });
}

/**
 * Looks at the place of the index: a build replaces an index, or an empty file, and with `force` any other file.
 *
 * @throws PagegateError build_output_exists
 */
export function checkOutput(out: string, { force = false }: Pick<BuildOptions, 'force'>): void {
  const stats = lstatSync(out, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const isReplaceable = stats.isFile() && (force || stats.size === 0 || isIndexFile(out));
  if (isReplaceable) return;
  const what = stats.isFile() ? 'is not an index; --force replaces it all the same' : 'is not a regular file';
  throw new PagegateError('build_output_exists', `${out} is there and ${what}.`, { path: out });
}
