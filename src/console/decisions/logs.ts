/** The decision logs of all workers as one, from the latest line back. Each file is in order, and files may overlap: a clock may be set back. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { DecisionFilter, LoggedDecision } from './filter.ts';
import { ALL_READ, CHUNK_MAX_BYTES, LogCursor, UNREAD } from './log-file.ts';

/** A rotated file is named after the time of its last line. */
const NAME = /^decisions-\d{1,4}\.(?:(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z-\w+\.)?ndjson$/;

/** Where a page of lines ended; the next one begins after it. */
export interface LogPosition {
  readonly time: string;
  /** Of the last line that was shown; empty where the search ended between two lines. */
  readonly id: string;
}

/** How far a search is. */
export class SearchProgress {
  /** Every wanted line that is later than this moment was given; RFC 3339. */
  readonly backTo: string;
  readonly doneBytes: number;
  /** Of all files. */
  readonly allBytes: number;

  constructor(backTo: string, doneBytes: number, allBytes: number) {
    this.backTo = backTo;
    this.doneBytes = doneBytes;
    this.allBytes = allBytes;
  }
}

interface LogFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** No line is later. */
  readonly latest: string;
}

/** Reads all decision logs of a folder. */
export class DecisionLogs {
  readonly dir: string;
  #readers = 0;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** @throws PagegateError console_busy when too many read already */
  assertFree(): void {
    if (this.#readers >= LIMITS.consoleSearches.value) throw new PagegateError('console_busy');
  }

  /**
   * The wanted lines, the latest first, and between them how far the search is.
   *
   * @param behind goes on after this place
   * @throws PagegateError console_busy when too many read already
   */
  async *read(filter: DecisionFilter, behind?: LogPosition): AsyncGenerator<LoggedDecision | SearchProgress> {
    this.assertFree();
    this.#readers += 1;
    const to = behind === undefined || (filter.to !== undefined && filter.to < behind.time) ? filter.to : behind.time;
    const files = await this.#files();
    const allBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const buffer = Buffer.allocUnsafe(CHUNK_MAX_BYTES);
    const cursors = files.map(({ path, latest }) => new LogCursor(path, latest, { ...filter, to }, buffer));
    try {
      let isSkipping = behind !== undefined && behind.id !== '';
      let doneBytes = 0;
      for (;;) {
        const latest = cursors.reduce<LogCursor | undefined>(
          (best, one) => (best === undefined || one.position > best.position ? one : best),
          undefined,
        );
        if (latest === undefined || latest.position === ALL_READ) return;
        const line = latest.found.shift();
        if (line === undefined) {
          const backTo = latest.position;
          doneBytes += await latest.advance();
          if (backTo !== UNREAD) yield new SearchProgress(backTo, doneBytes, allBytes);
          continue;
        }
        if (isSkipping && line.time === behind?.time) {
          if (line.id === behind.id) isSkipping = false;
          continue;
        }
        yield line;
      }
    } finally {
      this.#readers -= 1;
      for (const cursor of cursors) await cursor.close();
    }
  }

  async #files(): Promise<LogFile[]> {
    const names = await readdir(this.dir).catch(() => []);
    const files: LogFile[] = [];
    // The latest of a worker first: lines of the same moment keep their order when a file is rotated.
    for (const name of names.toSorted().reverse()) {
      const [isOurs, ...stamp] = NAME.exec(name) ?? [];
      if (isOurs === undefined) continue;
      const path = join(this.dir, name);
      // What was pruned meanwhile, and what is no file, has nothing to read.
      const stats = await lstat(path).catch(() => undefined);
      if (stats?.isFile() !== true) continue;
      const [year, month, day, hour, minute, second, ms] = stamp;
      const rotatedAt = `${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`;
      const writtenAt = stats.mtime.toISOString();
      const latest = year === undefined ? UNREAD : rotatedAt > writtenAt ? rotatedAt : writtenAt;
      files.push({ path, sizeBytes: stats.size, latest });
    }
    return files;
  }
}
