/** Values that are kept for a moment, so that many open pages share one computation. */

const ENTRIES_MAX = 64;

interface Entry {
  readonly untilMs: number;
  readonly value: unknown;
}

/** Keeps values by name for as long as their maker says. */
export class ShortCache {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;

  /** @param now milliseconds of a clock that never goes back */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /**
   * The value of a name, made where there is none that is young enough. A promise that fails is not kept.
   *
   * @param name must tell every two values apart
   */
  get<T>(name: string, forMs: number, make: () => T): T {
    // What is too old is not kept in memory: it may hold a secret.
    for (const [one, { untilMs }] of this.#entries) if (this.#now() >= untilMs) this.#entries.delete(one);
    const known = this.#entries.get(name);
    if (known !== undefined) return known.value as T;
    const value = make();
    const entry = { untilMs: this.#now() + forMs, value };
    const oldest = this.#entries.keys().next().value;
    if (this.#entries.size >= ENTRIES_MAX && oldest !== undefined) this.#entries.delete(oldest);
    this.#entries.set(name, entry);
    if (value instanceof Promise)
      value.catch(() => {
        if (this.#entries.get(name) === entry) this.#entries.delete(name);
      });
    return value;
  }
}
