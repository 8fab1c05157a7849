/** Reads the decision logs of all workers as one, newest line first. Each file is sorted by time; files may overlap, as a clock may be set back. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { DecisionFilter, LoggedDecision } from './filter.ts';
import { ALL_READ, CHUNK_MAX_BYTES, LogCursor, UNREAD } from './log-file.ts';

/** The names of log files. The name of a rotated file contains the time of its last line. */
const NAME = /^decisions-\d{1,4}\.(?:(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z-\w+\.)?ndjson$/;

/** The position at which a page of lines ended; the next page begins after it. */
export interface LogPosition {
  readonly time: string;
  /** The id of the last shown line; empty if the search stopped without one at this time. */
  readonly id: string;
}

/** The progress of a search. */
export class SearchProgress {
  /** All matching lines later than this time have been yielded; RFC 3339. */
  readonly backTo: string;
  readonly doneBytes: number;
  /** Total size of all files. */
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
  /** No line in the file is later than this time. */
  readonly latest: string;
}

/** Reads all decision logs of a folder. */
export class DecisionLogs {
  readonly dir: string;
  #readers = 0;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** @throws PagegateError console_busy if too many searches run already */
  assertFree(): void {
    if (this.#readers >= LIMITS.consoleSearches.value) throw new PagegateError('console_busy');
  }

  /**
   * Yields the matching lines, newest first, and the progress of the search in between.
   *
   * @param start the position after which the search continues
   * @throws PagegateError console_busy if too many searches run already
   */
  async *read(filter: DecisionFilter, start?: LogPosition): AsyncGenerator<LoggedDecision | SearchProgress> {
    this.assertFree();
    this.#readers += 1;
    const to = start === undefined || (filter.to !== undefined && filter.to < start.time) ? filter.to : start.time;
    const files = await this.#files();
    const allBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const buffer = Buffer.allocUnsafe(CHUNK_MAX_BYTES);
    const cursors = files.map(({ path, latest }) => new LogCursor(path, latest, { ...filter, to }, buffer));
    try {
      let isSkipping = start !== undefined && start.id !== '';
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
        if (isSkipping && line.time === start?.time) {
          if (line.id === start.id) isSkipping = false;
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
    // The newest file of a worker first, so that lines with the same time keep their order when a file is rotated.
    for (const name of names.toSorted().reverse()) {
      const [logName, ...stamp] = NAME.exec(name) ?? [];
      if (logName === undefined) continue;
      const path = join(this.dir, name);
      // Skip a file that was pruned meanwhile, and anything that is not a regular file.
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
