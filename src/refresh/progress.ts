/** How far a refresh is, for those who do not see its terminal. Best effort: a refresh never fails because of it. */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Progress } from '../progress.ts';

const STEP_MS = 500;
/** A process that was killed leaves its file behind; what was not renewed for so long is over. */
const STALE_MS = 60_000;
const FILE_MAX_BYTES = 4_096;
const TEXT_MAX_LENGTH = 200;

export interface RunningRefresh extends Progress {
  readonly pid: number;
  /** RFC 3339. */
  readonly started: string;
}

const fileOf = (store: string): string => join(store, 'progress.json');

/** Writes down how far this process is. */
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
    const beside = `${fileOf(this.#store)}.${process.pid}.tmp`;
    try {
      writeFileSync(beside, `${JSON.stringify(running)}\n`, { mode: 0o644 });
      renameSync(beside, fileOf(this.#store));
    } catch {
      // The store may not be there yet, or its disk is full: the refresh says so itself.
      discard(beside);
    }
  }

  done(): void {
    if (readProgress(this.#store)?.pid === process.pid) rmSync(fileOf(this.#store), { force: true });
  }
}

/** The refresh that runs on a store; undefined where none does. */
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
    // What cannot be removed could not be written either.
  }
}
