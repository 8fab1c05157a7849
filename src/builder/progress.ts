/** Says now and then how far a build is. */
import { readFileSync } from 'node:fs';
import { withCommas } from '../counted.ts';
import { type Progress, shareOf } from '../progress.ts';

export type BuildStep = 'scan' | 'write' | 'verify';

/** One report of progress. */
export interface BuildProgress {
  readonly step: BuildStep;
  readonly done: number;
  readonly total: number;
  /** In what `done` and `total` count. */
  readonly unit: 'bytes' | 'runs';
  /** Since the step began. */
  readonly elapsedMs: number;
  /** What is left of this step; undefined as long as nothing can be said. */
  readonly leftMs: number | undefined;
}

export type OnProgress = (progress: BuildProgress) => void;

const STEP_NAMES = { scan: 'reading the drop', write: 'writing the index', verify: 'verifying' } as const;

/** What, how far, how fast, how long yet. */
export function describeProgress({ step, done, total, unit, elapsedMs, leftMs }: BuildProgress): Progress {
  const rate = unit === 'bytes' && elapsedMs > 500 ? [`${megabytes((done / elapsedMs) * 1000)}/s`] : [];
  const left = leftMs === undefined || elapsedMs < 500 ? [] : [`${Math.ceil(leftMs / 1000)} s left`];
  return { what: STEP_NAMES[step], share: shareOf(done, total), detail: [...rate, ...left].join('  ') };
}

/** Bytes as megabytes, with their unit. */
export function megabytes(bytes: number): string {
  const digits = bytes < 1e5 ? 3 : bytes < 1e7 ? 1 : 0;
  return `${withCommas(Number((bytes / 1e6).toFixed(digits)))} MB`;
}

const INTERVAL_MS = 200;

/** Memory of this process that is not a file's, in bytes; 0 where the system does not tell. */
function readMemory(): number {
  try {
    const kilobytes = /^RssAnon:\s+([0-9]+) kB/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    return kilobytes === undefined ? 0 : Number(kilobytes) * 1024;
  } catch {
    return 0;
  }
}

/** Asks a counter at regular times and hands on what it says; watches memory. */
export class ProgressMeter {
  peakMemoryBytes = 0;
  readonly #onProgress: OnProgress | undefined;
  readonly #watch: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;

  /** Watches memory from now on; without `onProgress` it tells nobody. */
  constructor(onProgress: OnProgress | undefined) {
    this.#onProgress = onProgress;
    const watch = (): void => {
      this.peakMemoryBytes = Math.max(this.peakMemoryBytes, readMemory());
    };
    watch();
    this.#watch = setInterval(watch, INTERVAL_MS);
    this.#watch.unref();
  }

  /** Ends all of it. */
  close(): void {
    this.stop();
    clearInterval(this.#watch);
  }

  /** Begins a step; the one before ends. */
  start(step: BuildStep, total: number, read: () => number): void {
    this.stop();
    const onProgress = this.#onProgress;
    if (onProgress === undefined) return;
    const begun = performance.now();
    const report = (): void => {
      const done = Math.min(total, read());
      const elapsedMs = performance.now() - begun;
      const leftMs = done === 0 ? undefined : (elapsedMs * (total - done)) / done;
      onProgress({ step, done, total, unit: step === 'write' ? 'runs' : 'bytes', elapsedMs, leftMs });
    };
    report();
    this.#timer = setInterval(report, INTERVAL_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
