/** The side file of rejects: each worker writes those of the lines that it scans, the build gathers them in the order of the drop. */

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

/** Rejects that are written out: of one part, and of a whole drop. What is beyond is only counted. */
const REJECTS_PER_PART_MAX = LIMITS.rejectsOfPart.value;
const REJECTS_MAX = LIMITS.rejects.value;
const BUFFERED_MAX_CHARACTERS = 1 << 16;

/** What every line of a report has. */
const FIELDS = ['file', 'line', 'level', 'reason', 'detail'];
/** No line of a report is longer, in bytes. */
const REPORT_LINE_MAX_BYTES = 8192;

/**
 * Looks at the place of the report: a build writes over the report of an earlier one and over an empty file, never over anything else.
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

/** Where the rejects that a worker found in a part are kept until the build ends. */
const partRejects = (tempDir: string, part: number, worker: number): string =>
  join(tempDir, `rejects-${part}-${worker}.ndjson`);

/** What the rejects of one worker are about, and where they go. */
interface RejectsSetup {
  readonly tempDir: string;
  readonly worker: number;
  readonly parts: readonly { readonly name: string }[];
}

/** Writes the rejects that one worker finds as NDJSON, those of each part into a file that is made with the first of them. */
export class RejectsWriter {
  readonly #setup: RejectsSetup;
  /** Kept so far, of each part. */
  readonly #kept: Uint32Array;
  /** Number of the part whose rejects came last. No file is open between two writes, because there may be thousands of parts. */
  #part = 0;
  #buffered = '';

  constructor(setup: RejectsSetup) {
    this.#setup = setup;
    this.#kept = new Uint32Array(setup.parts.length);
  }

  /** Keeps a reject of a line (counted from 1) of the part of that number, as long as the part has not too many. */
  add(part: number, line: number, reject: Reject): void {
    if (this.#kept[part]! === REJECTS_PER_PART_MAX) return;
    this.#kept[part] = this.#kept[part]! + 1;
    if (part !== this.#part) this.flush();
    this.#part = part;
    this.#buffered += `${JSON.stringify({ file: this.#setup.parts[part]!.name, line, ...reject })}\n`;
    if (this.#buffered.length > BUFFERED_MAX_CHARACTERS) this.flush();
  }

  /** Writes what is left. */
  flush(): void {
    if (this.#buffered === '') return;
    const { tempDir, worker } = this.#setup;
    const bytes = Buffer.from(this.#buffered);
    this.#buffered = '';
    appendFileSync(partRejects(tempDir, this.#part, worker), bytes, { mode: 0o600 });
  }
}

/** The rejects of a part, in the order of its lines, as many as are kept. */
function rejectsOfPart(tempDir: string, part: number, workerCount: number): string[] {
  const files = Array.from({ length: workerCount }, (_, worker) => partRejects(tempDir, part, worker))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8').trimEnd().split('\n'));
  if (files.length < 2) return files[0] ?? [];
  // Each file has the first of its worker's lines, so the first of all lines are in them.
  const lines = files.flat().map((text) => ({ text, line: (JSON.parse(text) as { line: number }).line }));
  lines.sort((a, b) => a.line - b.line);
  return lines.slice(0, REJECTS_PER_PART_MAX).map(({ text }) => text);
}

/** Puts the parts' rejects into one new file at `path`, as many as are kept, on the disk when this returns. Returns how many; with none there is no file. */
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
 * Gives the gathered rejects their name; where there are none, the report of an earlier build goes.
 *
 * @throws PagegateError build_output_exists
 */
export function publishRejects(gathered: string, written: number, path: string): void {
  checkRejects(path);
  if (written > 0) renameSync(gathered, path);
  else rmSync(path, { force: true });
}
