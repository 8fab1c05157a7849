/** The report of rejects: each worker writes those of the lines that it scans, and the build merges them in the order of the drop. */

import {
  appendFileSync,
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
import { join } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { writeFully } from '../../platform/write-fully.ts';
import type { Reject } from '../../record/reject-reasons.ts';

/** Maximum number of rejects that are written, for one part and for the drop. The rest is only counted. */
const REJECTS_PER_PART_MAX = LIMITS.rejectsOfPart.value;
const REJECTS_MAX = LIMITS.rejects.value;
const BUFFERED_MAX_CHARACTERS = 1 << 16;

/** The fields of every line of a report, in order. */
const FIELDS = ['file', 'line', 'level', 'reason', 'detail'];
/** Upper bound for the length of a line of a report, in bytes. */
const REPORT_LINE_MAX_BYTES = 8192;

/**
 * Checks the path of the report. A build may overwrite the report of an earlier build or an empty file, but nothing else.
 *
 * @throws PagegateError build_output_exists
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

/** Path of the file that holds the rejects of one part and one worker until the build ends. */
const partRejectsPath = (tempDir: string, part: number, worker: number): string =>
  join(tempDir, `rejects-${part}-${worker}.ndjson`);

/** The setup of a rejects writer: the parts, and where this worker's rejects go. */
interface RejectsSetup {
  readonly tempDir: string;
  readonly worker: number;
  readonly parts: readonly { readonly name: string }[];
}

/** Writes the rejects that one worker finds as NDJSON: one file for each part, created with the first reject. */
export class RejectsWriter {
  readonly #setup: RejectsSetup;
  /** Number of rejects kept so far, by part. */
  readonly #kept: Uint32Array;
  /** Part of the buffered rejects. No file stays open between two writes, because there may be thousands of parts. */
  #part = 0;
  #buffered = '';

  constructor(setup: RejectsSetup) {
    this.#setup = setup;
    this.#kept = new Uint32Array(setup.parts.length);
  }

  /** Adds a reject of a line (counted from 1) of a part (counted from 0), unless the part has reached its limit. */
  add(part: number, line: number, reject: Reject): void {
    if (this.#kept[part]! === REJECTS_PER_PART_MAX) return;
    this.#kept[part] = this.#kept[part]! + 1;
    if (part !== this.#part) this.flush();
    this.#part = part;
    this.#buffered += `${JSON.stringify({ file: this.#setup.parts[part]!.name, line, ...reject })}\n`;
    if (this.#buffered.length > BUFFERED_MAX_CHARACTERS) this.flush();
  }

  /** Writes the buffered rejects. */
  flush(): void {
    if (this.#buffered === '') return;
    const { tempDir, worker } = this.#setup;
    const bytes = Buffer.from(this.#buffered);
    this.#buffered = '';
    appendFileSync(partRejectsPath(tempDir, this.#part, worker), bytes, { mode: 0o600 });
  }
}

/** Returns the rejects of a part in the order of its lines, up to the limit. */
function rejectsOfPart(tempDir: string, part: number, workerCount: number): string[] {
  const files = Array.from({ length: workerCount }, (_, worker) => partRejectsPath(tempDir, part, worker))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8').trimEnd().split('\n'));
  if (files.length < 2) return files[0] ?? [];
  // Each file has its worker's first rejects, up to the limit. So the first rejects of the part are among them.
  const lines = files.flat().map((text) => ({ text, line: (JSON.parse(text) as { line: number }).line }));
  lines.sort((a, b) => a.line - b.line);
  return lines.slice(0, REJECTS_PER_PART_MAX).map(({ text }) => text);
}

/** Merges the rejects of all parts, up to the limit, into a new file at `path` and syncs it. Returns their number; if it is 0, there is no file. */
export function gatherRejects(tempDir: string, partCount: number, workerCount: number, path: string): number {
  let descriptor = -1;
  let sizeBytes = 0;
  let written = 0;
  try {
    for (let part = 0; part < partCount && written < REJECTS_MAX; part++) {
      const lines = rejectsOfPart(tempDir, part, workerCount).slice(0, REJECTS_MAX - written);
      if (lines.length === 0) continue;
      if (descriptor === -1) descriptor = openSync(path, 'wx', 0o644);
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

/**
 * Moves the merged rejects to their final path. If there are none, removes the report of an earlier build.
 *
 * @throws PagegateError build_output_exists
 */
export function publishRejects(unfinished: string, written: number, path: string): void {
  checkRejects(path);
  if (written > 0) renameSync(unfinished, path);
  else rmSync(path, { force: true });
}
