/** The ledger writer's clock. It remembers the latest second seen, so that a clock that leaps ahead is not trusted. */
import { dayOf } from '../cycle.ts';
import { CLOCK_LEAP_SECONDS, clockProblem } from '../store/clock.ts';

/** How often the latest second seen is saved in the ledger, in seconds. */
const SAVE_SECONDS = 60;

/** Reads the time, and remembers the latest one. */
export class WriterClock {
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  /** The latest second seen; 0 before a ledger was opened. */
  #latestSeconds = 0;
  #savedSeconds = 0;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** Seconds since 1970. */
  get seconds(): number {
    return Math.floor(this.nowMs() / 1000);
  }

  /** The day (UTC), as a number of days since 1970-01-01. */
  get today(): number {
    return dayOf(this.seconds);
  }

  /** Why the clock is not trusted, in words; undefined if it is. */
  get problem(): string | undefined {
    return clockProblem(this.#latestSeconds, this.seconds);
  }

  /** The latest second seen that can be trusted. */
  get latestSeconds(): number {
    return Math.max(this.#latestSeconds, this.problem === undefined ? this.seconds : 0);
  }

  /** An upper bound of every time that a trusted clock can have reached, including seconds that were seen and not yet saved. */
  get latestPossibleSeconds(): number {
    return Math.max(this.seconds, this.#latestSeconds) + SAVE_SECONDS + CLOCK_LEAP_SECONDS;
  }

  /** Continues from the second saved in a ledger. If that is 0, the ledger is new and the clock is trusted as it is. */
  open(savedSeconds: number): void {
    this.#savedSeconds = savedSeconds;
    this.see(savedSeconds === 0 ? this.seconds : savedSeconds);
  }

  /** Records a second that is trusted. */
  see(seconds: number): void {
    this.#latestSeconds = Math.max(this.#latestSeconds, seconds);
  }

  /** Whether it is time to save a second in the ledger. */
  isSaveDue(seconds: number): boolean {
    return seconds >= this.#savedSeconds + SAVE_SECONDS;
  }

  /** Whether a second is on another day than the second that was saved last. */
  isOtherDay(seconds: number): boolean {
    return dayOf(seconds) !== dayOf(this.#savedSeconds);
  }

  /** Records that a second was saved. */
  saved(seconds: number): void {
    this.#savedSeconds = seconds;
  }
}
