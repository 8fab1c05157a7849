/** Counts by name, and the side file of rejects. */
import { closeSync, openSync } from 'node:fs';
import type { Finding } from '../record/findings.ts';
import { writeFully } from './spill.ts';

/** Counts by name; only what was seen is there. */
export type Counts = Record<string, number>;

export function count(counts: Counts, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}

/** Adds one table of counts to another. */
export function addCounts(to: Counts, from: Readonly<Counts>): void {
  for (const [name, number] of Object.entries(from)) count(to, name, number);
}

/** The same counts, the largest first, equal ones by name. */
export function sortedCounts(counts: Readonly<Counts>): Counts {
  return Object.fromEntries(Object.entries(counts).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)));
}

/** Rejects that are written out: of one part, and of a whole drop. What is beyond is only counted. */
export const REJECTS_PER_PART_MAX = 10_000;
export const REJECTS_MAX = 100_000;

const BUFFERED_MAX_CHARACTERS = 1 << 16;

/** Writes the rejects of one part as NDJSON; the file is made with the first of them. */
export class RejectsWriter {
  readonly #path: string;
  readonly #part: string;
  #descriptor = -1;
  #buffered = '';
  #sizeBytes = 0;
  #written = 0;

  constructor(path: string, part: string) {
    this.#path = path;
    this.#part = part;
  }

  add(line: number, finding: Finding): void {
    if (this.#written === REJECTS_PER_PART_MAX) return;
    this.#written += 1;
    this.#buffered += `${JSON.stringify({ file: this.#part, line, ...finding })}\n`;
    if (this.#buffered.length > BUFFERED_MAX_CHARACTERS) this.#flush();
  }

  close(): void {
    try {
      if (this.#buffered !== '') this.#flush();
    } finally {
      if (this.#descriptor !== -1) closeSync(this.#descriptor);
      this.#descriptor = -1;
    }
  }

  #flush(): void {
    if (this.#descriptor === -1) this.#descriptor = openSync(this.#path, 'wx', 0o600);
    const bytes = Buffer.from(this.#buffered);
    this.#buffered = '';
    writeFully(this.#descriptor, bytes, 0, bytes.length, this.#sizeBytes);
    this.#sizeBytes += bytes.length;
  }
}
