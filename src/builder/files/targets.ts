/** Checks the paths that a build writes to, before it begins. */
import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { MANIFEST_FILE, SIGNATURE_FILE } from '../../drop/drop-files.ts';
import { fromSystem, PagegateError } from '../../errors.ts';
import { isIndexFile } from '../../index/read.ts';
import { makeFolder } from '../../platform/folders.ts';
import type { BuildOptions } from '../options.ts';
import { checkRejects } from './rejects-file.ts';

export interface BuildTargets {
  /** Path of the index. */
  readonly out: string;
  /** Path of the report of rejects, if one is requested. */
  readonly rejects: string | undefined;
  /** The folder for temporary files. */
  readonly tempParent: string;
}

/**
 * Creates missing folders and returns absolute paths. Those of files contain the real path of the file's folder.
 *
 * @param parts the file names of the drop's parts
 * @param createdFolders receives the folders that this call creates
 * @throws PagegateError build_path if a path does not name a file or names a file of the drop, or if both paths are the same file
 * @throws PagegateError build_output_exists if a path has a file that must not be replaced
 * @throws the system's error if a folder cannot be created
 */
export function prepareTargets(
  options: BuildOptions,
  parts: readonly string[],
  createdFolders: string[],
): BuildTargets {
  const { drop, out: requestedOut, rejectsFile, tempDir } = options;
  checkName(requestedOut);
  if (rejectsFile !== undefined) checkName(rejectsFile);
  if (tempDir === '') throw new PagegateError('build_path', 'The folder for temporary files has no name.');
  const out = resolveFile(requestedOut, createdFolders);
  const rejects = rejectsFile === undefined ? undefined : resolveFile(rejectsFile, createdFolders);
  if (rejects === out || (rejects !== undefined && isSameFile(out, rejects))) {
    throw new PagegateError('build_path', `${rejectsFile} is where the index goes; rejects need another file.`, {
      path: rejectsFile,
    });
  }
  for (const target of rejects === undefined ? [out] : [out, rejects]) checkIsNotInput(target, drop, parts);
  checkOutput(out, options);
  if (rejects !== undefined) checkRejects(rejects);
  const tempParent = resolve(tempDir ?? dirname(out));
  createdFolders.push(...makeFolder(tempParent));
  return { out, rejects, tempParent };
}

/** System errors for a path that can never be written to: a folder in it is a file, its links form a loop, or a name is too long. */
const PATH_MISTAKES: ReadonlySet<string> = new Set(['ENOTDIR', 'ELOOP', 'ENAMETOOLONG']);

/** Converts a system error to `build_path` if the path itself is wrong. Returns any other error unchanged. */
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

/** Creates the file's folder if it is missing. Returns the file's path with the real path of the folder. */
function resolveFile(path: string, createdFolders: string[]): string {
  const folder = dirname(resolve(path));
  createdFolders.push(...makeFolder(folder));
  return join(realpathSync(folder), basename(path));
}

/** Two names can be the same file: by a hard link, or on a case-insensitive file system. */
function isSameFile(a: string, b: string): boolean {
  const [first, second] = [a, b].map((path) => lstatSync(path, { throwIfNoEntry: false, bigint: true }));
  return first !== undefined && second !== undefined && first.dev === second.dev && first.ino === second.ino;
}

/** A build reads the drop until the end, so its output must not replace a file of the drop. */
function checkIsNotInput(target: string, drop: string, parts: readonly string[]): void {
  const input = [MANIFEST_FILE, SIGNATURE_FILE, ...parts].find((name) => isSameFile(target, join(drop, name)));
  if (input === undefined) return;
  throw new PagegateError('build_path', `${target} is ${input} of the drop itself.`, { path: target });
}

/**
 * Checks the path of the index. A build may replace an index or an empty file, and with `force` any other regular file.
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
