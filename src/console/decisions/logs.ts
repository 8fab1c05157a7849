/** The decision logs of all workers as one, from the latest line back. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PagegateError } from '../../errors.ts';
import type { Decision, DecisionFilter } from './filter.ts';
import { ALL_READ, LogCursor } from './log-file.ts';

const NAME = /^decisions-(\d{1,4})\.(?:(.+)\.)?ndjson$/;
/** Readers at a time: each takes memory and a share of the disk. */
const READERS_MAX = 32;

/** Where a page of lines ended; the next one begins behind it. */
export interface Place {
  readonly time: string;
  readonly id: string;
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
   * The wanted lines, the latest first; undefined now and then while nothing is found, so that the caller can look at the clock.
   *
   * @param behind goes on behind this place
   * @throws PagegateError console_busy when too many read already
   */
  async *read(filter: DecisionFilter, behind?: Place): AsyncGenerator<Decision | undefined> {
    this.assertFree();
    this.#readers += 1;
    const to = behind === undefined || (filter.to !== undefined && filter.to < behind.time) ? filter.to : behind.time;
    const cursors = (await this.#files()).map((paths) => new LogCursor(paths, { ...filter, to }));
    try {
      let isSkipping = behind !== undefined;
      for (;;) {
        const latest = cursors.reduce<LogCursor | undefined>(
          (best, one) => (best === undefined || one.position > best.position ? one : best),
          undefined,
        );
        if (latest === undefined || latest.position === ALL_READ) return;
        const line = latest.found.shift();
        if (line === undefined) {
          await latest.advance();
          yield undefined;
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

  /** The files of each worker, the latest first. */
  async #files(): Promise<string[][]> {
    let names: string[];
    try {
      names = await readdir(this.dir);
    } catch {
      return [];
    }
    const workers = new Map<string, { readonly name: string; readonly stamp: string }[]>();
    for (const name of names) {
      const [, worker, stamp = '￿'] = NAME.exec(name) ?? [];
      if (worker === undefined) continue;
      const files = workers.get(worker) ?? [];
      files.push({ name, stamp });
      workers.set(worker, files);
    }
    return [...workers]
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([, files]) => files.sort((a, b) => (a.stamp < b.stamp ? 1 : -1)).map(({ name }) => join(this.dir, name)));
  }
}
