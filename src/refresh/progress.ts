/** Shares the progress of a refresh with other processes, through a file. Best effort: a refresh never fails because of it. */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Progress } from '../progress.ts';

const STEP_MS = 500;
/** A process that was killed leaves its file behind. A file that was not updated for this long is ignored. */
const STALE_MS = 60_000;
const FILE_MAX_BYTES = 4_096;
const TEXT_MAX_LENGTH = 200;

export interface RunningRefresh extends Progress {
  readonly pid: number;
  /** RFC 3339. */
  readonly started: string;
}

const fileOf = (store: string): string => join(store, 'progress.json');

/** Writes the progress of this process. */
export class ProgressFile {
  readonly #store: string;
  readonly #started = new Date().toISOString();
  #lastMs = Number.NEGATIVE_INFINITY;

  /** @param store the folder of the index store */
  constructor(store: string) {
    this.#store = store;
  }

  update({ what, share, detail }: Progress): void {
    const now = performance.now();
    if (now - this.#lastMs < STEP_MS) return;
    this.#lastMs = now;
    const running: RunningRefresh = {
      pid: process.pid,
      started: this.#started,
      what: what.slice(0, TEXT_MAX_LENGTH),
      share,
      detail: detail?.slice(0, TEXT_MAX_LENGTH),
    };
    const temporary = `${fileOf(this.#store)}.${process.pid}.tmp`;
    try {
      writeFileSync(temporary, `${JSON.stringify(running)}\n`, { mode: 0o644 });
      renameSync(temporary, fileOf(this.#store));
    } catch {
      // The store may not exist yet, or its disk is full. The refresh itself reports that.
      discard(temporary);
    }
  }

  done(): void {
    if (readProgress(this.#store)?.pid === process.pid) rmSync(fileOf(this.#store), { force: true });
  }
}

/** Reads the progress of the refresh that is running on a store; undefined if there is none. */
export function readProgress(store: string): RunningRefresh | undefined {
  const file = fileOf(store);
  try {
    const stat = statSync(file);
    if (stat.size > FILE_MAX_BYTES || Date.now() - stat.mtimeMs > STALE_MS) return undefined;
    const value = JSON.parse(readFileSync(file, 'utf8')) as { readonly [name in keyof RunningRefresh]?: unknown };
    const { pid, started, what, share, detail } = value;
    if (typeof pid !== 'number' || typeof started !== 'string' || typeof what !== 'string') return undefined;
    if (!isAlive(pid)) return undefined;
    return {
      pid,
      started,
      what,
      share: typeof share === 'number' ? share : undefined,
      detail: typeof detail === 'string' ? detail : undefined,
    };
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function discard(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // Best effort. A file that cannot be removed could probably not be written either.
  }
}
