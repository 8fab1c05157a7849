/** The decision logs of all workers as one, from the latest line back. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { Decision, DecisionFilter } from './filter.ts';
import { ALL_READ, CHUNK_MAX_BYTES, LogCursor, UNREAD } from './log-file.ts';

const NAME = /^decisions-(\d{1,4})\.(?:(.+)\.)?ndjson$/;
/** Readers at a time: each takes memory and a share of the disk. */
const READERS_MAX = LIMITS.consoleSearches.value;

/** Where a page of lines ended; the next one begins behind it. */
export interface Place {
  readonly time: string;
  /** Of the last line that was shown; empty where the search ended between two lines. */
  readonly id: string;
}

/** How far a search is. */
export class Searched {
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

interface Logs {
  /** The files of each worker, the latest first. */
  readonly workers: readonly (readonly string[])[];
  readonly sizeBytes: number;
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
    if (this.#readers >= READERS_MAX) throw new PagegateError('console_busy');
  }

  /**
   * The wanted lines, the latest first, and between them how far the search is.
   *
   * @param behind goes on behind this place
   * @throws PagegateError console_busy when too many read already
   */
  async *read(filter: DecisionFilter, behind?: Place): AsyncGenerator<Decision | Searched> {
    this.assertFree();
    this.#readers += 1;
    const to = behind === undefined || (filter.to !== undefined && filter.to < behind.time) ? filter.to : behind.time;
    const { workers, sizeBytes } = await this.#files();
    const buffer = Buffer.allocUnsafe(CHUNK_MAX_BYTES);
    const cursors = workers.map((paths) => new LogCursor(paths, { ...filter, to }, buffer));
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
          if (backTo !== UNREAD) yield new Searched(backTo, doneBytes, sizeBytes);
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
      for (const cursor of cursors) await cursor.close(true);
    }
  }

  async #files(): Promise<Logs> {
    let names: string[];
    try {
      names = await readdir(this.dir);
    } catch {
      return { workers: [], sizeBytes: 0 };
    }
    const workers = new Map<string, { readonly name: string; readonly stamp: string }[]>();
    let sizeBytes = 0;
    for (const name of names) {
      const [, worker, stamp = '\uffff'] = NAME.exec(name) ?? [];
      if (worker === undefined) continue;
      const files = workers.get(worker) ?? [];
      files.push({ name, stamp });
      workers.set(worker, files);
      sizeBytes += await sizeOf(join(this.dir, name));
    }
    return {
      workers: [...workers]
        .sort(([a], [b]) => Number(a) - Number(b))
        .map(([, files]) => files.sort((a, b) => (a.stamp < b.stamp ? 1 : -1)).map(({ name }) => join(this.dir, name))),
      sizeBytes,
    };
  }
}

/** 0 for what was pruned meanwhile, and for what is no file. */
async function sizeOf(path: string): Promise<number> {
  const stats = await lstat(path).catch(() => undefined);
  return stats?.isFile() === true ? stats.size : 0;
}
