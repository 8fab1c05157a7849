/** Counts failed sign-ins, by address and by name, so that nobody can guess, and other things that somebody does too often. */
import { LIMITS } from '../../limits.ts';

const WINDOW_MS = LIMITS.consoleSignInSeconds.value * 1_000;

interface Entry {
  count: number;
  sinceMs: number;
}

/** Failures within ten minutes. */
export class SignInLimiter {
  readonly #most: number;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();

  /** @param most failures after which no more tries are taken; @param now milliseconds of a clock that never goes back */
  constructor(most: number, now = () => performance.now()) {
    this.#most = most;
    this.#now = now;
  }

  /** Seconds to wait; 0 where a try is taken. */
  wait(name: string): number {
    const entry = this.#entry(name);
    if (entry === undefined || entry.count < this.#most) return 0;
    return Math.max(1, Math.ceil((entry.sinceMs + WINDOW_MS - this.#now()) / 1_000));
  }

  /** Notes a try before its outcome is known, so that tries at the same time count, too. Returns what takes this one back. */
  note(name: string): () => void {
    const entry = this.#entry(name) ?? this.#begin(name);
    entry.count += 1;
    return () => {
      entry.count -= 1;
      if (entry.count === 0 && this.#entries.get(name) === entry) this.#entries.delete(name);
    };
  }

  /** Forgets all that was counted. */
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
