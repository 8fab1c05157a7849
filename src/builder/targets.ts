/** The paths that a build writes to, looked at before it begins. */
import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { PagegateError } from '../errors.ts';
import { makeFolder } from '../platform/folders.ts';
import type { BuildOptions } from './options.ts';
import { checkRejects } from './rejects.ts';

export interface BuildTargets {
  /** Where the index goes. */
  readonly out: string;
  /** Where the report of rejects goes, if one is wanted. */
  readonly rejects: string | undefined;
  /** The folder for temporary files. */
  readonly tempParent: string;
}

/**
 * Makes the folders and returns the paths, absolute and without links on the way. Throws `build_path` for one that names no file,
 * or the index's for the rejects; `build_output_exists` for one that is taken; and the system's error where a folder cannot be made.
 */
export function prepareTargets({ out: givenOut, rejectsFile, tempDir }: BuildOptions): BuildTargets {
  checkName(givenOut);
  if (rejectsFile !== undefined) checkName(rejectsFile);
  if (tempDir === '') throw new PagegateError('build_path', 'The folder for temporary files has no name.');
  const out = place(givenOut);
  const rejects = rejectsFile === undefined ? undefined : place(rejectsFile);
  if (rejects === out || (rejects !== undefined && isSameFile(out, rejects))) {
    throw new PagegateError('build_path', `${rejectsFile} is where the index goes; rejects need another file.`, {
      path: rejectsFile,
    });
  }
  checkOutput(out);
  if (rejects !== undefined) checkRejects(rejects);
  const tempParent = resolve(tempDir ?? dirname(out));
  makeFolder(tempParent);
  return { out, rejects, tempParent };
}

function checkName(path: string): void {
  if (path === '') throw new PagegateError('build_path', 'A file that the build is to write has no name.');
  if (!/(?:^|\/)\.{0,2}$/.test(path)) return;
  throw new PagegateError('build_path', `${path} names a folder; a file is needed.`, { path });
}

/** Makes the file's folder; returns the file's path by the folder's real name. */
function place(path: string): string {
  const folder = dirname(resolve(path));
  makeFolder(folder);
  return join(realpathSync(folder), basename(path));
}

/** Two names can be one file: a hard link, or a file system that does not tell upper from lower case. */
function isSameFile(a: string, b: string): boolean {
  const [first, second] = [a, b].map((path) => lstatSync(path, { throwIfNoEntry: false, bigint: true }));
  return first !== undefined && second !== undefined && first.dev === second.dev && first.ino === second.ino;
}

function checkOutput(out: string): void {
  const stats = lstatSync(out, { throwIfNoEntry: false });
  if (stats === undefined || stats.isFile()) return;
  throw new PagegateError('build_output_exists', `${out} is there and is no regular file.`, { path: out });
}
