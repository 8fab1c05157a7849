/** Notices when another process has shown no life for too long. */

/** How often a watched process shows life, or is asked for it, in milliseconds. */
export const LIFE_SIGN_MS = 1_000;

/** How long a watched process may show none before it is ended and started again, unless told otherwise. */
export const PATIENCE_MS = 10_000;

/** A process that lived this long is given the first patience again. */
export const STABLE_MS = 60_000;

const PATIENCE_DOUBLINGS = 4;

/**
 * How many times the patience the next process is given: doubled by each silence in a row, 16 at most. What is slow must not become slower
 * by new starts.
 */
export const patienceFactor = (silences: number): number => 2 ** Math.min(silences, PATIENCE_DOUBLINGS);

export interface SilenceOptions {
  /** How long a silence may be, in milliseconds; it is noticed up to one life sign later. */
  readonly patienceMs: number;
  /** Called once, with the length of the silence in milliseconds; the watch has ended then. */
  readonly onSilence: (silentMs: number) => void;
  /** Called every {@link LIFE_SIGN_MS}: for a process that shows life only when asked. */
  readonly onTick?: () => void;
}

/**
 * One watch over one process. It counts its own ticks instead of looking at a clock: that the host slept, or the watching process was
 * stopped, is no silence of the watched one.
 */
export class SilenceWatch {
  patienceMs: number;
  #silentMs = 0;
  readonly #timer: NodeJS.Timeout;

  constructor({ patienceMs, onSilence, onTick }: SilenceOptions) {
    this.patienceMs = patienceMs;
    this.#timer = setInterval(() => {
      this.#silentMs += LIFE_SIGN_MS;
      if (this.#silentMs <= this.patienceMs) {
        onTick?.();
        return;
      }
      this.stop();
      onSilence(this.#silentMs);
    }, LIFE_SIGN_MS);
  }

  /** How long nothing was heard, in milliseconds; a process that lives is now and then one life sign late. */
  get silentMs(): number {
    return this.#silentMs;
  }

  heard(): void {
    this.#silentMs = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
