/** Says now and then how far a build is. */

export type BuildStep = 'scan' | 'encode' | 'verify';

/** One report of progress. */
export interface BuildProgress {
  readonly step: BuildStep;
  readonly done: number;
  readonly total: number;
  /** In what `done` and `total` count. */
  readonly unit: 'bytes' | 'units';
  /** Since the step began. */
  readonly elapsedMs: number;
  /** Of this step; undefined while nothing can be said. */
  readonly leftMs: number | undefined;
}

export type OnProgress = (progress: BuildProgress) => void;

const INTERVAL_MS = 200;

/** Asks a counter at regular times and hands on what it says. */
export class ProgressMeter {
  readonly #onProgress: OnProgress | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(onProgress: OnProgress | undefined) {
    this.#onProgress = onProgress;
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
      onProgress({ step, done, total, unit: step === 'encode' ? 'units' : 'bytes', elapsedMs, leftMs });
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
