/** The ledger writer's clock: the time now, and the latest second that was seen, so that a clock that leaps is not believed. */
import { dayOf } from '../cycle.ts';
import { CLOCK_LEAP_SECONDS, clockProblem } from '../store/clock.ts';

/** How often the latest second seen is written down, in seconds. */
const SAVE_SECONDS = 60;

/** Tells the time, and remembers how late it has been. */
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

  /** The day (UTC), as a count of days since 1970-01-01. */
  get today(): number {
    return dayOf(this.seconds);
  }

  /** Why the clock is not believed, in words; undefined where it is. */
  get problem(): string | undefined {
    return clockProblem(this.#latestSeconds, this.seconds);
  }

  /** The latest second seen that may be believed. */
  get latestSeconds(): number {
    return Math.max(this.#latestSeconds, this.problem === undefined ? this.seconds : 0);
  }

  /** No clock that was believed can have come further: seconds that were seen and not yet written down are allowed for. */
  get latestPossibleSeconds(): number {
    return Math.max(this.seconds, this.#latestSeconds) + SAVE_SECONDS + CLOCK_LEAP_SECONDS;
  }

  /** Goes on from what a ledger has written down; a new one, with 0, believes the clock as it is. */
  open(savedSeconds: number): void {
    this.#savedSeconds = savedSeconds;
    this.see(savedSeconds === 0 ? this.seconds : savedSeconds);
  }

  /** Takes note of a second that is believed. */
  see(seconds: number): void {
    this.#latestSeconds = Math.max(this.#latestSeconds, seconds);
  }

  /** Whether it is time to write a second down. */
  isSaveDue(seconds: number): boolean {
    return seconds >= this.#savedSeconds + SAVE_SECONDS;
  }

  /** Whether a second lies in another day than the one that was written down last. */
  isOtherDay(seconds: number): boolean {
    return dayOf(seconds) !== dayOf(this.#savedSeconds);
  }

  /** The second was written down. */
  saved(seconds: number): void {
    this.#savedSeconds = seconds;
  }
}
