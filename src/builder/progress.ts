/** Reports the progress of a build at regular intervals. */
import { readFileSync } from 'node:fs';
import { withCommas } from '../counted.ts';
import { type Progress, shareOf } from '../progress.ts';

export type BuildStep = 'scan' | 'write' | 'verify';

/** One report of progress. */
export interface BuildProgress {
  readonly step: BuildStep;
  readonly done: number;
  readonly total: number;
  /** Unit of `done` and `total`. */
  readonly unit: 'bytes' | 'runs';
  /** Since the step began. */
  readonly elapsedMs: number;
  /** Estimated time until this step ends; undefined as long as nothing is done. */
  readonly leftMs: number | undefined;
}

export type OnProgress = (progress: BuildProgress) => void;

const STEP_NAMES = { scan: 'reading the drop', write: 'writing the index', verify: 'verifying' } as const;

/** Describes a report for people: the step, its share done, the rate and the time left. */
export function describeProgress({ step, done, total, unit, elapsedMs, leftMs }: BuildProgress): Progress {
  const rate = unit === 'bytes' && elapsedMs > 500 ? [`${megabytes((done / elapsedMs) * 1000)}/s`] : [];
  const left = leftMs === undefined || elapsedMs < 500 ? [] : [`${Math.ceil(leftMs / 1000)} s left`];
  return { what: STEP_NAMES[step], share: shareOf(done, total), detail: [...rate, ...left].join('  ') };
}

/** Formats bytes as megabytes, with the unit. */
export function megabytes(bytes: number): string {
  const digits = bytes < 1e5 ? 3 : bytes < 1e7 ? 1 : 0;
  return `${withCommas(Number((bytes / 1e6).toFixed(digits)))} MB`;
}

const INTERVAL_MS = 200;

/** Anonymous memory of this process (not backed by files), in bytes; 0 if the system does not report it. */
function readMemory(): number {
  try {
    const kilobytes = /^RssAnon:\s+([0-9]+) kB/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    return kilobytes === undefined ? 0 : Number(kilobytes) * 1024;
  } catch {
    return 0;
  }
}

/** Reads a counter at regular intervals and reports it as progress; also tracks the peak memory. */
export class ProgressMeter {
  peakMemoryBytes = 0;
  readonly #onProgress: OnProgress | undefined;
  readonly #watch: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;

  /** Tracks memory from now on. Without `onProgress` it reports no progress. */
  constructor(onProgress: OnProgress | undefined) {
    this.#onProgress = onProgress;
    const watch = (): void => {
      this.peakMemoryBytes = Math.max(this.peakMemoryBytes, readMemory());
    };
    watch();
    this.#watch = setInterval(watch, INTERVAL_MS);
    this.#watch.unref();
  }

  /** Stops reports and the tracking of memory. */
  close(): void {
    this.stop();
    clearInterval(this.#watch);
  }

  /** Begins a step and ends the previous one. `read` returns how much is done, in the unit of `total`. */
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
