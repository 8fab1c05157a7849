/** Limits failed sign-ins by address and by name, so that passwords cannot be guessed, and other frequent actions. */
import { LIMITS } from '../../limits.ts';

const WINDOW_MS = LIMITS.consoleSignInSeconds.value * 1_000;

interface Entry {
  count: number;
  sinceMs: number;
}

/** Counts failures within a window of ten minutes. */
export class SignInLimiter {
  readonly #most: number;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();

  /**
   * @param most number of failures after which no further attempt is accepted
   * @param now milliseconds of a monotonic clock
   */
  constructor(most: number, now = () => performance.now()) {
    this.#most = most;
    this.#now = now;
  }

  /** Returns the seconds to wait; 0 if an attempt is accepted. */
  wait(name: string): number {
    const entry = this.#entry(name);
    if (entry === undefined || entry.count < this.#most) return 0;
    return Math.max(1, Math.ceil((entry.sinceMs + WINDOW_MS - this.#now()) / 1_000));
  }

  /** Counts an attempt before its outcome is known, so that concurrent attempts count, too. Returns a function that takes it back. */
  note(name: string): () => void {
    const entry = this.#entry(name) ?? this.#begin(name);
    entry.count += 1;
    return () => {
      entry.count -= 1;
      if (entry.count === 0 && this.#entries.get(name) === entry) this.#entries.delete(name);
    };
  }

  /** Clears the count of a name. */
  forget(name: string): void {
    this.#entries.delete(name);
  }

  #begin(name: string): Entry {
    const oldest = this.#entries.keys().next().value;
    if (this.#entries.size >= LIMITS.consoleFailureEntries.value && oldest !== undefined) this.#entries.delete(oldest);
    const entry = { count: 0, sinceMs: this.#now() };
    this.#entries.set(name, entry);
    return entry;
  }

  #entry(name: string): Entry | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined || this.#now() - entry.sinceMs < WINDOW_MS) return entry;
    this.#entries.delete(name);
    return undefined;
  }
}
