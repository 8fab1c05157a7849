/** The side file of rejects: what the workers wrote for each part, in the order of the drop. */
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { PagegateError } from '../errors.ts';
import { rejectsPath } from './scan-part.ts';
import { writeFully } from './spill.ts';
import { REJECTS_MAX } from './tally.ts';

/** What every line of a report has. */
const FIELDS = ['file', 'line', 'level', 'reason', 'detail'];
/** No line of a report is longer, in bytes. */
const REPORT_LINE_MAX_BYTES = 8192;

/**
 * Throws `build_output_exists` where something is at the path that must not be replaced: a build writes over the report of an earlier one
 * and over an empty file, never over somebody else's.
 */
export function checkRejects(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isFile() && (stats.size === 0 || isReport(path))) return;
  const kind = stats.isFile() ? 'not a report of rejects' : 'no regular file';
  const what = `${path} is there and is ${kind}. Without --rejects FILE they go beside the index, with --no-rejects nowhere.`;
  throw new PagegateError('build_output_exists', what, { path });
}

function isReport(path: string): boolean {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const bytes = Buffer.alloc(REPORT_LINE_MAX_BYTES);
    const text = bytes.toString('utf8', 0, readSync(descriptor, bytes, 0, bytes.length, 0));
    const first: unknown = JSON.parse(text.slice(0, text.indexOf('\n')));
    return typeof first === 'object' && first !== null && Object.keys(first).join() === FIELDS.join();
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Puts the parts' rejects into one new file at `path`, as many as are kept, on the disk when this returns. Returns how many; with none there is no file. */
export function gatherRejects(tempDir: string, partCount: number, path: string): number {
  let descriptor = -1;
  let sizeBytes = 0;
  let written = 0;
  try {
    for (let part = 0; part < partCount && written < REJECTS_MAX; part++) {
      const from = rejectsPath(tempDir, part);
      if (!existsSync(from)) continue;
      if (descriptor === -1) descriptor = openSync(path, 'wx', 0o644);
      const lines = readFileSync(from, 'utf8')
        .trimEnd()
        .split('\n')
        .slice(0, REJECTS_MAX - written);
      const bytes = Buffer.from(`${lines.join('\n')}\n`);
      writeFully(descriptor, bytes, 0, bytes.length, sizeBytes);
      sizeBytes += bytes.length;
      written += lines.length;
    }
    if (descriptor !== -1) fsyncSync(descriptor);
  } finally {
    if (descriptor !== -1) closeSync(descriptor);
  }
  return written;
}

/** Gives the gathered rejects their name; where there are none, the report of an earlier build goes. Throws as `checkRejects` does. */
export function publishRejects(gathered: string, written: number, path: string): void {
  checkRejects(path);
  if (written > 0) renameSync(gathered, path);
  else rmSync(path, { force: true });
}
