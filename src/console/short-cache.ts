/** A cache for short times, so that many open pages share one computation. */

const ENTRIES_MAX = 64;

interface Entry {
  readonly untilMs: number;
  readonly value: unknown;
}

/** Caches values by name, each for a time that the caller gives. */
export class ShortCache {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;

  /** @param now milliseconds of a monotonic clock */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Returns the cached value of a name; makes it if there is none or it has expired. A promise that rejects is not cached.
   *
   * @param name must be different for different values
   */
  get<T>(name: string, forMs: number, make: () => T): T {
    // Expired values are removed from memory: they may hold a secret.
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
